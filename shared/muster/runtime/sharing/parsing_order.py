"""The order in which bodies of events are parsed."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Lock

from muster.runtime.sharing.deadline_client import DeadlineExceeded

BYTES_A_SECOND = 4096
"""The size for which a body waits as if it had come a second later. Events of pods have 4 to 10 KB."""

LONGEST_WAITING_EVERY = 4
"""Of so many turns one is that of the body that has waited longest: else many small ones keep out large ones
for longer than their deadline."""


class SmallestFirst:
    """Lets one body be parsed at a time, small ones before large ones; safe to use from several threads.

    Parsing takes many times the memory of a body, and a time that its sender chooses by its size. However
    many large ones come, they delay events of the usual size by two of them. Every fourth turn is that of the
    body that has waited longest.

    Args:
        clock: returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._parsing = False
        self._number = count()
        self._turns = 0
        self._waiting: list[tuple[float, int, Event]] = []

    @contextmanager
    def turn(self, size: int, seconds: float) -> Iterator[None]:
        """Wait for the turn of a body, and hold it.

        Args:
            size: the bytes of the body.
            seconds: the longest wait.

        Raises:
            DeadlineExceeded: there was no turn in time.
        """
        entry = (self._clock() + size / BYTES_A_SECOND, next(self._number), Event())
        with self._lock:
            heapq.heappush(self._waiting, entry)
            if not self._parsing:
                self._begin_next()
        if not entry[-1].wait(seconds):
            self._withdraw(entry, seconds)
        try:
            yield
        finally:
            with self._lock:
                self._begin_next()

    def _withdraw(self, entry: tuple[float, int, Event], seconds: float) -> None:
        """Take a body out of the queue, unless its turn has come after all."""
        with self._lock:
            if entry[-1].is_set():
                return
            self._remove(entry)
        raise DeadlineExceeded(f"the event waited {seconds:.1f} s to be parsed")

    def _begin_next(self) -> None:
        self._parsing = bool(self._waiting)
        if not self._parsing:
            return
        self._turns += 1
        if self._turns % LONGEST_WAITING_EVERY:
            heapq.heappop(self._waiting)[-1].set()
        else:
            oldest = min(self._waiting, key=lambda entry: entry[1])
            self._remove(oldest)
            oldest[-1].set()

    def _remove(self, entry: tuple[float, int, Event]) -> None:
        self._waiting.remove(entry)
        heapq.heapify(self._waiting)
