"""The goals in docs/speed.md."""

from __future__ import annotations

import pytest

from bench.figures import Environment, Figure, Goal, Measure, chapter, number

FLOOR = Goal("muster", 2, "floor")


def lines(*measures: Measure) -> list[str]:
    """The lines of the chapter of a figure with these measures."""
    where = Environment("2026-11-22", "abc", "3.11", "any", 0.5)
    return chapter(Figure("cold-start", "Cold start", measures, where)).splitlines()


def test_a_goal_that_is_missed_is_shown() -> None:
    """With the limit and what was reached: the median of the ratios, round by round."""
    measure = Measure("start", "s", {"floor": (1, 10, 2), "muster": (3, 30, 6)}, "all", goals=(FLOOR,))
    assert "| all: start, s | ≤ 2 × floor | 3 × floor | **no** |" in lines(measure)


def test_the_same_goal_of_several_subjects_is_one_row() -> None:
    """With the lowest and the highest median, and how many are met."""
    met = Measure("start", "s", {"floor": (1,), "muster": (1.5,)}, "a", goals=(FLOOR,))
    missed = Measure("start", "s", {"floor": (1,), "muster": (3,)}, "b", goals=(FLOOR,))
    assert "| start, s | ≤ 2 × floor | 1.5 to 3 × floor | 1 of 2 |" in lines(met, missed)


@pytest.mark.parametrize(
    ("value", "text"), [(0.012345, "0.0123"), (1.5, "1.5"), (99.95, "100"), (1234, "1,230"), (0, "0")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    """As many as can be distinguished."""
    assert number(value) == text
