"""The types of those fixtures of the pytest plugin that are functions; the others are clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from muster.testing.recordings import Recording


class ReadRecording(Protocol):
    """The fixture `muster_recording`."""

    def __call__(
        self, name: str | Path, objects: str | Path | None = None, mode: str = "resource"
    ) -> Recording:
        """Return a recording that comes with Muster, or one in files with paths from the test's folder."""


class CompareGolden(Protocol):
    """The fixture `muster_golden`."""

    def __call__(self, value: object, path: str | Path = ...) -> None:
        """Compare a plan, a text or a YAML value with a golden file, by a path from the test's folder."""
