"""Gang Jobs and TrainJobs on real control planes: from the request to the last bound pod.

Two control planes run side by side: one with Muster, one without, where the Job controller makes gangs itself
(`in-tree`, gate WorkloadWithJob). A plain Job there has a controller of its own, which the Job controller
leaves alone. Muster's functions run with their own service accounts, behind Knative's adapters and the local
broker. Subjects take turns; Jobs have 4 pods, TrainJobs 8.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.figures import Figure, Goal, Measure, samples
from bench.stages import IN_TREE, MUSTER, PLAIN, Rounds, both, jobs, rounds_of, trainjobs

JOB_PODS, TRAINJOB_PODS = 4, 8
BURST = 50
NODES = 20


def measure() -> Figure:
    """Return times, requests, deliveries and CPU time of Jobs and TrainJobs."""
    with both(NODES) as stages:
        of_jobs = jobs(stages, JOB_PODS)
        rounds_of(of_jobs, JOB_PODS, 2, 1)  # warms up
        alone = rounds_of(of_jobs, JOB_PODS, 10, 4)
        trained = rounds_of(trainjobs(stages, TRAINJOB_PODS), TRAINJOB_PODS, 5, 3)
        bursts = rounds_of(of_jobs, JOB_PODS, BURST, 3, at_once=True)
    of_burst = f"Burst of {BURST} Jobs"
    walls = samples(bursts, lambda taken: taken.wall)
    measures = [
        _delays("One Job at a time", alone, Goal(MUSTER, 1.4, IN_TREE)),
        *_costs("One Job at a time", "Job", alone),
        _delays("One TrainJob at a time", trained, Goal(MUSTER, 1.25, PLAIN)),
        _deliveries("One TrainJob at a time", "TrainJob", trained, 12),
        _delays(of_burst, bursts, Goal(MUSTER, 1.5, IN_TREE)),
        Measure("until all are bound", "s", walls, of_burst, [Goal(MUSTER, 1.3, IN_TREE)]),
        *_costs(of_burst, "Job", bursts),
    ]
    return Figure("jobs", "Jobs and TrainJobs, created to bound", measures)


def _delays(group: str, rounds: Rounds, goal: Goal) -> Measure:
    delays = samples(rounds, lambda taken: statistics.median(taken.delays))
    return Measure("created to last pod bound, median", "s", delays, group, [goal])


def _deliveries(group: str, owner: str, rounds: Rounds, most: float) -> Measure:
    deliveries = samples({MUSTER: rounds[MUSTER]}, lambda taken: taken.deliveries / len(taken.delays))
    return Measure(f"deliveries per {owner}", "", deliveries, group, [Goal(MUSTER, most)])


def _costs(group: str, owner: str, rounds: Rounds) -> Iterator[Measure]:
    """Yield requests, calls of the functions, deliveries and CPU time per owner."""
    of_muster = {MUSTER: rounds[MUSTER]}
    calls = samples(of_muster, lambda taken: len(taken.of_muster()) / len(taken.delays))
    yield Measure(f"calls of the functions per {owner}", "", calls, group, [Goal(MUSTER, 15)])
    requests = samples(rounds, lambda taken: len(taken.requests) / len(taken.delays))
    yield Measure(f"API requests per {owner}", "", requests, group, [Goal(MUSTER, 42)])
    yield _deliveries(group, owner, rounds, 9)
    cpu = samples(rounds, lambda taken: 1000 * sum(taken.cpu.values()) / len(taken.delays))
    yield Measure(f"CPU time of all processes per {owner}", "ms", cpu, group, [Goal(MUSTER, 1.3, IN_TREE)])
    for name in sorted(rounds[MUSTER][0].cpu):
        own = samples(of_muster, lambda taken, name=name: 1000 * taken.cpu[name] / len(taken.delays))  # type: ignore[misc]
        yield Measure(f"CPU time of {name} per {owner}", "ms", own, group)
