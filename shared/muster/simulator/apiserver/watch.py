"""Watches: what happened to the objects of a kind, as a stream of events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.requests import Request
from muster.simulator.apiserver.selectors import Matcher
from muster.simulator.apiserver.status import expired
from muster.simulator.apiserver.store import Change, Record, Store

DEFAULT_SECONDS = 1800.0
BOOKMARK_SECONDS = 60.0
PULSE_SECONDS = 5.0
"""How often a quiet watch looks whether its client is still there."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Encode = Callable[[Record], bytes]
"""An object as the client wants to see it: itself, or a Table with one row."""


@dataclass(frozen=True)
class Watch:
    """One watch of one client.

    Attributes:
        selects: which objects it is about.
        encode: how it wants to see them.
        stopped: whether the server is shutting down.
    """

    store: Store
    kind: Kind
    request: Request
    selects: Matcher
    encode: Encode
    stopped: Callable[[], bool]

    def events(self) -> Iterator[bytes]:
        """The events until the time is over; an empty piece every few seconds."""
        changes: SimpleQueue[Change] = SimpleQueue()
        version, initial = self._start()
        with self.store.lock:
            current = [
                record for record in self.store.all(self.kind.storage) if initial and self.selects(record.obj)
            ]
            at = self.store.version
            followed = self.store.since(self.kind.storage, version, changes.put)
        if followed is None:
            gone = expired(f"too old resource version: {version} ({at})")
            yield self._event("ERROR", json.dumps(gone.status()).encode())
            return
        missed, end = followed
        try:
            for record in current:
                yield self._event("ADDED", self.encode(record))
            if self.request.query.get("sendInitialEvents") == "true":
                yield self._bookmark(at, initial=True)
            for change in missed:
                yield from self._told(change)
            yield from self._follow(changes)
        finally:
            end()

    def _start(self) -> tuple[int | None, bool]:
        """The version to follow from, and whether what is there now comes first."""
        given = self.request.query.get("resourceVersion", "")
        wanted = self.request.query.get("sendInitialEvents")
        if wanted == "true" or given in {"", "0"}:
            return None, wanted != "false"
        return int(given) if given.isdecimal() else 0, False

    def _follow(self, changes: SimpleQueue[Change]) -> Iterator[bytes]:
        seconds = float(self.request.query.get("timeoutSeconds") or DEFAULT_SECONDS)
        end = time.monotonic() + seconds
        bookmarks = self.request.query.get("allowWatchBookmarks") in {"true", "1"}
        next_bookmark = time.monotonic() + BOOKMARK_SECONDS
        while not self.stopped():
            left = end - time.monotonic()
            if left <= 0:
                break
            try:
                yield from self._told(changes.get(timeout=min(left, PULSE_SECONDS)))
            except Empty:
                yield b""
            if bookmarks and time.monotonic() >= next_bookmark:
                next_bookmark = time.monotonic() + BOOKMARK_SECONDS
                yield from self._bookmark_if_quiet(changes)
        if bookmarks and seconds >= BOOKMARK_SECONDS:
            yield from self._bookmark_if_quiet(changes)

    def _bookmark_if_quiet(self, changes: SimpleQueue[Change]) -> Iterator[bytes]:
        """A bookmark, unless a change was not told yet: whoever resumes from there would miss it."""
        with self.store.lock:
            quiet, version = changes.empty(), self.store.version
        if quiet:
            yield self._bookmark(version)

    def _told(self, change: Change) -> Iterator[bytes]:
        was = change.before is not None and self.selects(change.before.obj)
        is_now = change.type != "DELETED" and self.selects(change.record.obj)
        if was and is_now:
            yield self._event("MODIFIED", self.encode(change.record))
        elif is_now:
            yield self._event("ADDED", self.encode(change.record))
        elif was and change.before is not None:
            metadata = change.before.obj["metadata"] | {"resourceVersion": str(change.version)}
            yield self._event("DELETED", self.encode(Record(change.before.obj | {"metadata": metadata})))

    def _bookmark(self, version: int, *, initial: bool = False) -> bytes:
        metadata: Object = {"resourceVersion": str(version)}
        if initial:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": metadata}
        return self._event("BOOKMARK", json.dumps(obj).encode())

    @staticmethod
    def _event(what: str, obj: bytes) -> bytes:
        return b'{"type":"' + what.encode() + b'","object":' + obj + b"}\n"
