"""Measures the cost of a sweep: `python -m tests.benchmarks.sweeps --owners 10000`.

An embedded API server holds that many Jobs, each with four pods, a Workload and a PodGroup. Each function
sweeps it in a process of its own, once with nothing to do and once after 1 % was lost; before each of these,
another process reads the same lists without any of Muster's code around the client: the floor.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from muster import steps
from muster.cluster.client import Client
from muster.cluster.errors import ApiGone
from muster.cluster.versioned import Versioned
from muster.runtime.app import wall_clock
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.benchmarks.world import STEPS, BenchmarkCluster

COLUMNS = ("function", "", "calls", "MB", "seconds", "CPU seconds", "sweeps", "peak MiB")
SWEEP = {"ce-specversion": "1.0", "ce-source": "/benchmark", "ce-type": "dev.muster.sweep"}


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


def sweep(url: str, name: str) -> Cost:
    """Sweep until every object was looked at."""
    client = CountingClient.for_server(url)
    settings = Settings(sweep_jitter_seconds=0)
    handler = Handler(steps.step_named(name), Versioned(client), settings, wall_clock)
    began, cpu, sweeps = time.perf_counter(), time.process_time(), 0
    while not _finished(handler):
        sweeps += 1
        answer = handler.handle({**SWEEP, "ce-id": str(sweeps)}, b"")
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


def floor(url: str, name: str) -> Cost:
    """Read the same lists page by page, and drop each page."""
    client = CountingClient.for_server(url)
    began, cpu = time.perf_counter(), time.process_time()
    for listing in steps.step_named(name).lists:
        token: str | None = ""
        while token is not None:
            try:
                page = client.page(
                    listing.resource, labels=listing.labels, fields=listing.fields, token=token
                )
            except ApiGone:
                break
            token = page.token or None
    return _cost(client, began, cpu, 0)


def _cost(client: CountingClient, began: float, cpu: float, sweeps: int) -> Cost:
    seconds = time.perf_counter() - began
    # Of this program alone: getrusage would count what the process was before it became this program.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return Cost(
        sweeps, client.calls, client.bytes / 1e6, seconds, time.process_time() - cpu, int(peak) / 1024
    )


def _in_a_process(what: str, url: str, name: str) -> Cost:
    command = [sys.executable, "-m", "tests.benchmarks.sweeps", "--only", what, name, url]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Cost(**json.loads(output.splitlines()[-1]))


def main() -> None:
    """Print a line for each function and each case: baseline, nothing to do, 1 % lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=10_000)
    parser.add_argument("--functions", nargs="+", default=STEPS, choices=STEPS)
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        what, name, url = given.only
        say(json.dumps(asdict({"floor": floor, "sweep": sweep}[what](url, name))))
        return
    with ApiServer() as server:
        server.load(resource_definitions())
        world = BenchmarkCluster(server, given.owners)
        world.fill()
        say(f"{given.owners} Jobs of 4 pods\n")
        say(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        for name in given.functions:
            for words, lost in (("nothing to do", False), ("1 % lost", True)):
                if lost:
                    world.lose(name)
                _print(name, "floor: the lists alone", _in_a_process("floor", server.url, name))
                _print(name, words, _in_a_process("sweep", server.url, name))
            world.repair()


def say(line: str) -> None:
    """Print a line and flush."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print(name: str, words: str, cost: Cost) -> None:
    say(
        f"| {name} | {words} | {cost.calls} | {cost.megabytes:.1f} | {cost.seconds:.1f} | {cost.cpu:.1f} "
        f"| {cost.sweeps or ''} | {cost.peak:.0f} |"
    )


if __name__ == "__main__":
    main()
