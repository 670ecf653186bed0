"""Reader of the API server's audit log: one audit event (audit.k8s.io/v1) a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def events_since(log: Path, offset: int = 0) -> list[dict[str, Any]]:
    """Return the events after an offset, without those that are partly written or partly before it."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(offset - 1, 0))
        # In one read: a second read could return the end of a line whose beginning the first one cut off.
        *lines, _ = file.read().split(b"\n")
    return [json.loads(line) for line in lines[1 if offset else 0 :]]


def size(log: Path) -> int:
    """Return the size of the log in bytes; 0 if it does not exist."""
    return log.stat().st_size if log.exists() else 0
