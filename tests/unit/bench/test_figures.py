"""Raw data are kept as they were measured, and goals are compared with medians."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.figures import Environment, Figure, Goal, Measure, in_turns, samples

MEASURE = Measure("start", "s", {"floor": (1.0, 2.0), "muster": (3.0, 4.0)}, reference="floor")
FIGURE = Figure(
    "cold-start", "Cold start", "…", Environment("2026-11-22", "abc", "3.11", "any", 0.5), (MEASURE,)
)


def test_a_figure_is_read_as_it_was_saved(tmp_path: Path) -> None:
    """Samples included, so that a table can be made anew without measuring."""
    assert Figure.load(FIGURE.save(tmp_path)) == FIGURE


def test_subjects_take_turns() -> None:
    """A busy minute then slows all of them."""
    calls: list[str] = []
    results = in_turns({name: lambda name=name: calls.append(name) for name in ("a", "b")}, 2)  # type: ignore[misc]
    assert calls == ["a", "b", "a", "b"]
    assert {name: len(of_subject) for name, of_subject in results.items()} == {"a": 2, "b": 2}


def test_samples_have_six_digits() -> None:
    """More would be noise in the raw data."""
    assert samples({"a": [1 / 3]}, lambda result: result) == {"a": (0.333333,)}


@pytest.mark.parametrize(
    ("goal", "reached", "met"),
    [
        (Goal("muster", 2.5, "floor"), 2.5, True),
        (Goal("muster", 2.4, "floor"), 2.5, False),
        (Goal("muster", 3.5), 3.5, True),
        (Goal("muster", 3.6, at_least=True), 3.5, False),
        (Goal("muster", 2.0, "floor", at_least=True), 2.5, True),
    ],
)
def test_goals(goal: Goal, reached: float, met: bool) -> None:
    """Of the median, or of the median of the ratios round by round."""
    assert (MEASURE.reached(goal), MEASURE.met(goal)) == (reached, met)
