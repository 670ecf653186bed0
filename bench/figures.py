"""What was measured: raw data as JSON in bench/results, and docs/speed.md, which compares them with goals."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "speed.md"
HEAD = """# Speed

Each figure is measured beside a reference in the same run: [bench](../bench/README.md) says how. `×` is the
median of the ratios to the reference in the same round, which carry over to other machines.
Why goals are missed: [decision 8](decisions/0008-where-the-time-of-a-gang-goes.md).
`make bench` writes this page from the raw data in [bench/results](../bench/results).
"""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Goal:
    """A limit to the median of a subject.

    Attributes:
        subject: whose samples are limited.
        limit: the highest median, in the measure's unit or as a ratio.
        reference: the subject of the ratio; empty for an absolute limit.
        at_least: whether `limit` is the lowest median instead.
    """

    subject: str
    limit: float
    reference: str = ""
    at_least: bool = False


@dataclass(frozen=True)
class Measure:
    """A quantity that was measured for several subjects in turns.

    Attributes:
        name: what was measured, such as `process start to first answer`.
        unit: of the samples, such as `ms`; empty for a count.
        samples: by subject; those at the same position are of the same round.
        group: what it belongs to.
        goals: limits that docs/speed.md compares the medians with.
    """

    name: str
    unit: str
    samples: Mapping[str, Sequence[float]]
    group: str = ""
    goals: Sequence[Goal] = ()

    def reached(self, goal: Goal) -> float:
        """Return what a goal limits: the median of the subject, or of its ratios, round by round."""
        samples = self.samples[goal.subject]
        if not goal.reference:
            return statistics.median(samples)
        pairs = zip(samples, self.samples[goal.reference], strict=True)
        return statistics.median(sample / base for sample, base in pairs)

    def met(self, goal: Goal) -> bool:
        """Return whether a goal is reached."""
        reached = self.reached(goal)
        return reached >= goal.limit if goal.at_least else reached <= goal.limit


@dataclass(frozen=True)
class Environment:
    """Where and when a figure was measured.

    Attributes:
        date: of the measurement, as 2026-11-22.
        commit: of Muster, with `+` if files were changed since.
        python: its version.
        processor: model and number of cores.
        load: average number of running processes in the minute before; on an idle machine near 0.
    """

    date: str
    commit: str
    python: str
    processor: str
    load: float

    @classmethod
    def now(cls) -> Environment:
        """Return that of this machine."""
        model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        describe = ["git", "describe", "--always", "--dirty=+"]
        commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True, check=False)
        return cls(
            date=datetime.now(UTC).date().isoformat(),  # noqa: TID251 - a result has its date
            commit=commit.stdout.strip(),
            python=platform.python_version(),
            processor=f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores",
            load=round(os.getloadavg()[0], 1),
        )


@dataclass(frozen=True)
class Figure:
    """The result of one benchmark.

    Attributes:
        name: as in `make bench FIGURE=cold-start`.
        title: the heading of its chapter.
        measures: the measured quantities.
        environment: where and when.
    """

    name: str
    title: str
    measures: Sequence[Measure]
    environment: Environment = field(default_factory=Environment.now)

    def save(self) -> None:
        """Write the raw data to bench/results: a measure in each line."""
        head = {"name": self.name, "title": self.title, "environment": asdict(self.environment)}
        measures = ",\n".join(json.dumps(asdict(measure), ensure_ascii=False) for measure in self.measures)
        text = f'{json.dumps(head)[:-1]}, "measures": [\n{measures}\n]}}\n'
        (RESULTS / f"{self.name}.json").write_text(text)


def figures(names: Iterable[str]) -> list[Figure]:
    """Return the figures of these names that have been measured, in this order."""
    adapter = TypeAdapter(Figure)
    paths = [RESULTS / f"{name}.json" for name in names]
    return [adapter.validate_json(path.read_bytes()) for path in paths if path.exists()]


def page(results: Iterable[Figure]) -> str:
    """Return the text of docs/speed.md."""
    return "\n".join([HEAD, *map(chapter, results)])


def chapter(figure: Figure) -> str:
    """Return the goals of a figure, and how far they are met."""
    where = figure.environment
    rows: dict[tuple[str, Goal], list[tuple[Measure, Goal]]] = {}
    for measure in figure.measures:
        for goal in measure.goals:
            anybodys = Goal("", goal.limit, goal.reference, goal.at_least)
            rows.setdefault((_label(measure), anybodys), []).append((measure, goal))
    machine = f"{where.processor} (load {where.load:g}), Python {where.python}"
    head = f"## {figure.title}\n\nMeasured {where.date} on {machine}, commit {where.commit}.\n"
    table = "| goal | limit | measured | met |\n|---|---|---|---|"
    return "\n".join([head, table, *map(_row, rows.values()), "", *_costs(figure.measures)])


def _costs(measures: Sequence[Measure]) -> Iterator[str]:
    """Yield the table of times beside those of the Job controller's gangs and of plain Jobs, if any."""
    names = ("plain", "in-tree", "Muster")
    compared = [one for one in measures if one.unit == "s" and {"in-tree", "Muster"} <= one.samples.keys()]
    if compared:
        yield "| median | plain | in-tree | Muster |\n|---|---|---|---|"
    for measure in compared:
        found = [measure.samples.get(name) for name in names]
        cells = [number(statistics.median(values)) if values else "" for values in found]
        yield f"| {' | '.join([f'{measure.group}: {_label(measure)}', *cells])} |"
    if compared:
        yield ""


def _label(measure: Measure) -> str:
    return f"{measure.name}, {measure.unit}" if measure.unit else measure.name


def _row(goals: Sequence[tuple[Measure, Goal]]) -> str:
    measure, goal = goals[0]
    groups = {one.group for one, _ in goals}
    what = f"{measure.group}: " if len(groups) == 1 and measure.group else ""
    unit = f" × {goal.reference}" if goal.reference else f" {measure.unit}".rstrip()
    reached = sorted(one.reached(limit) for one, limit in goals)
    ends = " to ".join(dict.fromkeys(map(number, (reached[0], reached[-1]))))
    met = sum(one.met(limit) for one, limit in goals)
    verdict = ("yes" if met else "**no**") if len(goals) == 1 else f"{met} of {len(goals)}"
    limit = f"{'≥' if goal.at_least else '≤'} {number(goal.limit)}"
    return f"| {what}{_label(measure)} | {limit}{unit} | {ends}{unit} | {verdict} |"


def number(value: float) -> str:
    """Return a number with three significant digits, `1,230` or `0.0123`."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def in_turns(subjects: Mapping[str, Callable[[], Result]], rounds: int) -> dict[str, list[Result]]:
    """Call every subject once per round (A B A B …) and return the results by subject."""
    results: dict[str, list[Result]] = {name: [] for name in subjects}
    for round_number in range(rounds):
        for name, measure in subjects.items():
            progress(f"round {round_number + 1} of {rounds}: {name}")
            results[name].append(measure())
    return results


def samples(
    results: Mapping[str, Sequence[Result]], value: Callable[[Result], float]
) -> dict[str, tuple[float, ...]]:
    """Return one value of each result, by subject, rounded to six significant digits."""
    return {
        name: tuple(float(f"{value(result):.6g}") for result in of_subject)
        for name, of_subject in results.items()
    }


def progress(line: str) -> None:
    """Print a line for whoever waits, to stderr."""
    print(line, file=sys.stderr, flush=True)
