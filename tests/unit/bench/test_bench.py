"""Calls aimed at another gang, medians and ratios, and the goals in docs/speed.md."""

from __future__ import annotations

import pytest

from bench import report
from bench.calls import Call, aimed
from bench.figures import Environment, Figure, Goal, Measure
from bench.samples import Summary, quantile, ratios

RECORDED = {
    "name": "gang-001",
    "pod": "gang-001-0",
    "uid": "5d0b4a52-0001",
    "short": "5d0b4a52",
    "version": "500",
}
TARGET = {
    "name": "gang-017",
    "pod": "gang-017-0",
    "uid": "9a3e0c6a-0017",
    "short": "9a3e0c6a",
    "version": "731",
}


def aim(path: str = "/", body: str = "") -> Call:
    """Return a call for the first gang, aimed at the second."""
    return aimed(Call("GET", path, "application/json", body, 200), RECORDED, TARGET)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/pods/gang-001-0", "/pods/gang-017-0"),
        ("/podgroups/gang-001-main-5d0b4a52", "/podgroups/gang-017-main-9a3e0c6a"),
        ("/events?fieldSelector=uid%3D5d0b4a52-0001", "/events?fieldSelector=uid%3D9a3e0c6a-0017"),
        ("/pods?limit=500&resourceVersion=500", "/pods?limit=500&resourceVersion=731"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    """The longest identifier wins; a number is a version only where one can stand."""
    assert aim(path).path == expected


def test_bodies() -> None:
    """Preconditions and owners are those of the other gang; everything else stays."""
    call = aim(body='{"uid":"5d0b4a52-0001","resourceVersion":"500","minCount":500}')
    assert call.body == '{"uid":"9a3e0c6a-0017","resourceVersion":"731","minCount":500}'


def test_a_summary_has_median_and_quartiles() -> None:
    """Interpolated between neighbours."""
    assert Summary.of([4, 1, 3, 2]) == Summary(2.5, 1.75, 3.25)


@pytest.mark.parametrize(("share", "value"), [(0, 10), (0.5, 20), (0.95, 29), (1, 30)])
def test_quantiles(share: float, value: float) -> None:
    """From the smallest to the largest sample."""
    assert quantile([30, 10, 20], share) == pytest.approx(value)


def test_a_share_outside_0_to_1_is_refused() -> None:
    """95 instead of 0.95 would silently be the last sample."""
    with pytest.raises(ValueError, match="95"):
        quantile([1, 2], 95)


def test_ratios_are_of_the_same_round() -> None:
    """A round in which everything is slow does not change them."""
    assert ratios([2, 20, 4], [1, 10, 2]) == [2, 2, 2]


FLOOR = Goal("muster", 2, "floor")


def lines(*measures: Measure) -> list[str]:
    """The lines of the chapter of a figure with these measures."""
    where = Environment("2026-11-22", "abc", "3.11", "any", 0.5)
    return report.chapter(
        Figure("cold-start", "Cold start", "From start to answer.", where, measures)
    ).splitlines()


def test_a_goal_that_is_missed_is_shown() -> None:
    """With the limit and what was reached."""
    measure = Measure("start", "s", {"floor": (1,), "muster": (3,)}, "all", goals=(FLOOR,))
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
    assert report.number(value) == text
