"""How cost grows with the number of TrainJobs, and with the number of pods of one gang.

On the same two control planes as `jobs`, in turns: TrainJobs of 8 pods, all created at once, beside those
of a cluster without Muster; and one Job of many pods as a gang, beside the gang that the Job controller makes
of it (`in-tree`). Requests are those of the API server's audit log, without the benchmark's own.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import audit, report
from bench.figures import ROOT, Environment, Figure, Goal, Measure, progress
from bench.jobs import IN_TREE, MUSTER, PLAIN, TRAINJOB_PODS, subjects_of_jobs, subjects_of_trainjobs
from bench.stages import NODE_PODS, OVERLAYS, NotAsWritten, Stage, both
from bench.turns import Round, Rounds, Subject, Turns, of_each

SPARE_NODES = 5
PATIENCE = 300.0
BUDGET_SECONDS = 540.0
BINDING, REMOVAL = "create pods/binding", "patch pods"


@dataclass(frozen=True)
class Settings:
    """How far it goes.

    Attributes:
        trainjobs: numbers of TrainJobs.
        gangs: numbers of pods of one gang.
        functions: how Muster's functions are served, a key of `OVERLAYS`.
    """

    trainjobs: tuple[int, ...] = (10, 100)
    gangs: tuple[int, ...] = (100, 1000)
    functions: str = "processes"

    @property
    def sizes(self) -> list[Size]:
        """All of them, those of fewest pods first."""
        trainjobs = [Size(number, TRAINJOB_PODS, trainjobs=True) for number in self.trainjobs]
        gangs = [Size(1, pods, trainjobs=False) for pods in self.gangs]
        return sorted([*trainjobs, *gangs], key=lambda size: size.all_pods)


@dataclass(frozen=True)
class Size:
    """One point of the curves.

    Attributes:
        owners: how many are created at once.
        pods: of each.
        trainjobs: whether they are TrainJobs; else one Job.
    """

    owners: int
    pods: int
    trainjobs: bool

    @property
    def all_pods(self) -> int:
        """The number of pods of all owners."""
        return self.owners * self.pods


def measure(settings: Settings | None = None) -> Figure:
    """Return times, requests, CPU time and memory by size."""
    settings = settings or Settings()
    until = time.monotonic() + BUDGET_SECONDS
    environment = Environment.now()
    sizes = settings.sizes
    with both(settings.functions, nodes_for(sizes[-1].all_pods)) as stages:
        measures = [
            measure for size, rounds in _rounds(stages, sizes, until) for measure in _of(size, rounds)
        ]
    names = list(dict.fromkeys((measure.group, measure.name) for measure in measures))
    return Figure(
        name="growth",
        title="Growth",
        description=" ".join((__doc__ or "").split()),
        environment=environment,
        # By quantity: each is a curve.
        measures=tuple(sorted(measures, key=lambda measure: names.index((measure.group, measure.name)))),
    )


def nodes_for(pods: int) -> int:
    """Return the number of nodes with room for so many pods, and some to spare."""
    return -(-pods // NODE_PODS) + SPARE_NODES


def _rounds(
    stages: tuple[Stage, Stage], sizes: Sequence[Size], until: float
) -> Iterator[tuple[Size, Rounds]]:
    """Yield a round of each size, as long as there is time and everything is bound."""
    numbers = itertools.count(1)
    seconds_per_pod = 0.0
    for size in sizes:
        progress(f"{size.owners} TrainJobs" if size.trainjobs else f"one gang of {size.pods} pods")
        # Deleting the last ones would take longer than making them; the clusters end anyway.
        turns = Turns(
            _subjects(stages, size), size.pods, numbers, PATIENCE, clears=size != sizes[-1], until=until
        )
        began = time.monotonic()
        try:
            done = turns.bursts(size.owners, 1, expected=seconds_per_pod * size.all_pods)
        except NotAsWritten as error:
            progress(f"nothing larger is measured: {error}")
            return
        if not done:
            return
        seconds_per_pod = (time.monotonic() - began) / size.all_pods
        yield size, done


def _subjects(stages: tuple[Stage, Stage], size: Size) -> list[Subject]:
    if size.trainjobs:
        return subjects_of_trainjobs(*stages)
    return [subject for subject in subjects_of_jobs(*stages, size.pods) if subject.name != PLAIN]


def _of(size: Size, rounds: Rounds) -> Iterator[Measure]:
    return _trainjobs(size.owners, rounds) if size.trainjobs else _gang(size.pods, rounds)


Value = Callable[[Round], float]


def _gang(pods: int, rounds: Rounds) -> Iterator[Measure]:
    """Yield the measures of one gang."""
    group, axis = "One gang", "pods of the gang"

    def of_muster(name: str, unit: str, value: Value, limit: float | None = None) -> Measure:
        goals = () if limit is None else (Goal(MUSTER, limit),)
        only = of_each({MUSTER: rounds[MUSTER]}, value)
        return Measure(name, unit, only, group, at=pods, axis=axis, goals=goals)

    bound = of_each(rounds, lambda taken: taken.wall)
    yield Measure("created to last pod bound", "s", bound, group, IN_TREE, at=pods, axis=axis)
    pace = of_each(rounds, lambda taken: _pace(taken, BINDING))
    yield Measure("bindings per second", "", pace, group, IN_TREE, at=pods, axis=axis)
    ungated = {
        "bound in-tree": of_each({IN_TREE: rounds[IN_TREE]}, lambda taken: taken.wall)[IN_TREE],
        "ungated": of_each({MUSTER: rounds[MUSTER]}, _ungated)[MUSTER],
    }
    no_slower = (Goal("ungated", 1, "bound in-tree"),)
    yield Measure(
        "created to last gate removed",
        "s",
        ungated,
        group,
        "bound in-tree",
        at=pods,
        axis=axis,
        goals=no_slower,
    )
    yield of_muster("writes of Muster per pod", "", lambda taken: _writes(taken) / pods, 1.2)
    yield of_muster("reads of Muster per pod", "", lambda taken: _reads(taken) / pods, 0.1)
    yield of_muster("deliveries per pod", "", lambda taken: sum(taken.cost.deliveries.values()) / pods)
    requests = of_each(rounds, lambda taken: len(taken.cost.requests) / pods)
    yield Measure("API requests per pod", "", requests, group, IN_TREE, at=pods, axis=axis)
    yield from _resources(rounds, pods, group, pods, axis)


def _trainjobs(number: int, rounds: Rounds) -> Iterator[Measure]:
    """Yield the measures of so many TrainJobs."""
    group, axis = f"TrainJobs of {TRAINJOB_PODS} pods", "TrainJobs"
    pods = number * TRAINJOB_PODS
    for name, unit, value in (
        ("created to last pod bound, median", "s", lambda taken: statistics.median(taken.delays)),
        ("until all are bound", "s", lambda taken: taken.wall),
        ("API requests per pod", "", lambda taken: len(taken.cost.requests) / pods),
    ):
        yield Measure(name, unit, of_each(rounds, value), group, PLAIN, at=number, axis=axis)
    yield from _resources(rounds, pods, group, number, axis)


def _resources(rounds: Rounds, pods: int, group: str, at: int, axis: str) -> Iterator[Measure]:
    cpu = of_each(rounds, lambda taken: 1000 * sum(taken.cost.cpu.values()) / pods)
    reference = next(iter(rounds))
    yield Measure("CPU time of all processes per pod", "ms", cpu, group, reference, at=at, axis=axis)
    memory = of_each({MUSTER: rounds[MUSTER]}, lambda taken: max(taken.cost.memory.values()))
    yield Measure("memory of the largest function", "MiB", memory, group, at=at, axis=axis)


def _pace(taken: Round, name: str) -> float:
    return audit.pace(request for request in taken.cost.requests if request.name == name)


def _writes(taken: Round) -> int:
    return sum(request.is_write for request in audit.of_user(taken.cost.requests, audit.MUSTER))


def _reads(taken: Round) -> int:
    return sum(not request.is_write for request in audit.of_user(taken.cost.requests, audit.MUSTER))


def _ungated(taken: Round) -> float:
    """Return the seconds from the creation of the gang to the removal of its last gate."""
    of_muster = audit.of_user(taken.cost.requests, audit.MUSTER)
    removals = [request.at for request in of_muster if request.name == REMOVAL]
    bindings = [request.at for request in taken.cost.requests if request.name == BINDING]
    return taken.wall - (max(bindings) - max(removals))


def main() -> None:
    """Measure other sizes, print the figure, and save it outside of the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=main.__doc__)
    default = Settings()
    parser.add_argument("--trainjobs", type=int, nargs="*", default=default.trainjobs)
    parser.add_argument("--gangs", type=int, nargs="*", default=default.gangs)
    parser.add_argument("--functions", choices=OVERLAYS, default=default.functions)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    given = parser.parse_args()
    figure = measure(Settings(tuple(given.trainjobs), tuple(given.gangs), given.functions))
    figure.save(given.out)
    print(report.chapter(figure))


if __name__ == "__main__":
    main()
