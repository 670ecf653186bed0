"""The cache the simulated controllers read: what the informers saw and what the controllers wrote.

The answer to a write goes into the cache at once. The real controllers keep "expectations" for the same
purpose: a sync must not act again before its own writes are visible to it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol

from muster.cluster.port import Object
from muster.objects.resources import Resource
from muster.simulator.controllers.fields import Key, controller_of, key_of


class View(Protocol):
    """Read access to the cache; what it hands out is never changed by the reader."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object, or None."""
        ...

    def all(self, resource: Resource) -> list[Object]:
        """All objects of a kind, by namespace and name."""
        ...

    def controlled(self, resource: Resource, uid: str) -> list[Object]:
        """The objects of a kind whose controller owner has this uid, by namespace and name."""
        ...


class Store:
    """A `View` that also takes changes; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Resource, dict[Key, Object]] = {}
        self._by_owner: dict[tuple[Resource, str], set[Key]] = {}
        self._deleted: set[str] = set()

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object, or None."""
        with self._lock:
            return self._objects.get(resource, {}).get((namespace, name))

    def all(self, resource: Resource) -> list[Object]:
        """All objects of a kind, by namespace and name."""
        with self._lock:
            found = self._objects.get(resource, {})
            return [found[key] for key in sorted(found)]

    def controlled(self, resource: Resource, uid: str) -> list[Object]:
        """The objects of a kind whose controller owner has this uid, by namespace and name."""
        with self._lock:
            found = self._objects.get(resource, {})
            return [found[key] for key in sorted(self._by_owner.get((resource, uid), ()))]

    def put(self, resource: Resource, item: Object) -> bool:
        """Take an object unless the cache has it as new or newer, or knows it deleted; whether it was taken.

        resourceVersions are compared as numbers, which the API promises since Kubernetes 1.35.
        """
        with self._lock:
            if item["metadata"]["uid"] in self._deleted:
                return False
            key = key_of(item)
            known = self._objects.get(resource, {}).get(key)
            if known is not None and _version(item) <= _version(known):
                return False
            self._forget(resource, key)
            self._objects.setdefault(resource, {})[key] = item
            self._index(resource, key, item)
            return True

    def amend(self, resource: Resource, item: Object) -> None:
        """Take a guess about an object at the version it was read with, until the server's own word comes."""
        with self._lock:
            key = key_of(item)
            if key in self._objects.get(resource, {}):
                self._objects[resource][key] = item

    def remove(self, resource: Resource, item: Object) -> bool:
        """Forget an object that was deleted, and remember its uid; whether it was known."""
        with self._lock:
            uid = item["metadata"]["uid"]
            self._deleted.add(uid)
            key = key_of(item)
            known = self._objects.get(resource, {}).get(key)
            if known is None or known["metadata"]["uid"] != uid:
                return False
            self._forget(resource, key)
            return True

    def replace(self, resource: Resource, items: Iterable[Object], version: str) -> list[Object]:
        """Take a whole list: what is not in it is gone, unless it was made after the list's resourceVersion.

        Returns:
            What was new, changed or gone.
        """
        listed = {key_of(item): item for item in items}
        old = [item for item in self.all(resource) if _version(item) <= int(version)]
        gone = [item for item in old if key_of(item) not in listed]
        changed = [item for item in gone if self.remove(resource, item)]
        return changed + [item for item in listed.values() if self.put(resource, item)]

    def _forget(self, resource: Resource, key: Key) -> None:
        known = self._objects.get(resource, {}).pop(key, None)
        owner = controller_of(known) if known else None
        if owner:
            self._by_owner.get((resource, owner["uid"]), set()).discard(key)

    def _index(self, resource: Resource, key: Key, item: Object) -> None:
        owner = controller_of(item)
        if owner:
            self._by_owner.setdefault((resource, owner["uid"]), set()).add(key)


def _version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])
