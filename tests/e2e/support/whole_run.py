"""Whether a run of pytest included every story, and all of them passed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_E2E = Path(__file__).parents[1]


def is_story(path: Path) -> bool:
    """Whether a file of tests has stories: it is in tests/e2e, but not in `support`."""
    return path.is_relative_to(_E2E) and not path.is_relative_to(_E2E / "support")


@dataclass
class WholeRun:
    """The stories of a run.

    Attributes:
        collected: files with tests in this run.
        left_out: ids of deselected tests.
        failed: ids of tests that did not pass.
    """

    collected: set[Path] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def join(self, others: WholeRun) -> None:
        """Add the stories of another process."""
        self.collected |= others.collected
        self.left_out |= others.left_out
        self.failed |= others.failed

    def gaps(self, files: Iterable[Path] | None = None) -> str:
        """Return the stories that are missing or failed, as text; empty for a whole run.

        Args:
            files: files of all stories; by default those of tests/e2e.
        """
        all_files = filter(is_story, _E2E.rglob("test_*.py")) if files is None else files
        absent = sorted(file.name for file in all_files if file not in self.collected)
        left_out, failed = sorted(self.left_out), sorted(self.failed)
        gaps = {"not collected": absent, "left out": left_out, "did not pass": failed}
        return "; ".join(f"{gap}: {', '.join(names)}" for gap, names in gaps.items() if names)
