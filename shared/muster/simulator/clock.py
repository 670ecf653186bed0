"""Timestamps of CloudEvents."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> str:
    """Return the current time in UTC, as RFC 3339."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat().replace("+00:00", "Z")
