"""The time, as events spell it."""

from __future__ import annotations

import time

_NANOSECONDS = 1_000_000_000


def now() -> str:
    """The time in UTC, as an event's attribute."""
    return rfc3339_nano(time.time_ns())


def rfc3339_nano(nanoseconds: int) -> str:
    """A time in UTC as Go's RFC3339Nano writes it: nine digits, without the zeros at their end."""
    seconds, fraction = divmod(nanoseconds, _NANOSECONDS)
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    digits = f"{fraction:09d}".rstrip("0")
    return f"{whole}.{digits}Z" if digits else f"{whole}Z"
