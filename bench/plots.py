"""Plots of a figure as SVG: curves over sizes, and bars of ratios to the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from bench.figures import Figure, Measure
from bench.samples import Summary

WIDTH, ROW, CURVE = 11.0, 0.24, 3.6
"""Inches: the width of a page of plots, the height of a bar, the height of a curve."""
COLUMNS = 2


def draw(figure: Figure, path: Path) -> None:
    """Draw a figure's curves, or its ratios if it has no curves."""
    # Without a salt and a date the same data give the same file.
    mpl.rcParams["svg.hashsalt"] = figure.name
    mpl.rcParams["svg.fonttype"] = "none"
    curves = [measure for measure in figure.measures if measure.at is not None]
    canvas = _curves(curves) if curves else _bars(figure.measures)
    canvas.savefig(path, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")


def _curves(measures: Sequence[Measure]) -> Canvas:
    """One plot per quantity, one line per subject, with quartiles as a band."""
    by_name = [
        (key, list(members))
        for key, members in groupby(measures, lambda m: (m.group, m.name, m.unit, m.axis))
    ]
    canvas = Canvas(figsize=(WIDTH, CURVE * len(by_name)), layout="constrained")
    for place, ((group, name, unit, axis), members) in enumerate(by_name, start=1):
        axes = canvas.add_subplot(len(by_name), 1, place)
        for subject in members[0].samples:
            _line(axes, subject, members)
        axes.set_title(f"{group}: {name}" if group else name)
        axes.set_xlabel(axis)
        axes.set_ylabel(unit)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.legend()
    return canvas


def _line(axes: Axes, subject: str, members: Sequence[Measure]) -> None:
    points = [
        (measure.at or 0, measure.summary(subject)) for measure in members if subject in measure.samples
    ]
    sizes = [at for at, _ in points]
    axes.plot(sizes, [summary.median for _, summary in points], marker="o", label=subject)
    axes.fill_between(sizes, [s.low for _, s in points], [s.high for _, s in points], alpha=0.2)


def _bars(measures: Sequence[Measure]) -> Canvas:
    """One plot per quantity, with a bar for each subject in each group: its ratio to the reference."""
    compared = [measure for measure in measures if measure.reference]
    names = list(dict.fromkeys((measure.name, measure.reference) for measure in compared))
    panels = [
        _ratios([measure for measure in compared if (measure.name, measure.reference) == name])
        for name in names
    ]
    rows = -(-len(panels) // COLUMNS)
    height = rows * (1 + ROW * max(map(len, panels)))
    canvas = Canvas(figsize=(WIDTH, height), layout="constrained")
    for place, ((name, reference), ratios) in enumerate(zip(names, panels, strict=True), start=1):
        axes = canvas.add_subplot(rows, min(COLUMNS, len(panels)), place)
        _panel(axes, ratios)
        axes.set_title(f"{name}, × {reference}", fontsize="medium")
    return canvas


def _ratios(measures: Sequence[Measure]) -> dict[tuple[str, str], Summary]:
    """Return the ratios by group and subject."""
    return {
        (measure.group, subject): measure.ratio(subject)
        for measure in measures
        for subject in measure.samples
        if subject != measure.reference and 0 not in measure.samples[measure.reference]
    }


def _panel(axes: Axes, ratios: Mapping[tuple[str, str], Summary]) -> None:
    groups = {group for group, _ in ratios}
    subjects = list(dict.fromkeys(subject for _, subject in ratios))
    for place, ((_, subject), ratio) in enumerate(ratios.items()):
        error = [[ratio.median - ratio.low], [ratio.high - ratio.median]]
        axes.barh(place, ratio.median, xerr=error, color=f"C{subjects.index(subject)}")
    axes.axvline(1, color="black", linewidth=0.8)
    labels = [f"{group}: {subject}" if len(groups) > 1 else subject for group, subject in ratios]
    axes.set_yticks(range(len(ratios)), labels, fontsize="small")
    axes.invert_yaxis()
