"""docs/speed.md: the goals of each figure and how far they are met, from the raw data in bench/results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.figures import RESULTS, ROOT, Figure, Goal, Measure

PAGE = ROOT / "docs" / "speed.md"
HEAD = """# Speed

Each figure is measured beside a reference in the same run: [bench](../bench/README.md) says how. `×` is the
median of the ratios to the reference in the same round: ratios carry over to other machines, absolute figures
do not. A row with several subjects has their lowest and highest median.
Why goals are missed: [decision 8](decisions/0008-where-the-time-of-a-gang-goes.md).
`make bench` writes this page from the raw data in [bench/results](../bench/results).
"""


def figures(names: Iterable[str], folder: Path = RESULTS) -> list[Figure]:
    """Return the figures of these names that have been measured, in this order."""
    paths = [folder / f"{name}.json" for name in names]
    return [Figure.load(path) for path in paths if path.exists()]


def page(results: Sequence[Figure]) -> str:
    """Return the text of docs/speed.md."""
    return "\n".join([HEAD, *map(chapter, results)])


def chapter(figure: Figure) -> str:
    """Return what was measured in a figure, and its goals."""
    where = figure.environment
    rows: dict[tuple[str, float, str], list[tuple[Measure, Goal]]] = {}
    for measure in figure.measures:
        for goal in measure.goals:
            rows.setdefault((_label(measure), goal.limit, goal.reference), []).append((measure, goal))
    return "\n".join(
        [
            f"## {figure.title}\n",
            (
                f"Measured {where.date} on {where.processor} (load {where.load:g}), Python {where.python},"
                f" commit {where.commit}.\n"
            ),
            _markdown(["goal", "limit", "measured", "met"], map(_row, rows.values())),
        ]
    )


def _label(measure: Measure) -> str:
    label = f"{measure.name}, {measure.unit}" if measure.unit else measure.name
    return label if measure.at is None else f"{label}, {measure.at:,g} {measure.axis}"


def _row(goals: Sequence[tuple[Measure, Goal]]) -> list[str]:
    measure, goal = goals[0]
    groups = {one.group for one, _ in goals}
    what = f"{measure.group}: " if len(groups) == 1 and measure.group else ""
    unit = f" × {goal.reference}" if goal.reference else f" {measure.unit}".rstrip()
    reached = sorted(one.reached(limit) for one, limit in goals)
    ends = dict.fromkeys(map(number, (reached[0], reached[-1])))
    met = sum(one.met(limit) for one, limit in goals)
    return [
        what + _label(measure),
        f"{'≥' if goal.at_least else '≤'} {number(goal.limit)}{unit}",
        " to ".join(ends) + unit,
        ("yes" if met else "**no**") if len(goals) == 1 else f"{met} of {len(goals)}",
    ]


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float) -> str:
    """Return a number with three significant digits, `1,230` or `0.0123`."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def write(names: Sequence[str]) -> None:
    """Write docs/speed.md."""
    PAGE.write_text(page(figures(names)))
