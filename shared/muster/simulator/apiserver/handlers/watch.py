"""Watches: the changes of a kind as a stream of events, with initial events and bookmarks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.selectors import Matcher
from muster.simulator.apiserver.status import expired
from muster.simulator.apiserver.store import ObjectChange, ObjectRecord, Store, encoded

DEFAULT_SECONDS = 1800.0
BOOKMARK_SECONDS = 60.0
IDLE_CHECK_SECONDS = 5.0
"""The interval at which an idle watch checks that the client is still connected."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True)
class Watch:
    """A watch of a client, from a resourceVersion on, for some seconds."""

    store: Store
    kind: Kind
    query: Mapping[str, str]
    selects: Matcher
    stopped: Callable[[], bool]
    version: int
    seconds: float

    def events(self) -> Iterator[bytes]:
        """Yield the events until the timeout; while idle, an empty chunk every IDLE_CHECK_SECONDS."""
        changes: SimpleQueue[ObjectChange] = SimpleQueue()
        version, initial = self._start()
        with self.store.lock:
            stored = self.store.all(self.kind.group_resource) if initial else []
            at_version = self.store.version
            subscription = self.store.subscribe(self.kind.group_resource, version, changes.put)
        if subscription is None:
            error = expired(f"too old resource version: {version} ({at_version})")
            yield _event("ERROR", json.dumps(error.status()).encode())
            return
        missed, unsubscribe = subscription
        try:
            for record in stored:
                if self.selects(record.obj):
                    yield self._event("ADDED", record)
            if self.query.get("sendInitialEvents") == "true":
                yield self._bookmark(at_version, initial=True)
            for change in missed:
                yield from self._events_of(change)
            yield from self._follow(changes)
        finally:
            unsubscribe()

    def _start(self) -> tuple[int | None, bool]:
        """Return the version to start after, and whether the stream starts with the existing objects."""
        initial_events = self.query.get("sendInitialEvents")
        if initial_events == "true" or not self.version:
            return None, initial_events != "false"
        return self.version, False

    def _follow(self, changes: SimpleQueue[ObjectChange]) -> Iterator[bytes]:
        end = time.monotonic() + self.seconds
        bookmarks = self.query.get("allowWatchBookmarks") in {"true", "1"}
        next_bookmark = time.monotonic() + BOOKMARK_SECONDS
        while not self.stopped() and (remaining := end - time.monotonic()) > 0:
            try:
                yield from self._events_of(changes.get(timeout=min(remaining, IDLE_CHECK_SECONDS)))
            except Empty:
                yield b""
            if bookmarks and time.monotonic() >= next_bookmark:
                next_bookmark = time.monotonic() + BOOKMARK_SECONDS
                with self.store.lock:
                    idle, version = changes.empty(), self.store.version
                if idle:  # a client that resumes from a bookmark would miss pending changes
                    yield self._bookmark(version)

    def _events_of(self, change: ObjectChange) -> Iterator[bytes]:
        """Yield the event of a change: ADDED or DELETED if the object starts or stops matching."""
        matched = change.before is not None and self.selects(change.before.obj)
        matches = change.type != "DELETED" and self.selects(change.record.obj)
        if matches:
            yield self._event("MODIFIED" if matched else "ADDED", change.record)
        elif matched and change.before is not None:
            metadata = change.before.obj["metadata"] | {"resourceVersion": str(change.version)}
            yield self._event("DELETED", ObjectRecord(change.before.obj | {"metadata": metadata}))

    def _bookmark(self, version: int, *, initial: bool = False) -> bytes:
        metadata: Object = {"resourceVersion": str(version)}
        if initial:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": metadata}
        return _event("BOOKMARK", json.dumps(obj).encode())

    def _event(self, event_type: str, record: ObjectRecord) -> bytes:
        return _event(event_type, encoded(self.kind.api_version, self.kind.kind, record))


def _event(event_type: str, obj: bytes) -> bytes:
    return b'{"type":"' + event_type.encode() + b'","object":' + obj + b"}\n"
