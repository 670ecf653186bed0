"""One run at a time for each object: events that come meanwhile share the next run, as in a workqueue."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from threading import Event, Lock

from muster.runtime.deadline_client import DeadlineExceeded
from muster.runtime.outcome import Outcome


@dataclass(eq=False)
class _Run:
    ended: Event = field(default_factory=Event)
    outcome: Outcome | None = None

    def wait(self, end: float) -> None:
        """Wait for the end of this run, at most until `end` (of time.monotonic)."""
        if not self.ended.wait(max(0.0, end - time.monotonic())):
            raise DeadlineExceeded("another run on the object took until the deadline")


class Runs:
    """The runs of one step; safe to use from several threads.

    An event that comes while a run on its object is in work needs another run, because the one in work may
    have read the object before it changed. All events that wait for that next run share its outcome.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: dict[Hashable, list[_Run]] = {}
        """Of each object the run in work, and the next one."""

    def outcome(self, key: Hashable, seconds: float, run: Callable[[], Outcome]) -> Outcome:
        """Return the outcome of a run on an object that begins after this call.

        Writes and reply are those of the event that began the run; others that share it have none.

        Raises:
            DeadlineExceeded: no run could begin, or end, within `seconds`.
        """
        end = time.monotonic() + seconds
        while True:
            with self._lock:
                before = tuple(self._runs.setdefault(key, []))
                if len(before) <= 1:
                    mine = _Run()
                    self._runs[key].append(mine)
                    break
            shared = before[1]
            shared.wait(end)
            if shared.outcome is not None:
                return replace(shared.outcome, actions=0, reply=None)
        try:
            for in_work in before:
                in_work.wait(end)
            mine.outcome = run()
            return mine.outcome
        finally:
            with self._lock:
                self._runs[key].remove(mine)
                if not self._runs[key]:
                    del self._runs[key]
            mine.ended.set()
