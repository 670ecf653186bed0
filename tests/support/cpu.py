"""CPU time of a call, in seconds of a machine of a fixed speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ENTRIES, ENTRIES_SECONDS = 4_000, 0.0015
"""The floor: a dict of this many entries, and its CPU seconds on the machine of the figures in docs/."""


def seconds_of(call: Callable[[], object], clock: Callable[[], float] = time.thread_time) -> float:
    """Return the CPU seconds of a call; fewer than measured if the machine is slower than that of the docs.

    The floor is timed right after the call, because the speed of a shared machine changes by a factor of two
    from one second to the next.

    Args:
        call: the call.
        clock: returns CPU seconds: `time.process_time` counts those of other threads too.
    """
    began = clock()
    call()
    return (clock() - began) * speed()


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail if the body takes more CPU seconds than these, counted like those of seconds_of."""
    began = time.thread_time()
    yield
    took = (time.thread_time() - began) * speed()
    assert took < seconds


def speed() -> float:
    """Return the speed of this machine, right now, as a part of that of the docs; 1 at most."""
    return min(1.0, ENTRIES_SECONDS / _floor())


def _floor() -> float:
    began = time.thread_time()
    table: dict[tuple[str, str], list[int]] = {}
    for number in range(ENTRIES):
        table.setdefault((f"name-{number % 500}", str(number)), []).append(number)
    return time.thread_time() - began
