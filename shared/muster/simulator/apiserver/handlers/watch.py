"""Watches: the changes of a kind as a stream of events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.refusals import expired
from muster.simulator.apiserver.selectors import Matcher
from muster.simulator.apiserver.store import ObjectChange, ObjectRecord, Store, encoded

DEFAULT_SECONDS = 1800.0
IDLE_CHECK_SECONDS = 5.0
"""The interval at which an idle watch checks that the client is still connected."""


@dataclass(frozen=True)
class Watch:
    """A watch from a resourceVersion on, for some seconds; version 0 begins with what is there."""

    store: Store
    kind: Kind
    selects: Matcher
    stopped: Callable[[], bool]
    version: int
    seconds: float

    def events(self) -> Iterator[bytes]:
        """Yield the events until the timeout; while idle, an empty chunk every IDLE_CHECK_SECONDS."""
        changes: SimpleQueue[ObjectChange] = SimpleQueue()
        end = time.monotonic() + self.seconds
        with self.store.lock:
            stored = [] if self.version else self.store.all(self.kind.group_resource)
            subscription = self.store.subscribe(self.kind.group_resource, self.version or None, changes.put)
        if subscription is None:
            error = expired(f"too old resource version: {self.version} ({self.store.version})")
            yield _event("ERROR", json.dumps(error.status()).encode())
            return
        missed, unsubscribe = subscription
        try:
            for record in stored:
                if self.selects(record.obj):
                    yield self._event("ADDED", record)
            for change in missed:
                yield from self._events_of(change)
            while not self.stopped() and (remaining := end - time.monotonic()) > 0:
                try:
                    yield from self._events_of(changes.get(timeout=min(remaining, IDLE_CHECK_SECONDS)))
                except Empty:
                    yield b""
        finally:
            unsubscribe()

    def _events_of(self, change: ObjectChange) -> Iterator[bytes]:
        """Yield the event of a change: ADDED or DELETED if the object starts or stops matching."""
        matched = change.before is not None and self.selects(change.before.obj)
        matches = change.type != "DELETED" and self.selects(change.record.obj)
        if matches:
            yield self._event("MODIFIED" if matched else "ADDED", change.record)
        elif matched and change.before is not None:
            metadata = change.before.obj["metadata"] | {"resourceVersion": str(change.version)}
            yield self._event("DELETED", ObjectRecord(change.before.obj | {"metadata": metadata}))

    def _event(self, event_type: str, record: ObjectRecord) -> bytes:
        return _event(event_type, encoded(self.kind.api_version, self.kind.kind, record))


def _event(event_type: str, obj: bytes) -> bytes:
    return b'{"type":"' + event_type.encode() + b'","object":' + obj + b"}\n"
