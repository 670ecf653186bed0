"""The store: objects with resourceVersions, history for watches, index of owners. No API rules."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of, uid_of

GroupResource = tuple[str, str]
"""Group and plural, as Go's `schema.GroupResource`; all versions of a kind share them."""

Key = tuple[str, str]
"""Namespace and name."""

HISTORY = 4096
"""The number of changes kept for each resource; a watch from an older version gets 410."""


class ObjectRecord:
    """A version of an object; never changed."""

    def __init__(self, obj: Object) -> None:
        self.obj = obj

    @property
    def version(self) -> int:
        """The resourceVersion."""
        return int(self.obj["metadata"]["resourceVersion"])

    @cached_property
    def tail(self) -> bytes:
        """The JSON without the opening brace, apiVersion and kind, which depend on the requested version."""
        rest = {key: value for key, value in self.obj.items() if key not in {"apiVersion", "kind"}}
        return json.dumps(rest, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")[1:]


@dataclass(frozen=True)
class ObjectChange:
    """A change of an object."""

    type: str
    record: ObjectRecord
    before: ObjectRecord | None
    version: int


class Store:
    """All objects with one counter of resourceVersions; hold `lock` to make several calls atomic."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 1
        self._objects: dict[GroupResource, dict[Key, ObjectRecord]] = {}
        self._history: dict[GroupResource, deque[ObjectChange]] = {}
        self._dropped_until: dict[GroupResource, int] = {}
        self._listeners: dict[GroupResource, list[Callable[[ObjectChange], None]]] = {}
        self._owned: dict[str, set[tuple[GroupResource, Key]]] = {}
        self._by_uid: dict[str, tuple[GroupResource, Key]] = {}
        self.on_change: Callable[[GroupResource, ObjectChange], None] | None = None

    def get(self, resource: GroupResource, key: Key) -> ObjectRecord | None:
        """Return the object of a key; None if there is none."""
        return self._objects.get(resource, {}).get(key)

    def all(self, resource: GroupResource, namespace: str = "") -> list[ObjectRecord]:
        """Return the objects of a resource by namespace and name; an empty namespace means all namespaces."""
        with self.lock:
            records = self._objects.get(resource, {})
            return [records[key] for key in sorted(records) if not namespace or key[0] == namespace]

    def all_at(self, resource: GroupResource, namespace: str, version: int) -> list[ObjectRecord] | None:
        """Return the result of `all` at a resourceVersion; None if the history does not reach back to it."""
        with self.lock:
            if version < self._dropped_until.get(resource, 0):
                return None
            records = dict(self._objects.get(resource, {}))
            for change in reversed(self._history.get(resource, ())):
                if change.version <= version:
                    break
                key = namespace_of(change.record.obj), name_of(change.record.obj)
                if change.before is None:
                    del records[key]
                else:
                    records[key] = change.before
            return [records[key] for key in sorted(records) if not namespace or key[0] == namespace]

    def snapshot(self) -> list[tuple[GroupResource, ObjectRecord]]:
        """Return every object with its resource."""
        with self.lock:
            return [(kind, one) for kind, records in self._objects.items() for one in records.values()]

    def with_uid(self, uid: str) -> tuple[GroupResource, ObjectRecord] | None:
        """Return the object with this UID and its resource; None if there is none."""
        with self.lock:
            location = self._by_uid.get(uid)
            record = self.get(*location) if location else None
            return (location[0], record) if location and record else None

    def owned_by(self, uid: str) -> list[tuple[GroupResource, ObjectRecord]]:
        """Return the objects with an ownerReference to this UID."""
        with self.lock:
            keys = sorted(self._owned.get(uid, ()))
            return [(kind, record) for kind, key in keys if (record := self.get(kind, key)) is not None]

    def put(self, resource: GroupResource, obj: Object) -> ObjectRecord:
        """Store a new or changed object and set its resourceVersion to the next one."""
        with self.lock:
            self.version += 1
            obj["metadata"]["resourceVersion"] = str(self.version)
            return self._keep(resource, ObjectRecord(obj))

    def load(self, resource: GroupResource, obj: Object) -> ObjectRecord:
        """Store an object with its own resourceVersion; versions assigned later are higher."""
        with self.lock:
            version = str(at(obj, "metadata", "resourceVersion") or "")
            if not (version.isdecimal() and len(version) < 20):  # noqa: PLR2004 - a number of 64 bits
                return self.put(resource, obj)
            self.version = max(self.version, int(version))
            return self._keep(resource, ObjectRecord(obj))

    def remove(self, resource: GroupResource, key: Key) -> ObjectRecord:
        """Remove an object and return its last state with the version of the deletion."""
        with self.lock:
            before = self._objects[resource].pop(key)
            self.version += 1
            metadata = before.obj["metadata"] | {"resourceVersion": str(self.version)}
            deleted = ObjectRecord(before.obj | {"metadata": metadata})
            self._update_index(resource, key, before.obj, present=False)
            self._publish(resource, ObjectChange("DELETED", deleted, before, self.version))
            return deleted

    def subscribe(
        self, resource: GroupResource, version: int | None, listener: Callable[[ObjectChange], None]
    ) -> tuple[list[ObjectChange], Callable[[], None]] | None:
        """Subscribe to the changes of a resource."""
        with self.lock:
            if version is not None and version < self._dropped_until.get(resource, 0):
                return None
            missed: list[ObjectChange] = []
            if version is not None:
                missed = [change for change in self._history.get(resource, ()) if change.version > version]
            listeners = self._listeners.setdefault(resource, [])
            listeners.append(listener)
            return missed, lambda: listeners.remove(listener)

    def _keep(self, resource: GroupResource, record: ObjectRecord) -> ObjectRecord:
        key = namespace_of(record.obj), name_of(record.obj)
        objects = self._objects.setdefault(resource, {})
        before = objects.get(key)
        if before is not None:
            self._update_index(resource, key, before.obj, present=False)
        objects[key] = record
        self._update_index(resource, key, record.obj, present=True)
        kind = "MODIFIED" if before else "ADDED"
        self._publish(resource, ObjectChange(kind, record, before, record.version))
        return record

    def _update_index(self, resource: GroupResource, key: Key, obj: Object, *, present: bool) -> None:
        uid = uid_of(obj)
        if present:
            self._by_uid[uid] = resource, key
        else:
            self._by_uid.pop(uid, None)
        for reference in at(obj, "metadata", "ownerReferences") or []:
            owner = reference.get("uid", "")
            owned = self._owned.setdefault(owner, set())
            if present:
                owned.add((resource, key))
            else:
                owned.discard((resource, key))
            if not owned:
                del self._owned[owner]

    def _publish(self, resource: GroupResource, change: ObjectChange) -> None:
        history = self._history.setdefault(resource, deque())
        history.append(change)
        if len(history) > HISTORY:
            self._dropped_until[resource] = history.popleft().version
        for listener in tuple(self._listeners.get(resource, ())):
            listener(change)
        if self.on_change is not None:
            self.on_change(resource, change)


def encoded(api_version: str, kind: str, record: ObjectRecord) -> bytes:
    """Return the JSON of a stored object with this apiVersion and kind."""
    head: Any = {"kind": kind, "apiVersion": api_version}
    return json.dumps(head, separators=(",", ":")).encode()[:-1] + b"," + record.tail
