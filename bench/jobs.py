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
NODES = 20


def measure() -> Figure:
    """Return times, requests, deliveries and CPU time of Jobs and TrainJobs."""
    with both(NODES) as stages:
        of_jobs = jobs(stages, JOB_PODS)
        rounds_of(of_jobs, JOB_PODS, 2, 1)  # warms up
        alone = rounds_of(of_jobs, JOB_PODS, 8, 3)
        trained = rounds_of(trainjobs(stages, TRAINJOB_PODS), TRAINJOB_PODS, 5, 3)
        bursts = {
            size: rounds_of(of_jobs, JOB_PODS, size, rounds, at_once=True)
            for size, rounds in ((50, 3), (200, 1))
        }
    measures = [
        *_times("One Job at a time", alone, Goal(MUSTER, 1.5, IN_TREE)),
        *_times("One TrainJob at a time", trained, Goal(MUSTER, 1.5, PLAIN)),
        *_costs("One Job at a time", alone),
    ]
    for size, rounds in bursts.items():
        measures += _times(f"Burst of {size} Jobs", rounds, Goal(MUSTER, 2, IN_TREE))
        measures += _costs(f"Burst of {size} Jobs", rounds)
    return Figure("jobs", "Jobs and TrainJobs, created to bound", measures)


def _times(group: str, rounds: Rounds, goal: Goal) -> Iterator[Measure]:
    """Yield the median of the owners, and of a burst the whole time of each round."""
    delays = samples(rounds, lambda taken: statistics.median(taken.delays))
    yield Measure("created to last pod bound, median", "s", delays, group, [goal])
    if group.startswith("Burst"):
        walls = samples(rounds, lambda taken: taken.wall)
        yield Measure("until all are bound", "s", walls, group, [goal])


def _costs(group: str, rounds: Rounds) -> Iterator[Measure]:
    """Yield requests, deliveries and CPU time per Job."""
    requests = samples(rounds, lambda taken: len(taken.requests) / len(taken.delays))
    yield Measure("API requests per Job", "", requests, group, [Goal(MUSTER, 1.6, IN_TREE)])
    of_muster = {MUSTER: rounds[MUSTER]}
    deliveries = samples(of_muster, lambda taken: taken.deliveries / len(taken.delays))
    yield Measure("deliveries per Job", "", deliveries, group, [Goal(MUSTER, 10)])
    cpu = samples(rounds, lambda taken: 1000 * sum(taken.cpu.values()) / len(taken.delays))
    yield Measure("CPU time of all processes per Job", "ms", cpu, group)
    for name in sorted(rounds[MUSTER][0].cpu):
        own = samples(of_muster, lambda taken, name=name: 1000 * taken.cpu[name] / len(taken.delays))  # type: ignore[misc]
        yield Measure(f"CPU time of {name} per Job", "ms", own, group)
