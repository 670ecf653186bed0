"""Gang Jobs and TrainJobs on real control planes: from the request to the last bound pod.

Two control planes run side by side: one with Muster, one without, where the Job controller makes gangs itself
(`in-tree`, gate WorkloadWithJob). A plain Job there has a controller of its own, which the Job controller
leaves alone. Both have etcd, kube-apiserver, kube-scheduler and kube-controller-manager with raised client
limits, JobSet, Trainer and KWOK. Muster's functions run with their own service accounts, behind Knative's
adapters and the local broker. Subjects take turns; Jobs have 4 pods, TrainJobs 8.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import audit, report
from bench.figures import ROOT, Environment, Figure, Goal, Measure
from bench.samples import quantile
from bench.stages import OVERLAYS, Stage, both
from bench.turns import Round, Rounds, Subject, Turns, of_each, rounded
from tests.e2e.support.owners import a_job, a_trainjob

Object = dict[str, Any]

PLAIN, IN_TREE, MUSTER = "plain", "in-tree", "Muster"
JOB_PODS, TRAINJOB_PODS = 4, 8
RUNTIME = "torch-distributed"
NODES = 20
SELDOM = 0.05
"""Requests, or milliseconds, per owner below which a row is left out."""
BUDGET_SECONDS = 540.0
"""After which no further round of bursts begins."""
GROWTH = 1.2
"""How much longer a Job of a larger burst takes, for the decision whether there is time for it."""


@dataclass(frozen=True)
class Settings:
    """How much is measured.

    Attributes:
        alone: rounds, and Jobs per round, one at a time.
        bursts: sizes and rounds of the bursts of Jobs.
        trainjobs: rounds, and TrainJobs per round, one at a time.
        functions: how Muster's functions are served, a key of `OVERLAYS`.
    """

    alone: tuple[int, int] = (4, 10)
    bursts: tuple[tuple[int, int], ...] = ((50, 3), (200, 1))
    trainjobs: tuple[int, int] = (3, 5)
    functions: str = "processes"


def measure(settings: Settings | None = None) -> Figure:
    """Return times, requests, deliveries and CPU time of Jobs and TrainJobs."""
    settings = settings or Settings()
    until = time.monotonic() + BUDGET_SECONDS
    environment = Environment.now()
    with both(settings.functions, NODES) as (reference, muster):
        numbers = itertools.count(1)
        trainjobs = Turns(subjects_of_trainjobs(reference, muster), TRAINJOB_PODS, numbers)
        jobs = Turns(subjects_of_jobs(reference, muster, JOB_PODS), JOB_PODS, numbers, until=until)
        jobs.alone(1, 3)  # warms up
        alone = jobs.alone(*settings.alone)
        trained = trainjobs.alone(*settings.trainjobs)
        bursts = {size: rounds for size, rounds in _bursts(jobs, settings.bursts) if rounds}
    return Figure(
        name="jobs",
        title="Jobs and TrainJobs, created to bound",
        description=" ".join((__doc__ or "").split()),
        environment=environment,
        measures=tuple(_measures(alone, trained, bursts)),
    )


def subjects_of_jobs(reference: Stage, muster: Stage, pods: int) -> list[Subject]:
    """Return the three subjects, with Jobs of so many pods."""

    def plain(name: str) -> Object:
        job = a_job(name, pods=pods)
        job["metadata"]["ownerReferences"] = [reference.owner]
        return job

    def in_tree(name: str) -> Object:
        job = a_job(name, pods=pods)
        job["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {}}}
        return job

    return [
        Subject(PLAIN, reference, plain, gangs=False),
        Subject(IN_TREE, reference, in_tree, gangs=True),
        Subject(MUSTER, muster, lambda name: a_job(name, pods=pods), gangs=True),
    ]


def subjects_of_trainjobs(reference: Stage, muster: Stage) -> list[Subject]:
    """Return the two subjects, with TrainJobs of 8 pods."""

    def trainjob(name: str) -> Object:
        return a_trainjob(name, RUNTIME, nodes=TRAINJOB_PODS)

    return [
        Subject(PLAIN, reference, trainjob, gangs=False),
        Subject(MUSTER, muster, trainjob, gangs=True),
    ]


def _bursts(jobs: Turns, sizes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, Rounds]]:
    """Yield the rounds of bursts by size; none of a size for which the time does not suffice."""
    seconds_per_job = 0.0
    for size, rounds in sizes:
        began = time.monotonic()
        done = jobs.bursts(size, rounds, expected=GROWTH * seconds_per_job * size)
        count = len(done.get(MUSTER, ()))
        if count:
            seconds_per_job = (time.monotonic() - began) / count / size
        yield size, done


def _measures(alone: Rounds, trained: Rounds, bursts: Mapping[int, Rounds]) -> Iterator[Measure]:
    yield from _alone("One Job at a time", alone, IN_TREE)
    for size, rounds in bursts.items():
        yield from _burst(f"Burst of {size} Jobs", rounds)
    yield from _alone("One TrainJob at a time", trained, PLAIN)
    yield from _requests("API requests per Job, one at a time", alone)
    yield from _deliveries("Deliveries per Job, one at a time", alone)
    for size, rounds in bursts.items():
        yield _all_requests(f"API requests per Job, burst of {size}", rounds)
        yield from _deliveries(f"Deliveries per Job, burst of {size}", rounds)
        yield from _cpu(f"CPU time per Job, burst of {size}", rounds)


def _alone(group: str, rounds: Rounds, reference: str) -> Iterator[Measure]:
    """Yield the times of owners that were created one after another."""
    delays = {name: _milliseconds(taken) for name, taken in rounds.items()}
    p95 = {name: (quantile(values, 0.95),) for name, values in delays.items()}
    goals = (Goal(MUSTER, 1.5, reference),)
    yield Measure("created to last pod bound", "ms", delays, group, reference, goals=goals)
    yield Measure("95th percentile", "ms", p95, group, reference)


def _milliseconds(rounds: Sequence[Round]) -> tuple[float, ...]:
    return tuple(rounded(delay * 1000) for taken in rounds for delay in taken.delays)


def _burst(group: str, rounds: Rounds) -> Iterator[Measure]:
    goals = (Goal(MUSTER, 2, IN_TREE),)
    for name, value, limits in (
        (
            "created to last pod bound, median of the Jobs",
            lambda taken: statistics.median(taken.delays),
            goals,
        ),
        ("95th percentile", lambda taken: quantile(taken.delays, 0.95), ()),
        ("until all are bound", lambda taken: taken.wall, goals),
    ):
        yield Measure(name, "s", of_each(rounds, value), group, IN_TREE, goals=limits)


def _requests(group: str, rounds: Rounds) -> Iterator[Measure]:
    """Yield the requests per owner: all, then by verb and resource, the most frequent first."""
    yield _all_requests(group, rounds)
    per_owner: dict[str, dict[str, float]] = {}
    for subject, of_subject in rounds.items():
        together = sum((audit.counts(taken.cost.requests) for taken in of_subject), Counter[str]())
        owners = sum(taken.owners for taken in of_subject)
        for name, count in together.items():
            per_owner.setdefault(name, {})[subject] = rounded(count / owners)
    for name, row in sorted(per_owner.items(), key=lambda item: (-item[1].get(MUSTER, 0.0), item[0])):
        if max(row.values()) >= SELDOM:
            yield Measure(name, "", {subject: (row.get(subject, 0.0),) for subject in rounds}, group)


def _all_requests(group: str, rounds: Rounds) -> Measure:
    samples = of_each(rounds, lambda taken: len(taken.cost.requests) / taken.owners)
    return Measure("all", "", samples, group, IN_TREE, goals=(Goal(MUSTER, 1.6, IN_TREE),))


def _deliveries(group: str, rounds: Rounds) -> Iterator[Measure]:
    """Yield the events per owner that Muster's functions answered, all and by function."""
    of_muster = {MUSTER: rounds[MUSTER]}
    total = of_each(of_muster, lambda taken: sum(taken.cost.deliveries.values()) / taken.owners)
    yield Measure("all", "", total, group, goals=(Goal(MUSTER, 10),))
    for function in sorted(rounds[MUSTER][0].cost.deliveries):

        def value(taken: Round, function: str = function) -> float:
            return taken.cost.deliveries[function] / taken.owners

        yield Measure(function, "", of_each(of_muster, value), group)


def _cpu(group: str, rounds: Rounds) -> Iterator[Measure]:
    """Yield milliseconds of CPU time per owner: all processes, Muster's functions and broker, and each."""
    yield Measure("all processes", "ms", of_each(rounds, lambda taken: _spent(taken, "")), group, IN_TREE)
    others = of_each(rounds, lambda taken: 100 * taken.cost.others)
    yield Measure("share of other programs", "%", others, group)
    names = {name for taken in rounds.values() for of_round in taken for name in of_round.cost.cpu}
    for name in sorted(names):
        samples = of_each(rounds, lambda taken, name=name: _spent(taken, name))  # type: ignore[misc]
        if any(value >= SELDOM for values in samples.values() for value in values):
            yield Measure(name, "ms", samples, group)


def _spent(taken: Round, name: str) -> float:
    """Return milliseconds per owner of one process, or of all."""
    cpu = taken.cost.cpu
    return 1000 * (cpu.get(name, 0.0) if name else sum(cpu.values())) / taken.owners


def main() -> None:
    """Measure with other settings, print the figure, and save it outside of the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.jobs", description=main.__doc__)
    default = Settings()
    for name in ("alone", "trainjobs"):
        parser.add_argument(
            f"--{name}", type=int, nargs=2, metavar=("ROUNDS", "EACH"), default=getattr(default, name)
        )
    parser.add_argument("--burst", action="append", type=int, nargs=2, metavar=("SIZE", "ROUNDS"))
    parser.add_argument("--functions", choices=OVERLAYS, default=default.functions)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    given = parser.parse_args()
    bursts = tuple((size, rounds) for size, rounds in given.burst) if given.burst else default.bursts
    figure = measure(Settings(tuple(given.alone), bursts, tuple(given.trainjobs), given.functions))
    figure.save(given.out)
    print(report.chapter(figure))


if __name__ == "__main__":
    main()
