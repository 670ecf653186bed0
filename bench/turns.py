"""Subjects on real control planes that take turns, and what each did in its round."""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.driver import Timing
from bench.figures import progress
from bench.stages import PATIENCE, Cost, NotAsWritten, Stage

Object = dict[str, Any]

PAUSE_SECONDS = 0.3


@dataclass(frozen=True)
class Subject:
    """One of those compared.

    Attributes:
        name: in the tables.
        stage: where it runs.
        write: makes an owner of a name.
        gangs: whether each owner becomes a gang of all its pods.
    """

    name: str
    stage: Stage
    write: Callable[[str], Object]
    gangs: bool


@dataclass(frozen=True)
class Round:
    """What one subject did in one round.

    Attributes:
        owners: how many were created.
        delays: of each, from its request to its last bound pod, in seconds.
        wall: from the first request to the last bound pod of all, without pauses.
        cost: of all of them, until everything was settled.
    """

    owners: int
    delays: Sequence[float]
    wall: float
    cost: Cost


Rounds = Mapping[str, Sequence[Round]]
"""The rounds of each subject, in turns."""


@dataclass
class Turns:
    """Lets subjects take turns.

    Attributes:
        subjects: in their order.
        pods: of each owner.
        numbers: of owners so far; no name is used twice.
        patience: seconds within which the pods of a burst have to be bound.
        clears: whether owners are deleted after each round.
        until: when no further round begins that would end later, on the monotonic clock.
    """

    subjects: Sequence[Subject]
    pods: int
    numbers: Iterator[int]
    patience: float = PATIENCE
    clears: bool = True
    until: float = math.inf

    def bursts(self, size: int, rounds: int, expected: float = 0) -> Rounds:
        """Create so many owners at once, in each round.

        Args:
            size: of a burst.
            rounds: at most.
            expected: seconds that the first round will take; there is none if the time does not suffice.
        """
        return self._rounds(f"burst of {size}", rounds, lambda subject: self._burst(subject, size), expected)

    def alone(self, rounds: int, each: int) -> Rounds:
        """Create owners one after another, each when the one before is bound, so many in each round."""
        return self._rounds("one at a time", rounds, lambda subject: self._one_by_one(subject, each))

    def _rounds(
        self, words: str, rounds: int, measure: Callable[[Subject], Round], expected: float = 0
    ) -> Rounds:
        done: dict[str, list[Round]] = defaultdict(list)
        for number in range(rounds):
            began = time.monotonic()
            if began + expected > self.until:
                progress(f"{words}: {number} of {rounds} rounds, for more the time does not suffice")
                break
            for subject in self.subjects:
                taken = measure(subject)
                done[subject.name].append(taken)
                progress(
                    f"{words}, round {number + 1} of {rounds}: {subject.name:8} median"
                    f" {statistics.median(taken.delays):.3f} s, all in {taken.wall:.2f} s;"
                    f" other programs took {taken.cost.others:.0%} of the machine"
                )
            expected = max(expected, time.monotonic() - began)
        return done

    def _burst(self, subject: Subject, size: int) -> Round:
        owners = [self._next(subject) for _ in range(size)]
        timings: list[Timing] = []

        def create_all() -> None:
            timings.append(subject.stage.create(owners, self.pods, seconds=self.patience))

        cost = subject.stage.cost_of(create_all)
        self._end(subject, owners)
        return Round(size, timings[0].delays, timings[0].wall, cost)

    def _one_by_one(self, subject: Subject, count: int) -> Round:
        owners = [self._next(subject) for _ in range(count)]
        timings: list[Timing] = []

        def create_each() -> None:
            for owner in owners:
                timings.append(subject.stage.create([owner], self.pods))
                time.sleep(PAUSE_SECONDS)

        cost = subject.stage.cost_of(create_each)
        self._end(subject, owners)
        delays = [delay for timing in timings for delay in timing.delays]
        return Round(count, delays, sum(delays), cost)

    def _next(self, subject: Subject) -> Object:
        return subject.write(f"{subject.name.lower().replace('-', '')}-{next(self.numbers)}")

    def _end(self, subject: Subject, owners: Sequence[Object]) -> None:
        """Check that the subject did what it stands for, and delete the owners."""
        gangs = subject.stage.gangs()
        expected = Counter({self.pods: len(owners)}) if subject.gangs else Counter[int]()
        if gangs != expected:
            raise NotAsWritten(f"{subject.name}: gangs by minCount are {dict(gangs)}, not {dict(expected)}")
        if self.clears:
            subject.stage.clear(owners)


def of_each(rounds: Rounds, value: Callable[[Round], float]) -> dict[str, tuple[float, ...]]:
    """Return one value of each round, by subject."""
    return {name: tuple(rounded(value(taken)) for taken in of_subject) for name, of_subject in rounds.items()}


def rounded(value: float) -> float:
    """Return six significant digits; more would be noise in the raw data."""
    return float(f"{value:.6g}")
