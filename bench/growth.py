"""How cost grows with the number of TrainJobs, and with the number of pods of one gang.

On the same two control planes as `jobs`, in turns: TrainJobs of 8 pods, all created at once, beside those
of a cluster without Muster; and one Job of many pods as a gang, beside the gang that the Job controller makes
of it (`in-tree`).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

from bench.figures import Figure, Goal, Measure, samples
from bench.stages import (
    BINDING,
    IN_TREE,
    MUSTER,
    NODE_PODS,
    PLAIN,
    REMOVAL,
    Round,
    Rounds,
    both,
    jobs,
    rounds_of,
    trainjobs,
)

TRAINJOBS, TRAINJOB_PODS = (10, 100), 8
GANGS = (100, 1000)
SPARE_NODES = 5
READS, WRITES = ("get", "list"), ("create", "update", "patch", "delete")


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
    group, of_muster = f"One gang of {pods:,} pods", {MUSTER: rounds[MUSTER]}

    def per_pod(name: str, verbs: tuple[str, ...], limit: float) -> Measure:
        value: Callable[[Round], float] = lambda taken: len(taken.of_muster(*verbs)) / pods  # noqa: E731
        return Measure(name, "", samples(of_muster, value), group, [Goal(MUSTER, limit)])

    bound = samples(rounds, lambda taken: taken.wall)
    yield Measure("created to last pod bound", "s", bound, group)
    ungated = {"bound in-tree": bound[IN_TREE], "ungated": samples(of_muster, _ungated)[MUSTER]}
    goal = Goal("ungated", 1, "bound in-tree")
    yield Measure("created to last gate removed", "s", ungated, group, [goal])
    yield per_pod("writes of Muster per pod", WRITES, 1.2)
    yield per_pod("reads of Muster per pod", READS, 0.1)
    yield from _costs(group, pods, rounds)


def _ungated(taken: Round) -> float:
    """Return the seconds from the creation of the gang to the removal of its last gate."""
    removals = [request.ended for request in taken.of_muster("patch") if request.name == REMOVAL]
    bindings = [request.ended for request in taken.requests if request.name == BINDING]
    return taken.wall - (max(bindings) - max(removals))


def _costs(group: str, pods: int, rounds: Rounds) -> Iterator[Measure]:
    requests = samples(rounds, lambda taken: len(taken.requests) / pods)
    yield Measure("API requests per pod", "", requests, group)
    cpu = samples(rounds, lambda taken: 1000 * sum(taken.cpu.values()) / pods)
    yield Measure("CPU time of all processes per pod", "ms", cpu, group)
    memory = samples({MUSTER: rounds[MUSTER]}, lambda taken: taken.memory)
    yield Measure("memory of the largest function", "MiB", memory, group)
