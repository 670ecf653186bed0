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
    left_out: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def gaps(self, files: Iterable[Path] | None = None) -> str:
        """Returns in words what is missing; empty in a whole run.

        Args:
            files: all that there are; those of tests/e2e if none are given.
        """
        every = STORIES.glob("test_*.py") if files is None else files
        absent = sorted(file.name for file in every if file not in self.collected)
        said = {"not collected": absent, "left out": self.left_out, "did not pass": self.failed}
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in said.items() if names)
