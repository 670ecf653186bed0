"""Subjects take turns, and a subject that did something else than it stands for is no result."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bench import turns
from bench.driver import Timing
from bench.stages import Cost, NotAsWritten
from bench.turns import Subject, Turns
from tests.e2e.support.owners import a_job

Object = dict[str, Any]


class FakeStage:
    """Binds the pods of the n-th owner n seconds after all were created at 0."""

    def __init__(self, *, gangs: bool) -> None:
        self.calls: list[list[str]] = []
        self._gangs = gangs
        self._jobs: list[Object] = []

    def create(self, owners: Sequence[Object], _pods: int, *, seconds: float = 0) -> Timing:
        """Note the owners."""
        del seconds
        names = [owner["metadata"]["name"] for owner in owners]
        self.calls.append(names)
        self._jobs += owners
        bound = {name: float(number) for number, name in enumerate(names, start=1)}
        return Timing(dict.fromkeys(names, 0.0), bound)

    def cost_of(self, act: Callable[[], object]) -> Cost:
        """Cost nothing."""
        act()
        return Cost([], {}, {}, {}, 0)

    def gangs(self) -> Counter[int]:
        """One for each Job, or none."""
        return Counter(job["spec"]["parallelism"] for job in self._jobs if self._gangs)

    def clear(self, _owners: Sequence[Object]) -> None:
        """Forget all."""
        self._jobs.clear()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to settle here."""
    monkeypatch.setattr(turns, "PAUSE_SECONDS", 0)


def a_subject(name: str, stage: FakeStage, *, gangs: bool = False) -> Subject:
    """A subject of Jobs of two pods."""
    return Subject(name, stage, lambda job: a_job(job, pods=2), gangs=gangs)  # type: ignore[arg-type]


def test_a_burst_is_created_at_once() -> None:
    """By each subject in its turn, under names of its own."""
    stage = FakeStage(gangs=False)
    rounds = Turns([a_subject("plain", stage), a_subject("Muster", stage)], 2, itertools.count(1)).bursts(
        2, 2
    )
    assert stage.calls == [["plain-1", "plain-2"], ["muster-3", "muster-4"], ["plain-5", "plain-6"],
                           ["muster-7", "muster-8"]]  # fmt: skip
    assert [(taken.delays, taken.wall) for taken in rounds["Muster"]] == [([1.0, 2.0], 2.0)] * 2


def test_jobs_are_created_one_at_a_time() -> None:
    """Each waits for the one before."""
    stage = FakeStage(gangs=False)
    rounds = Turns([a_subject("plain", stage)], 2, itertools.count(1)).alone(1, 3)
    assert stage.calls == [["plain-1"], ["plain-2"], ["plain-3"]]
    assert rounds["plain"][0].delays == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("gangs", [True, False])
def test_gangs_are_counted(gangs: bool) -> None:
    """Too few or too many: the times would be those of something else."""
    with pytest.raises(NotAsWritten, match="gangs by minCount"):
        Turns([a_subject("Muster", FakeStage(gangs=gangs), gangs=not gangs)], 2, itertools.count(1)).bursts(
            3, 1
        )
    Turns([a_subject("Muster", FakeStage(gangs=gangs), gangs=gangs)], 2, itertools.count(1)).bursts(3, 1)


def test_no_round_begins_that_would_end_too_late() -> None:
    """Expected by the caller, or by the rounds before."""
    stage = FakeStage(gangs=False)
    in_a_minute = Turns([a_subject("plain", stage)], 2, itertools.count(1), until=time.monotonic() + 60)
    assert in_a_minute.bursts(1, 1, expected=90) == {}
    assert len(in_a_minute.bursts(1, 2, expected=1)["plain"]) == 2
