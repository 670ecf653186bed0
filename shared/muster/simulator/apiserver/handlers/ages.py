"""Ages and durations as kubectl prints them (`k8s.io/apimachinery/pkg/util/duration`, v0.37.1)."""

from __future__ import annotations

import time
from calendar import timegm

UNKNOWN = "<unknown>"


def since(timestamp: str | None) -> str:
    """Return the time since a timestamp as kubectl prints it: `42s`, `5m12s`; `<unknown>` without one."""
    moment = _seconds(timestamp)
    return UNKNOWN if moment is None else duration(int(time.time()) - moment)


def duration(seconds: int) -> str:
    """Return a duration with two or three significant figures (`HumanDuration` of k8s.io/apimachinery)."""
    if seconds < -1:
        return "<invalid>"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    year = 365
    for below, whole, rest in (
        (seconds < 120, f"{max(seconds, 0)}s", ""),  # noqa: PLR2004 - the thresholds of the source
        (minutes < 10, f"{minutes}m", f"{seconds % 60}s"),  # noqa: PLR2004
        (minutes < 180, f"{minutes}m", ""),  # noqa: PLR2004
        (hours < 8, f"{hours}h", f"{minutes % 60}m"),  # noqa: PLR2004
        (hours < 48, f"{hours}h", ""),  # noqa: PLR2004
        (days < 8, f"{days}d", f"{hours % 24}h"),  # noqa: PLR2004
        (days < 2 * year, f"{days}d", ""),
        (days < 8 * year, f"{days // year}y", f"{days % year}d"),
    ):
        if below:
            return whole if rest.rstrip("smhd") == "0" else whole + rest
    return f"{days // year}y"


def between(start: str | None, end: str | None) -> str:
    """Return the time between two timestamps, up to now without an end; empty without a start."""
    began, ended = _seconds(start), _seconds(end)
    if began is None:
        return ""
    return duration((int(time.time()) if ended is None else ended) - began)


def _seconds(timestamp: str | None) -> int | None:
    try:
        return timegm(time.strptime(str(timestamp)[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None
