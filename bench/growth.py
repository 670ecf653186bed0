"""How cost grows with the number of TrainJobs, and with the number of pods of one gang.

On the same two control planes as `jobs`, in turns: TrainJobs of 8 pods, all created at once, beside those
of a cluster without Muster; and one Job of many pods as a gang, beside the gang that the Job controller makes
of it (`in-tree`). Requests are those of the API server's audit log, without the benchmark's own.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import audit, report
from bench.figures import ROOT, Environment, Figure, Goal, Measure, progress
from bench.jobs import IN_TREE, MUSTER, PLAIN, TRAINJOB_PODS, subjects_of_jobs, subjects_of_trainjobs
from bench.stages import NODE_PODS, OVERLAYS, both
from bench.turns import Round, Rounds, Turns, of_each

SPARE_NODES = 5
PATIENCE = 400.0
BINDING, REMOVAL = "create pods/binding", "patch pods"


@dataclass(frozen=True)
class Settings:
    """How far it goes.

    Attributes:
        trainjobs: numbers of TrainJobs, ascending.
        gangs: numbers of pods of one gang, ascending.
        functions: how Muster's functions are served, a key of `OVERLAYS`.
    """

    trainjobs: tuple[int, ...] = (10, 100)
    gangs: tuple[int, ...] = (100, 1000)
    functions: str = "processes"

    @property
    def nodes(self) -> int:
        """Nodes for the largest."""
        pods = max([*self.gangs, *(TRAINJOB_PODS * number for number in self.trainjobs)])
        return -(-pods // NODE_PODS) + SPARE_NODES


def measure(settings: Settings | None = None) -> Figure:
    """Return times, requests, CPU time and memory by size."""
    settings = settings or Settings()
    environment = Environment.now()
    measures: list[Measure] = []
    with both(settings.functions, settings.nodes) as (reference, muster):
        numbers = itertools.count(1)
        for size in settings.gangs:
            progress(f"one gang of {size} pods")
            subjects = subjects_of_jobs(reference, muster, size)
            gangs = [subject for subject in subjects if subject.name != PLAIN]
            measures += _gang(size, Turns(gangs, size, numbers, PATIENCE).bursts(1, 1))
        for size in settings.trainjobs:
            progress(f"{size} TrainJobs")
            trainjobs = subjects_of_trainjobs(reference, muster)
            # Deleting the last ones would take longer than making them; the clusters end anyway.
            turns = Turns(trainjobs, TRAINJOB_PODS, numbers, PATIENCE, clears=size != settings.trainjobs[-1])
            measures += _trainjobs(size, turns.bursts(size, 1))
    # By quantity: each is one curve.
    measures.sort(key=lambda one: (one.axis, [two.name for two in measures].index(one.name)))
    return Figure(
        name="growth",
        title="Growth",
        description=" ".join((__doc__ or "").split()),
        environment=environment,
        measures=tuple(measures),
    )


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
    print(report.page([figure]))


if __name__ == "__main__":
    main()
