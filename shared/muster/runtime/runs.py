"""One run at a time for each object: events that come meanwhile share the next run, as in a workqueue."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Event, Lock

from muster.runtime.deadline_client import DeadlineExceeded
from muster.runtime.outcome import Outcome


@dataclass(eq=False)
class _Run:
    ended: Event = field(default_factory=Event)
    outcome: Outcome | None = None


class Runs:
    """The runs of one step; safe to use from several threads.

    An event that comes while a run on its object is in work needs another run, because the one in work may
    have read the object before it changed. All events that wait for that next run share its outcome.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: dict[Hashable, list[_Run]] = {}
        """Of each object the run in work, and the next one."""

    def outcome(self, key: Hashable, seconds: float, run: Callable[[], Outcome]) -> tuple[Outcome, bool]:
        """Return the outcome of a run on an object that begins after this call, and whether it is shared.

        Raises:
            DeadlineExceeded: no run could begin, or end, within `seconds`.
        """
        end = time.monotonic() + seconds
        while True:
            with self._lock:
                runs = self._runs.setdefault(key, [])
                before = runs[0] if runs else None
                is_shared = len(runs) > 1
                mine = runs[1] if is_shared else _Run()
                if not is_shared:
                    runs.append(mine)
            if not is_shared:
                return self._run(key, before, mine, end, run), False
            if not mine.ended.wait(max(0.0, end - time.monotonic())):
                raise DeadlineExceeded("another run on the object took until the deadline")
            if mine.outcome is not None:
                return mine.outcome, True

    def _run(
        self, key: Hashable, before: _Run | None, mine: _Run, end: float, run: Callable[[], Outcome]
    ) -> Outcome:
        try:
            if before is not None and not before.ended.wait(max(0.0, end - time.monotonic())):
                raise DeadlineExceeded("another run on the object took until the deadline")
            outcome = mine.outcome = run()
        finally:
            with self._lock:
                self._runs[key].remove(mine)
                if not self._runs[key]:
                    del self._runs[key]
            mine.ended.set()
        return outcome
