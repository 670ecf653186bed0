"""Where objects are kept: versions, history for watches, and who owns whom. No rules of the API in here."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of, uid_of

Place = tuple[str, str]
"""Group and plural: the versions of a kind share one place."""

Key = tuple[str, str]
"""Namespace and name."""

HISTORY = 4096
"""Changes remembered for each place; a watch from before them is answered with 410."""


class Record:
    """One version of one object; never changed once made."""

    def __init__(self, obj: Object) -> None:
        self.obj = obj

    @property
    def version(self) -> int:
        """Its resourceVersion."""
        return int(self.obj["metadata"]["resourceVersion"])

    @cached_property
    def tail(self) -> bytes:
        """Its JSON without the opening brace, apiVersion and kind, which depend on the version asked for."""
        rest = {key: value for key, value in self.obj.items() if key not in {"apiVersion", "kind"}}
        return json.dumps(rest, separators=(",", ":")).encode()[1:]


@dataclass(frozen=True)
class Change:
    """What happened to one object.

    Attributes:
        type: ADDED, MODIFIED or DELETED.
        record: the object after the change; at a deletion as it was, with the version of the deletion.
        before: the object before it, None for an addition.
    """

    type: str
    record: Record
    before: Record | None
    version: int


class Store:
    """All objects, one lock, one counter. Every method takes the lock itself; it may be held around several.

    Attributes:
        every_change: called under the lock with each change of any kind.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._version = 1
        self._compacted = 0
        self._places: dict[Place, dict[Key, Record]] = {}
        self._history: dict[Place, deque[Change]] = {}
        self._forgotten: dict[Place, int] = {}
        self._listeners: dict[Place, list[Callable[[Change], None]]] = {}
        self._owned: dict[str, set[tuple[Place, Key]]] = {}
        self._by_uid: dict[str, tuple[Place, Key]] = {}
        self.every_change: Callable[[Place, Change], None] | None = None

    @property
    def version(self) -> int:
        """The version of the latest change."""
        return self._version

    @property
    def forgotten(self) -> int:
        """The version at which history was last forgotten on purpose; 0 when it never was."""
        return self._compacted

    def get(self, place: Place, key: Key) -> Record | None:
        """The object of that name."""
        return self._places.get(place, {}).get(key)

    def all(self, place: Place, namespace: str = "") -> list[Record]:
        """The objects of a kind, sorted by namespace and name; an empty namespace means all."""
        with self.lock:
            found = self._places.get(place, {})
            return [found[key] for key in sorted(found) if not namespace or key[0] == namespace]

    def everything(self) -> Iterator[tuple[Place, Record]]:
        """Every object there is, kind by kind."""
        with self.lock:
            held = [(place, record) for place, objects in self._places.items() for record in objects.values()]
        yield from held

    def with_uid(self, uid: str) -> tuple[Place, Record] | None:
        """The object of that UID."""
        with self.lock:
            found = self._by_uid.get(uid)
            if found is None:
                return None
            record = self.get(*found)
            return None if record is None else (found[0], record)

    def owned_by(self, uid: str) -> list[tuple[Place, Record]]:
        """The objects with an ownerReference to that UID, as they are now."""
        with self.lock:
            found = [(place, self.get(place, key)) for place, key in sorted(self._owned.get(uid, ()))]
            return [(place, record) for place, record in found if record is not None]

    def put(self, place: Place, obj: Object) -> Record:
        """Store a new or changed object under the next version, which is written into it."""
        with self.lock:
            self._version += 1
            obj["metadata"]["resourceVersion"] = str(self._version)
            return self._keep(place, Record(obj))

    def load(self, place: Place, obj: Object) -> Record:
        """Store an object with the resourceVersion it carries; later versions are higher than any loaded."""
        with self.lock:
            given = str(at(obj, "metadata", "resourceVersion") or "")
            if not given.isdecimal():
                return self.put(place, obj)
            self._version = max(self._version, int(given))
            return self._keep(place, Record(obj))

    def remove(self, place: Place, key: Key) -> Record:
        """Take an object out; the record that is returned carries the version of the deletion."""
        with self.lock:
            before = self._places[place].pop(key)
            self._version += 1
            metadata = before.obj["metadata"] | {"resourceVersion": str(self._version)}
            gone = Record(before.obj | {"metadata": metadata})
            self._index(place, key, before.obj, present=False)
            self._tell(place, Change("DELETED", gone, before, self._version))
            return gone

    def since(
        self, place: Place, version: int | None, listener: Callable[[Change], None]
    ) -> tuple[list[Change], Callable[[], None]] | None:
        """Follow a kind: the changes after `version` so far, and a function that ends the following.

        Args:
            place: the kind.
            version: None means from now on.
            listener: called under the lock with each later change; it must not block.

        Returns:
            None when the changes after `version` are no longer remembered.
        """
        with self.lock:
            if version is not None and version < max(self._forgotten.get(place, 0), self._compacted):
                return None
            missed: list[Change] = []
            if version is not None:
                missed = [change for change in self._history.get(place, ()) if change.version > version]
            listeners = self._listeners.setdefault(place, [])
            listeners.append(listener)
            return missed, lambda: self._unlisten(listeners, listener)

    def forget_history(self) -> None:
        """Forget all past changes, as a compaction of etcd does: older watches are answered with 410."""
        with self.lock:
            self._compacted = self._version
            for changes in self._history.values():
                changes.clear()

    def _unlisten(
        self, listeners: list[Callable[[Change], None]], listener: Callable[[Change], None]
    ) -> None:
        with self.lock:
            if listener in listeners:
                listeners.remove(listener)

    def _keep(self, place: Place, record: Record) -> Record:
        key = namespace_of(record.obj), name_of(record.obj)
        objects = self._places.setdefault(place, {})
        before = objects.get(key)
        if before is not None:
            self._index(place, key, before.obj, present=False)
        objects[key] = record
        self._index(place, key, record.obj, present=True)
        self._tell(place, Change("MODIFIED" if before else "ADDED", record, before, record.version))
        return record

    def _index(self, place: Place, key: Key, obj: Object, *, present: bool) -> None:
        uid = uid_of(obj)
        if present:
            self._by_uid[uid] = place, key
        else:
            self._by_uid.pop(uid, None)
        for reference in at(obj, "metadata", "ownerReferences") or []:
            owner = reference.get("uid", "")
            owned = self._owned.setdefault(owner, set())
            if present:
                owned.add((place, key))
            else:
                owned.discard((place, key))
            if not owned:
                del self._owned[owner]

    def _tell(self, place: Place, change: Change) -> None:
        history = self._history.setdefault(place, deque())
        history.append(change)
        if len(history) > HISTORY:
            self._forgotten[place] = history.popleft().version
        for listener in tuple(self._listeners.get(place, ())):
            listener(change)
        if self.every_change is not None:
            self.every_change(place, change)


def encoded(api_version: str, kind: str, record: Record) -> bytes:
    """A stored object as JSON in the version asked for."""
    head: Any = {"kind": kind, "apiVersion": api_version}
    return json.dumps(head, separators=(",", ":")).encode()[:-1] + b"," + record.tail
