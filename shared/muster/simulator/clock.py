"""Timestamps of CloudEvents."""

from __future__ import annotations

import time

_NANOSECONDS = 1_000_000_000


def now() -> str:
    """Return the current time in UTC, as RFC 3339 with nanoseconds."""
    return rfc3339_nano(time.time_ns())


def rfc3339_nano(nanoseconds: int) -> str:
    """Format nanoseconds since the epoch as Go's RFC3339Nano: fraction without trailing zeros, in UTC."""
    seconds, fraction = divmod(nanoseconds, _NANOSECONDS)
    date_time = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    digits = f"{fraction:09d}".rstrip("0")
    return f"{date_time}.{digits}Z" if digits else f"{date_time}Z"
