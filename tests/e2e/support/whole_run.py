"""Whether a run of pytest has told every story there is, and each to its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

STORIES = Path(__file__).parents[1]


@dataclass
class WholeRun:
    """What keeps a run from being a whole one.

    Attributes:
        collected: the files of which there are tests in this run.
        left_out: tests that somebody chose to leave out, by their ids.
        failed: tests that did not pass.
    """

    collected: set[Path] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def join(self, others: WholeRun) -> None:
        """Adds what another process collected, left out and saw fail."""
        self.collected |= others.collected
        self.left_out |= others.left_out
        self.failed |= others.failed

    def gaps(self, files: Iterable[Path] | None = None) -> str:
        """Returns in words what is missing; empty in a whole run.

        Args:
            files: all that there are; those of tests/e2e if none are given.
        """
        every = STORIES.glob("test_*.py") if files is None else files
        absent = sorted(file.name for file in every if file not in self.collected)
        left_out, failed = sorted(self.left_out), sorted(self.failed)
        said = {"not collected": absent, "left out": left_out, "did not pass": failed}
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in said.items() if names)
