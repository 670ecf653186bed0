"""The timer that publishes the events of PingSources."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from muster.simulator.broker.broker import RefusedError
from muster.simulator.broker.events import CloudEvent
from muster.simulator.broker.wiring import PingSource
from muster.simulator.clock import now

_log = logging.getLogger(__name__)


class PingTimer:
    """A thread that publishes the event of each PingSource on schedule.

    Knative's adapter adds a random delay of up to half a second; this timer adds none.
    """

    def __init__(self, pings: Iterable[PingSource], publish: Callable[[CloudEvent], None]) -> None:
        start = _utc_now()
        self._due = [(ping.schedule.next_after(start), ping) for ping in pings]
        self._publish = publish
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ping", daemon=True)

    def start(self) -> None:
        """Start the thread; the first events are sent at the next times of the schedules."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; no event is published after this returns."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while self._due:
            self._due.sort(key=lambda entry: entry[0])
            due, ping = self._due[0]
            if self._stopped.wait(max(0.0, (due - _utc_now()).total_seconds())):
                return
            try:
                self._publish(ping.event(str(uuid.uuid4()), now()))
            except RefusedError as refused:
                _log.warning("ping %s: %s; the next one comes in time", ping.name, refused)
            self._due[0] = (ping.schedule.next_after(max(due, _utc_now())), ping)


def _utc_now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)
