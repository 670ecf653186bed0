"""Fires PingSources on one machine."""

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
    """One thread that publishes the event of each PingSource when its time has come.

    Knative's adapter adds up to half a second of chance to each tick; here they are on time.
    """

    def __init__(self, pings: Iterable[PingSource], publish: Callable[[CloudEvent], None]) -> None:
        begun = _moment()
        self._due = [(ping.schedule.next_after(begun), ping) for ping in pings]
        self._publish = publish
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ping", daemon=True)

    def start(self) -> None:
        """Begin; the first events come at the next times of the schedules, not at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; no event comes after this returns."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while self._due:
            self._due.sort(key=lambda entry: entry[0])
            when, ping = self._due[0]
            if self._stopped.wait(max(0.0, (when - _moment()).total_seconds())):
                return
            try:
                self._publish(ping.event(str(uuid.uuid4()), now()))
            except RefusedError as refused:
                _log.warning("ping %s: %s; the next one comes in time", ping.name, refused)
            self._due[0] = (ping.schedule.next_after(max(when, _moment())), ping)


def _moment() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)
