"""What the API server writes down of requests: one audit event (audit.k8s.io/v1) a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def events_since(log: Path, offset: int = 0) -> list[dict[str, Any]]:
    """Returns the events from an offset on, whole ones only: the log was and is being written to.

    Args:
        log: may not exist yet.
        offset: in bytes, as `size` told it; what it cuts in two is left out.
    """
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(offset - 1, 0))
        # At once: between two reads a line that was cut off may get its end, which is no line of its own.
        *whole, _ = file.read().split(b"\n")
    return [json.loads(line) for line in whole[1 if offset else 0 :]]


def size(log: Path) -> int:
    """Returns where the next event will be, or is being written."""
    return log.stat().st_size if log.exists() else 0
