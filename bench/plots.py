"""Plots of a figure as SVG: curves over sizes, and bars of ratios to the reference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from bench.figures import Figure, Measure

WIDTH, ROW, CURVE = 9.0, 0.32, 3.6
"""Inches: the width of a plot, the height of a bar, the height of a curve."""


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
    """A bar per subject and quantity: the median ratio to the reference, which is 1."""
    rows = [
        (f"{measure.group}: {measure.name}" if measure.group else measure.name, subject, measure)
        for measure in measures
        for subject in measure.samples
        if measure.reference and subject != measure.reference and 0 not in measure.samples[measure.reference]
    ]
    canvas = Canvas(figsize=(WIDTH, 1 + ROW * len(rows)), layout="constrained")
    axes = canvas.add_subplot()
    for place, (_, subject, measure) in enumerate(rows):
        ratio = measure.ratio(subject)
        error = [[ratio.median - ratio.low], [ratio.high - ratio.median]]
        axes.barh(place, ratio.median, xerr=error, color="tab:blue")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [f"{name}, {subject}" for name, subject, _ in rows])
    axes.invert_yaxis()
    axes.set_xlabel("× reference")
    return canvas
