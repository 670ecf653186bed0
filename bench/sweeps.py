"""A sweep of each function over thousands of Jobs, on an embedded API server.

Each Job has four pods, a Workload and a PodGroup. Each function sweeps in a process of its own until it has
looked at everything, with nothing to do and after 1 % was lost. Before it another process reads the same
lists without any of Muster's code around the client: `lists alone`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.figures import Environment, Figure, Goal, Measure, progress, samples
from bench.world import STEPS, BenchmarkCluster
from muster import steps
from muster.cluster.client import Client
from muster.cluster.errors import ApiGone, Unavailable
from muster.cluster.list_cache import Listing
from muster.cluster.paging import Page
from muster.cluster.versioned import Versioned
from muster.runtime.app import wall_clock
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.simulator.apiserver import ApiServer, resource_definitions

NOTHING, LOST = "nothing to do", "1 % lost"
SIZES = {1_000: (NOTHING, LOST), 10_000: (NOTHING,)}
"""The numbers of Jobs, and the cases that are measured with each."""
MOST_MIB = 128.0
TRIES = 5
"""Attempts to read a page, which is smaller each time, since a busy API server may answer too late."""
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
        sweeps: how many it took to look at everything; each ends after MUSTER_DEADLINE_SECONDS.
        calls: to the API server.
        megabytes: received from it.
        seconds: all sweeps together.
        cpu: seconds of this process's own work in them.
        peak: resident memory at most, in MiB.
    """

    sweeps: int
    calls: int
    megabytes: float
    seconds: float
    cpu: float
    peak: float


QUANTITIES: tuple[tuple[str, str, Callable[[Cost], float]], ...] = (
    ("calls", "", lambda cost: cost.calls),
    ("received", "MB", lambda cost: cost.megabytes),
    ("time", "s", lambda cost: cost.seconds),
    ("CPU time", "s", lambda cost: cost.cpu),
    ("memory at most", "MiB", lambda cost: cost.peak),
)


def sweep(url: str, name: str) -> Cost:
    """Sweep until every object was looked at."""
    client = CountingClient.for_server(url)
    settings = Settings(sweep_jitter_seconds=0)
    handler = Handler(steps.step_named(name), Versioned(client), settings, wall_clock)
    began, cpu, sweeps = time.perf_counter(), time.process_time(), 0
    while not _finished(handler):
        sweeps += 1
        answer = handler.handle({**EVENT, "ce-id": str(sweeps)}, b"")
        if answer.status != 202:
            raise SystemExit(f"{name}: {answer.status} {answer.body.decode()}")
    return _cost(client, began, cpu, sweeps)


def _finished(handler: Handler) -> bool:
    """Return whether every object was looked at once, by the function's own metrics."""
    return b"muster_last_whole_sweep_timestamp_seconds" in b"".join(
        line
        for line in handler.metrics.exposition().splitlines()
        if line.startswith(b"muster_last_whole_sweep") and not line.endswith(b" 0.0")
    )


def lists(url: str, name: str) -> Cost:
    """Read the same lists page by page, and drop each page."""
    client = CountingClient.for_server(url)
    began, cpu = time.perf_counter(), time.process_time()
    for listing in steps.step_named(name).lists:
        token: str | None = ""
        while token is not None:
            try:
                page = _page(client, listing, token)
            except ApiGone:
                break
            token = page.token or None
    return _cost(client, began, cpu, 0)


def _page(client: Client, listing: Listing, token: str) -> Page:
    for _ in range(TRIES - 1):
        with suppress(Unavailable):
            return client.page(listing.resource, labels=listing.labels, fields=listing.fields, token=token)
    return client.page(listing.resource, labels=listing.labels, fields=listing.fields, token=token)


def _cost(client: CountingClient, began: float, cpu: float, sweeps: int) -> Cost:
    seconds = time.perf_counter() - began
    # Of this program alone: getrusage would count what the process was before it became this program.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return Cost(
        sweeps, client.calls, client.bytes / 1e6, seconds, time.process_time() - cpu, int(peak) / 1024
    )


def _in_a_process(what: str, url: str, name: str) -> Cost:
    command = [sys.executable, "-m", "bench.sweeps", what, url, name]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Cost(**json.loads(output.splitlines()[-1]))


def measure() -> Figure:
    """Return calls, time and memory of a sweep of each function."""
    environment = Environment.now()
    return Figure(
        name="sweeps",
        title="Sweeps",
        description=" ".join((__doc__ or "").split()),
        environment=environment,
        measures=tuple(measure for owners, cases in SIZES.items() for measure in _measured(owners, cases)),
    )


def _measured(owners: int, cases: Sequence[str]) -> Iterator[Measure]:
    """Measure all functions in each case, at one size."""
    with ApiServer() as server:
        server.load(resource_definitions())
        world = BenchmarkCluster(server, owners)
        world.fill()
        for case in cases:
            sweeps: dict[str, list[Cost]] = {}
            floors: dict[str, list[Cost]] = {}
            for name in STEPS:
                progress(f"{owners:,} Jobs, {case}: {name}")
                if case == LOST:
                    world.lose(name)
                floors[name] = [_in_a_process("lists", server.url, name)]
                sweeps[name] = [_in_a_process("sweep", server.url, name)]
                world.repair()
            yield from _measures(f"{owners:,} Jobs, {case}", sweeps, floors)


def _measures(
    group: str, sweeps: Mapping[str, Sequence[Cost]], floors: Mapping[str, Sequence[Cost]]
) -> Iterator[Measure]:
    for name, unit, value in QUANTITIES:
        goals = tuple(Goal(function, MOST_MIB) for function in sweeps if unit == "MiB")
        yield Measure(name, unit, samples(sweeps, value), group, goals=goals)
    yield Measure("CPU time, lists alone", "s", samples(floors, lambda cost: cost.cpu), group)
    yield Measure("memory at most, lists alone", "MiB", samples(floors, lambda cost: cost.peak), group)


def main() -> None:
    """Measure one process and print its cost as JSON: `python -m bench.sweeps sweep|lists URL FUNCTION`."""
    what, url, name = sys.argv[1:]
    print(json.dumps(asdict({"lists": lists, "sweep": sweep}[what](url, name))))


if __name__ == "__main__":
    main()
