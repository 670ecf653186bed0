"""The results: docs/speed.md and, in docs/speed, the page and the plots of each figure, from the raw data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from bench.figures import RESULTS, ROOT, Figure, Goal, Measure

PAGE = ROOT / "docs" / "speed.md"
FOLDER = ROOT / "docs" / "speed"
"""Has the page and the plots of each figure."""

WIDEST = 5
"""The most subjects that are columns, unless there are more measures."""

HEAD = """# Speed

Each figure is measured beside a reference in the same run: [bench](../bench/README.md) says how. `×` is the
median of the ratios to the reference in the same round: ratios carry over to other machines, absolute figures
do not. Why goals are missed: [decision 8](decisions/0008-where-the-time-of-a-gang-goes.md).
`make bench` writes this page and those of the figures from the raw data in [bench/results](../bench/results).
"""


def figures(names: Iterable[str], folder: Path = RESULTS) -> list[Figure]:
    """Return the figures of these names that have been measured, in this order."""
    paths = [folder / f"{name}.json" for name in names]
    return [Figure.load(path) for path in paths if path.exists()]


def overview(results: Sequence[Figure]) -> str:
    """Return docs/speed.md: a row for each figure, then the goals of each."""
    header = ["figure", "goals met", "measured"]
    rows = [
        [f"[{figure.title}](speed/{figure.name}.md)", _goals_met(figure), figure.environment.date]
        for figure in results
    ]
    chapters = [f"## {figure.title}\n\n{goals}" for figure in results if (goals := _goals(figure.measures))]
    return "\n".join([HEAD, _markdown(header, rows), *chapters])


def _goals_met(figure: Figure) -> str:
    """Return how many goals are met, such as `5 of 12`; `none` if there are none."""
    met = [measure.met(goal) for measure in figure.measures for goal in measure.goals]
    return f"{sum(met)} of {len(met)}" if met else "none"


def page(figure: Figure) -> str:
    """Return the page of a figure: how it was measured, its tables and its plots."""
    where = figure.environment
    lines = [
        f"# {figure.title}\n",
        f"{figure.description}\n",
        (
            f"Measured {where.date} on {where.processor} (load {where.load:g}), Python {where.python}, commit"
            f" {where.commit}. Alone: `make bench FIGURE={figure.name}`. A cell has the median and, in"
            " brackets, the quartiles; goals and what `×` is: [speed](../speed.md).\n"
        ),
    ]
    for group, members in groupby(figure.measures, attrgetter("group")):
        if group:
            lines.append(f"## {group}\n")
        lines.append(_table(list(members)))
    lines += [f"![{plot.stem}]({plot.name})\n" for plot in plots_of(figure)]
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
    return _markdown(header, rows)


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


def _goals(measures: Iterable[Measure]) -> str:
    """Return the table of goals; empty if there are none."""
    rows = [_goal(measure, goal) for measure in measures for goal in measure.goals]
    return _markdown(["goal", "limit", "measured", "met"], rows) if rows else ""


def _goal(measure: Measure, goal: Goal) -> list[str]:
    unit = f" × {goal.reference}" if goal.reference else f" {measure.unit}".rstrip()
    sign = "≥" if goal.at_least else "≤"
    what = f"{measure.group}: " if measure.group else ""
    return [
        f"{what}{_label(measure)}: {goal.subject}",
        f"{sign} {number(goal.limit)}{unit}",
        f"{number(measure.reached(goal))}{unit}",
        "yes" if measure.met(goal) else "**no**",
    ]


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float) -> str:
    """Return a number with three significant digits, `1,230` or `0.0123`."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def plots_of(figure: Figure, folder: Path = FOLDER) -> list[Path]:
    """Return the paths of a figure's plots: one if it has curves or ratios, else none."""
    curves = any(measure.at is not None for measure in figure.measures)
    ratios = any(measure.reference for measure in figure.measures)
    return [folder / f"{figure.name}.svg"] if curves or ratios else []


def pages(names: Iterable[str]) -> dict[Path, str]:
    """Return the text of all pages by path, of the figures of these names that have been measured."""
    results = figures(names)
    return {PAGE: overview(results)} | {FOLDER / f"{figure.name}.md": page(figure) for figure in results}


def write(names: Sequence[str]) -> None:
    """Write the pages and draw the plots of all figures that have been measured."""
    # matplotlib is in the extra `bench` alone; the text of the pages is tested without it.
    from bench import plots  # noqa: PLC0415

    FOLDER.mkdir(exist_ok=True)
    for path, text in pages(names).items():
        path.write_text(text)
    for figure in figures(names):
        for path in plots_of(figure):
            plots.draw(figure, path)
