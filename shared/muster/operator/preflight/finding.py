"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    """As it should be."""
    WARN = "warn"
    """Something will not work, or could not be checked; the rest does."""
    FAIL = "FAIL"
    """Gangs will not be scheduled until this is mended."""


@dataclass(frozen=True)
class Finding:
    """One answer of a check.

    Attributes:
        level: how much it matters.
        about: what was looked at.
        message: what was found, and what to do where that is not as it should be.
    """

    level: Level
    about: str
    message: str


def some(names: list[str], most: int = 10) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
