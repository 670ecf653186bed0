"""Until when an answer is of use to whoever asks, so that a client waits no longer for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

_end: ContextVar[float] = ContextVar("end", default=inf)


@contextmanager
def until(end: float) -> Iterator[None]:
    """Calls that this thread makes within wait for their answers until `end` (of time.monotonic) at most."""
    before = _end.set(end)
    try:
        yield
    finally:
        _end.reset(before)


def seconds_left() -> float:
    """How long an answer is of use from now on; infinite where nobody said, below 0 when it is too late."""
    return _end.get() - time.monotonic()
