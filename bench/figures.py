"""The typed result of a benchmark, and its raw data as JSON in bench/results."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from bench.samples import Summary, ratios

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"

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
        group: the table that shows it.
        reference: the subject that the others are compared with; empty for none.
        at: the size that it was measured at, for a curve over sizes.
        axis: what `at` counts, such as `pods of the gang`.
        goals: limits that docs/speed.md compares the medians with.
        note: a sentence for the table.
    """

    name: str
    unit: str
    samples: Mapping[str, tuple[float, ...]]
    group: str = ""
    reference: str = ""
    at: float | None = None
    axis: str = ""
    goals: tuple[Goal, ...] = ()
    note: str = ""

    def summary(self, subject: str) -> Summary:
        """Return median and quartiles of a subject."""
        return Summary.of(self.samples[subject])

    def ratio(self, subject: str, reference: str = "") -> Summary:
        """Return median and quartiles of a subject's ratios to a reference, round by round."""
        return Summary.of(ratios(self.samples[subject], self.samples[reference or self.reference]))

    def reached(self, goal: Goal) -> float:
        """Return what a goal limits: the median of the subject, or of its ratios."""
        summary = self.ratio(goal.subject, goal.reference) if goal.reference else self.summary(goal.subject)
        return summary.median

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
        model = re.search(r"^model name\s*: (.*)$", _read("/proc/cpuinfo"), re.MULTILINE)
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
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
        title: the heading of its page.
        description: a paragraph on what is measured and how.
        environment: where and when.
        measures: the measured quantities.
    """

    name: str
    title: str
    description: str
    environment: Environment
    measures: tuple[Measure, ...]

    def save(self, folder: Path = RESULTS) -> Path:
        """Write the raw data to `<folder>/<name>.json` and return the path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_bytes(_FIGURE.dump_json(self, indent=1, exclude_defaults=True) + b"\n")
        return path

    @classmethod
    def load(cls, path: Path) -> Figure:
        """Return the figure that `save` wrote."""
        return _FIGURE.validate_json(path.read_bytes())


_FIGURE: TypeAdapter[Figure] = TypeAdapter(Figure)


def in_turns(subjects: Mapping[str, Callable[[], Result]], rounds: int) -> dict[str, list[Result]]:
    """Call every subject once per round (A B A B …) and return the results by subject."""
    results: dict[str, list[Result]] = {name: [] for name in subjects}
    for number in range(rounds):
        for name, measure in subjects.items():
            progress(f"round {number + 1} of {rounds}: {name}")
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


def _read(path: str) -> str:
    file = Path(path)
    return file.read_text() if file.exists() else ""
