"""Priorities of threads: the event loop of func's server goes first, and one sweep computes at a time.

Python runs one thread at a time, and one that wants to run waits behind all others that are ready. Beside
many of them the event loop, which reads requests and answers probes, would get too little of the processor.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, get_ident

from muster.runtime.sharing.deadline_client import DeadlineExceeded
from muster.runtime.sharing.parsing_order import SmallestFirst

BEAT_SECONDS = 0.02
"""The time after which the event loop is due again while requests are in work."""

LATE_SECONDS = 0.05
"""How late it may be before others wait for it."""

LONGEST_WAIT_SECONDS = 0.5
"""The longest wait for it, before each call of an event, and whenever a sweep takes its turn."""

SLICE_SECONDS = 0.05
"""How long a sweep computes before another one may."""

REST = 9
"""While events wait for their turn, a sweep sleeps for so many times as long after a slice. No other sweep
computes meanwhile, so that all of them take a tenth of the time. Dead letters take as much."""

LONGEST_REST_SECONDS = 1.0
"""The longest rest after pieces of work, such as those of a time without events."""


class EventLoop:
    """Measures how late an event loop is, and lets other threads wait for it; never late with waitress."""

    def __init__(self) -> None:
        self._due: float | None = None
        self._requests = 0
        self._ended = False

    @contextmanager
    def request(self) -> Iterator[None]:
        """Measure the loop during the `with` block, which runs on it and handles a request."""
        self._requests += 1
        if self._due is None and not self._ended:
            self._beat(asyncio.get_running_loop())
        try:
            yield
        finally:
            self._requests -= 1

    def go_first(self) -> None:
        """Wait until the loop is no longer late, at most LONGEST_WAIT_SECONDS; called by other threads."""
        end = time.monotonic() + LONGEST_WAIT_SECONDS
        while self._is_late() and time.monotonic() < end:
            time.sleep(BEAT_SECONDS / 2)

    def end(self) -> None:
        """Stop measuring: `go_first` returns at once from now on, since the loop will be blocked."""
        self._ended = True
        self._due = None

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._requests and not self._ended:
            self._due = time.monotonic() + BEAT_SECONDS
            loop.call_later(BEAT_SECONDS, self._beat, loop)
        else:
            self._due = None

    def _is_late(self) -> bool:
        due = self._due
        return due is not None and time.monotonic() - due > LATE_SECONDS


class FairLock:
    """A lock that threads get in the order in which they ask for it."""

    def __init__(self) -> None:
        self._held = False
        self._waiting: deque[Event] = deque()
        self._lock = Lock()

    def acquire(self, seconds: float) -> bool:
        """Wait for the lock, at most so many seconds; return whether it was acquired."""
        with self._lock:
            if not self._held:
                self._held = True
                return True
            turn = Event()
            self._waiting.append(turn)
        if turn.wait(seconds):
            return True
        with self._lock:
            if turn.is_set():
                return True
            self._waiting.remove(turn)
            return False

    def release(self) -> None:
        """Release the lock, or hand it to the thread that has waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._held = False


class SpacedWork:
    """Lets pieces of work run one at a time, and, while there are events, in a tenth of the time.

    Args:
        are_events: whether any event is in work, or waits for it.
        besides: the CPU seconds that each piece counts for beside its own.
    """

    def __init__(self, are_events: Callable[[], bool], besides: float) -> None:
        self._are_events = are_events
        self._besides = besides
        self._line = SmallestFirst()
        self._next = 0.0
        """When the next piece may begin, in seconds of `time.monotonic`."""

    @contextmanager
    def piece(self, size: int, seconds: float) -> Iterator[None]:
        """Wait until a piece of work may run, small ones before large ones, and run it in the `with` block.

        Args:
            size: the bytes that it is about.
            seconds: the longest wait.

        Raises:
            DeadlineExceeded: it might not run in time.
        """
        end = time.monotonic() + seconds
        with self._line.turn(size, seconds):
            while self._are_events() and (rest := self._next - time.monotonic()) > 0:
                if time.monotonic() >= end:
                    raise DeadlineExceeded(f"events of functions went first for {seconds:.1f} s")
                time.sleep(min(rest, BEAT_SECONDS))
            before = time.thread_time()
            try:
                yield
            finally:
                cpu = time.thread_time() - before + self._besides
                self._next = time.monotonic() + min(REST * cpu, LONGEST_REST_SECONDS)


class SweepTurn:
    """Holds the lock of all sweeps while one sweep computes; releases it during calls of the API server.

    A sweep plans thousands of objects without a call between.

    Args:
        lock: of all sweeps of the process.
        loop: waited for whenever the turn is taken.
        events_wait: whether any event waits for its turn.
        seconds_left: returns the longest wait for a turn, after which the sweep computes without one.
    """

    def __init__(
        self,
        lock: FairLock,
        loop: EventLoop,
        events_wait: Callable[[], bool],
        seconds_left: Callable[[], float],
    ) -> None:
        self._lock = lock
        self._loop = loop
        self._events_wait = events_wait
        self._seconds_left = seconds_left
        self._thread = get_ident()
        self._has_lock = False
        self._changing = Lock()
        self._since = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the turn in the `with` block."""
        self._take()
        try:
            yield
        finally:
            self._give_up()

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Release the turn for the `with` block, a call of the API server; `resume` takes it again earlier.

        After a call of another thread of the sweep, it is taken again at the sweep's next pause or call.
        """
        self._give_up()
        try:
            yield
        finally:
            self.resume()

    def resume(self) -> None:
        """Take the turn again if the sweep does not hold it; do nothing in another thread."""
        if not self._has_lock and get_ident() == self._thread:
            self._take()

    def pause(self) -> None:
        """Let events and then another sweep compute if this one has done so for SLICE_SECONDS."""
        computed = time.monotonic() - self._since
        if self._has_lock and computed >= SLICE_SECONDS:
            if self._events_wait():
                time.sleep(max(0.0, min(REST * computed, self._seconds_left())))
            self._give_up()
        self.resume()

    def _take(self) -> None:
        if self._lock.acquire(max(0.0, self._seconds_left())):
            with self._changing:
                self._has_lock = True
        self._loop.go_first()
        self._since = time.monotonic()

    def _give_up(self) -> None:
        with self._changing:
            had_lock, self._has_lock = self._has_lock, False
        if had_lock:
            self._lock.release()
