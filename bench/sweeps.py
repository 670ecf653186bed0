"""A sweep of each function over thousands of Jobs, on an embedded API server.

Each Job has four pods, a Workload and a PodGroup. Each function sweeps in a process of its own until it has
looked at everything, with nothing to do and after 1 % was lost. Before it another process reads the same
lists without any of Muster's code around the client: `lists alone`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.figures import Environment, Figure, Goal, Measure, progress, samples
from bench.sweeping import Cost
from bench.world import STEPS, BenchmarkCluster
from muster.simulator.apiserver import ApiServer, resource_definitions

NOTHING, LOST = "nothing to do", "1 % lost"
SIZES = {1_000: (NOTHING, LOST), 10_000: (NOTHING,)}
"""The numbers of Jobs, and the cases that are measured with each."""
MOST_MIB = 128.0
QUANTITIES: tuple[tuple[str, str, Callable[[Cost], float]], ...] = (
    ("calls", "", lambda cost: cost.calls),
    ("received", "MB", lambda cost: cost.megabytes),
    ("time", "s", lambda cost: cost.seconds),
    ("CPU time", "s", lambda cost: cost.cpu),
    ("memory at most", "MiB", lambda cost: cost.peak),
)


def _in_a_process(what: str, url: str, name: str) -> Cost:
    command = [sys.executable, "-m", "bench.sweeping", what, url, name]
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
