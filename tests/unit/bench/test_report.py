"""The pages of results say what the raw data say."""

from __future__ import annotations

import pytest

from bench import report
from bench.figures import Environment, Figure, Goal, Measure


def a_figure(*measures: Measure) -> Figure:
    """A figure with these measures."""
    where = Environment("2026-11-22", "abc", "3.11", "any", 0.5)
    return Figure("cold-start", "Cold start", "From start to answer.", where, measures)


def lines(*measures: Measure) -> list[str]:
    """The lines of the page of a figure with these measures."""
    return report.page(a_figure(*measures)).splitlines()


def test_a_cell_has_median_quartiles_and_ratio() -> None:
    """Each subject beside its reference."""
    measure = Measure("start", "s", {"floor": (1, 2, 3), "muster": (4, 4, 9)}, reference="floor")
    assert "| start, s | 2 (1.5 to 2.5) | 4 (4 to 6.5), 3 × |" in lines(measure)


def test_a_count_has_no_spread() -> None:
    """Nor a ratio without a reference; its note gets a column."""
    page = lines(Measure("get jobs", "", {"muster": (8,), "smallest": (1,)}, note="the owner, live"))
    assert "| get jobs | 8 | 1 | the owner, live |" in page
    assert "|  | muster | smallest | why |" in page


def test_a_goal_that_is_missed_is_shown() -> None:
    """With what was reached, and how many of the figure are met."""
    measure = Measure(
        "start", "s", {"floor": (1,), "muster": (3,)}, "all", goals=(Goal("muster", 2, "floor"),)
    )
    overview = report.overview([a_figure(measure)]).splitlines()
    assert "| all: start, s: muster | ≤ 2 × floor | 3 × floor | **no** |" in overview
    assert "| [Cold start](speed/cold-start.md) | 0 of 1 | 2026-11-22 |" in overview


def test_a_figure_without_goals_has_no_chapter() -> None:
    """It is in the table of figures only."""
    overview = report.overview([a_figure(Measure("calls", "", {"muster": (8,)}))])
    assert "| [Cold start](speed/cold-start.md) | none | 2026-11-22 |" in overview
    assert "## Cold start" not in overview


def test_only_curves_and_ratios_are_drawn() -> None:
    """A table of counts says it all."""
    count = Measure("calls", "", {"muster": (8,)})
    curve = Measure("time", "s", {"muster": (8,)}, at=10, axis="jobs")
    assert not report.plots_of(a_figure(count))
    assert [path.name for path in report.plots_of(a_figure(curve))] == ["cold-start.svg"]


@pytest.mark.parametrize(
    ("value", "text"), [(0.012345, "0.0123"), (1.5, "1.5"), (99.95, "100"), (1234, "1,230"), (0, "0")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    """As many as can be distinguished."""
    assert report.number(value) == text
