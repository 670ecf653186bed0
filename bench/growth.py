"""How cost grows with the number of TrainJobs, and with the number of pods of one gang.

On the same two control planes as `jobs`, in turns: TrainJobs of 8 pods, all created at once, beside those
of a cluster without Muster; and one Job of many pods as a gang, beside the gang that the Job controller makes
of it (`in-tree`).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.figures import Figure, Goal, Measure, samples
from bench.stages import (
    IN_TREE,
    MUSTER,
    NODE_PODS,
    PLAIN,
    Rounds,
    both,
    jobs,
    rounds_of,
    trainjobs,
)

TRAINJOBS, TRAINJOB_PODS = (10, 100), 8
GANGS = (100, 1000)
SPARE_NODES = 5


def measure() -> Figure:
    """Return times, requests, CPU time and memory by size."""
    measures: list[Measure] = []
    with both(-(-max(GANGS) // NODE_PODS) + SPARE_NODES) as stages:
        for number in TRAINJOBS:
            subjects = trainjobs(stages, TRAINJOB_PODS)
            measures += _trainjobs(number, rounds_of(subjects, TRAINJOB_PODS, number, 1, at_once=True))
        for pods in GANGS:
            gangs = [subject for subject in jobs(stages, pods) if subject.name != PLAIN]
            measures += _gang(pods, rounds_of(gangs, pods, 1, 1))
    return Figure("growth", "Growth", measures)


def _trainjobs(number: int, rounds: Rounds) -> Iterator[Measure]:
    group = f"{number} TrainJobs of {TRAINJOB_PODS} pods"
    delays = samples(rounds, lambda taken: statistics.median(taken.delays))
    yield Measure("created to last pod bound, median", "s", delays, group)
    yield Measure("until all are bound", "s", samples(rounds, lambda taken: taken.wall), group)
    yield from _costs(group, number * TRAINJOB_PODS, rounds)


def _gang(pods: int, rounds: Rounds) -> Iterator[Measure]:
    group = f"One gang of {pods:,} pods"
    bound = samples(rounds, lambda taken: taken.wall)
    yield Measure("created to last pod bound", "s", bound, group, [Goal(MUSTER, 1.1, IN_TREE)])
    calls = samples({MUSTER: rounds[MUSTER]}, lambda taken: len(taken.of_muster()))
    yield Measure("calls of the functions", "", calls, group)
    yield from _costs(group, pods, rounds)


def _costs(group: str, pods: int, rounds: Rounds) -> Iterator[Measure]:
    requests = samples(rounds, lambda taken: len(taken.requests) / pods)
    yield Measure("API requests per pod", "", requests, group)
    cpu = samples(rounds, lambda taken: 1000 * sum(taken.cpu.values()) / pods)
    yield Measure("CPU time of all processes per pod", "ms", cpu, group)
    memory = samples({MUSTER: rounds[MUSTER]}, lambda taken: taken.memory)
    yield Measure("memory of the largest function", "MiB", memory, group)
