"""Sweeps with one function in this process, or reads its lists alone, and prints the cost as JSON.

    python -m bench.sweeping sweep|lists URL FUNCTION

It imports what a function imports, and little else, since its memory is measured.
"""

from __future__ import annotations

import json
import re
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from muster.cluster.errors import ApiGone
from muster.cluster.http.client import Client
from muster.cluster.interface import FROM_CACHE
from muster.cluster.versioned import Versioned
from muster.objects.resources import NAMESPACES
from muster.runtime import steps
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.http.app import wall_clock
from muster.runtime.telemetry.metrics import exposition_of

EVENT = {"ce-specversion": "1.0", "ce-source": "/benchmark", "ce-type": "dev.muster.sweep"}


class CountingClient(Client):
    """A client that counts requests and bytes."""

    calls = 0
    bytes = 0

    def receive(self, *arguments: Any, **named: Any) -> Any:
        """As the client's."""
        answer = super().receive(*arguments, **named)
        self.calls += 1
        self.bytes += len(answer[1])
        return answer


@dataclass(frozen=True)
class Cost:
    """The measurements of one process.

    Attributes:
        calls: to the API server.
        megabytes: received from it.
        seconds: all sweeps together.
        cpu: seconds of this process's own work in them.
        peak: resident memory at most, in MiB.
    """

    calls: int
    megabytes: float
    seconds: float
    cpu: float
    peak: float


def sweep(url: str, name: str) -> Cost:
    """Sweep until every object was looked at."""
    client = CountingClient.for_server(url)
    settings = Settings()
    handler = Handler(steps.step_named(name), Versioned(client), settings, wall_clock)
    began, cpu, sweeps = time.perf_counter(), time.process_time(), 0
    while not _finished(handler):
        sweeps += 1
        answer = handler.handle({**EVENT, "ce-id": str(sweeps)}, b"")
        if answer.status != 202:
            raise SystemExit(f"{name}: {answer.status} {answer.body.decode()}")
    return _cost(client, began, cpu)


def _finished(handler: Handler) -> bool:
    """Return whether every object was looked at once, by the function's own metrics."""
    return b"muster_last_whole_sweep_timestamp_seconds" in b"".join(
        line
        for line in exposition_of([handler.metrics]).splitlines()
        if line.startswith(b"muster_last_whole_sweep") and not line.endswith(b" 0.0")
    )


def lists(url: str, name: str) -> Cost:
    """Read the same lists, and drop each."""
    client = CountingClient.for_server(url)
    began, cpu = time.perf_counter(), time.process_time()
    for namespace in client.list(NAMESPACES):
        for listing in steps.step_named(name).lists:
            with suppress(ApiGone):
                client.list(
                    listing.resource,
                    namespace["metadata"]["name"] if listing.resource.namespaced else "",
                    labels=listing.labels,
                    fields=listing.fields,
                    as_of=FROM_CACHE,
                )
    return _cost(client, began, cpu)


def _cost(client: CountingClient, began: float, cpu: float) -> Cost:
    seconds = time.perf_counter() - began
    # Of this program alone: getrusage would count what the process was before it became this program.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return Cost(client.calls, client.bytes / 1e6, seconds, time.process_time() - cpu, int(peak) / 1024)


def main() -> None:
    """Do what the arguments say, and print the cost."""
    what, url, name = sys.argv[1:]
    print(json.dumps(asdict({"lists": lists, "sweep": sweep}[what](url, name))))


if __name__ == "__main__":
    main()
