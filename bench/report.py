"""The results page: docs/speed.md and its plots, from the raw data in bench/results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from bench.figures import RESULTS, ROOT, Figure, Goal, Measure

PAGE = ROOT / "docs" / "speed.md"
PLOTS = ROOT / "docs" / "speed"

WIDEST = 5
"""The most subjects that are columns, unless there are more measures."""

HEAD = """# Speed

Written by `make bench` from the raw data in [bench/results](../bench/results); how each figure is measured:
[bench](../bench/README.md). A cell has the median and, in brackets, the quartiles. `×` is the median of the
ratios to the reference in the same round: ratios carry over to other machines, absolute figures do not.
"""


def figures(names: Iterable[str], folder: Path = RESULTS) -> list[Figure]:
    """Return the figures of these names that have been measured, in this order."""
    paths = [folder / f"{name}.json" for name in names]
    return [Figure.load(path) for path in paths if path.exists()]


def page(results: Iterable[Figure]) -> str:
    """Return the results page as Markdown."""
    return "\n".join([HEAD, *(_chapter(figure) for figure in results)])


def _chapter(figure: Figure) -> str:
    where = figure.environment
    lines = [
        f"## {figure.title}\n",
        f"{figure.description}\n",
        (
            f"Measured {where.date} on {where.processor} (load {where.load:g}), Python {where.python}, commit"
            f" {where.commit}. Alone: `make bench FIGURE={figure.name}`.\n"
        ),
    ]
    for group, members in groupby(figure.measures, lambda measure: measure.group):
        if group:
            lines.append(f"### {group}\n")
        lines.append(_table(list(members)))
    lines += [f"![{plot.stem}](speed/{plot.name})\n" for plot in plots_of(figure)]
    lines += _goals(figure.measures)
    return "\n".join(lines)


def _table(measures: Sequence[Measure]) -> str:
    """Return the table of a group: a row for each measure, or for each subject if these are too many."""
    subjects = list(dict.fromkeys(subject for measure in measures for subject in measure.samples))
    if len(subjects) > max(len(measures), WIDEST):
        header = ["", *map(_label, measures)]
        rows = [[subject, *(_cell(measure, subject) for measure in measures)] for subject in subjects]
    else:
        noted = any(measure.note for measure in measures)
        header = ["", *subjects, *(["why"] if noted else [])]
        rows = [
            [
                _label(measure),
                *(_cell(measure, subject) for subject in subjects),
                *([measure.note] if noted else []),
            ]
            for measure in measures
        ]
    return "\n".join([_row(header), "|" + "---|" * len(header), *map(_row, rows)]) + "\n"


def _label(measure: Measure) -> str:
    label = f"{measure.name}, {measure.unit}" if measure.unit else measure.name
    return label if measure.at is None else f"{label}, {measure.at:,g} {measure.axis}"


def _cell(measure: Measure, subject: str) -> str:
    """Return median, quartiles and ratio of a subject; empty if it was not measured."""
    if subject not in measure.samples:
        return ""
    summary = measure.summary(subject)
    text = number(summary.median)
    if summary.low != summary.high:
        text += f" ({number(summary.low)} to {number(summary.high)})"
    if measure.reference and subject != measure.reference and 0 not in measure.samples[measure.reference]:
        text += f", {number(measure.ratio(subject).median)} ×"
    return text


def _goals(measures: Iterable[Measure]) -> list[str]:
    """Return the table of goals, or nothing."""
    rows = [_goal(measure, goal) for measure in measures for goal in measure.goals]
    if not rows:
        return []
    return ["\n".join([_row(["goal", "limit", "measured", "met"]), "|---|---|---|---|", *rows]) + "\n"]


def _goal(measure: Measure, goal: Goal) -> str:
    unit = f" × {goal.reference}" if goal.reference else f" {measure.unit}".rstrip()
    sign = "≥" if goal.at_least else "≤"
    what = f"{measure.group}: " if measure.group else ""
    return _row(
        [
            f"{what}{_label(measure)}: {goal.subject}",
            f"{sign} {number(goal.limit)}{unit}",
            f"{number(measure.reached(goal))}{unit}",
            "yes" if measure.met(goal) else "**no**",
        ]
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def number(value: float) -> str:
    """Return a number with three significant digits, `1,230` or `0.0123`."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def plots_of(figure: Figure, folder: Path = PLOTS) -> list[Path]:
    """Return the paths of a figure's plots: one if it has curves or ratios, else none."""
    curves = any(measure.at is not None for measure in figure.measures)
    ratios = any(measure.reference for measure in figure.measures)
    return [folder / f"{figure.name}.svg"] if curves or ratios else []


def write(names: Iterable[str]) -> None:
    """Write the page and draw the plots of all figures that have been measured."""
    # matplotlib is in the extra `bench` alone; the page's text is tested without it.
    from bench import plots  # noqa: PLC0415

    results = figures(names)
    PAGE.write_text(page(results))
    PLOTS.mkdir(exist_ok=True)
    for figure in results:
        for path in plots_of(figure):
            plots.draw(figure, path)
