"""The deadline of the calling thread, up to which a client waits for answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

_end: ContextVar[float] = ContextVar("end", default=inf)


@contextmanager
def until(end: float) -> Iterator[None]:
    """Set the deadline of calls in the `with` block to `end` (of time.monotonic)."""
    token = _end.set(end)
    try:
        yield
    finally:
        _end.reset(token)


def seconds_left() -> float:
    """Return seconds until the deadline, negative after it; inf if unset."""
    return _end.get() - time.monotonic()
