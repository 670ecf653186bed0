"""The object cache of the simulated controllers, fed by informers and by the responses to writes.

A response goes into the cache at once, so that a sync never acts again before it sees its own writes.
Upstream controllers track "expectations" for the same purpose.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from muster.cluster.interface import Object
from muster.objects.resources import Resource
from muster.simulator.controllers.framework.fields import ObjectKey, controller_of, key_of


class Cache:
    """The objects that were read, thread-safe; callers must not modify them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Resource, dict[ObjectKey, Object]] = {}
        self._by_owner: dict[tuple[Resource, str, str], set[ObjectKey]] = {}
        self._deleted: set[str] = set()

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return the object, or None."""
        with self._lock:
            return self._objects.get(resource, {}).get((namespace, name))

    def all(self, resource: Resource) -> list[Object]:
        """Return all objects of a kind, by namespace and name."""
        with self._lock:
            objects = self._objects.get(resource, {})
            return [objects[key] for key in sorted(objects)]

    def controlled(self, resource: Resource, namespace: str, uid: str) -> list[Object]:
        """Return the objects of a kind and namespace whose controller owner has this uid, by name."""
        with self._lock:
            objects = self._objects.get(resource, {})
            return [objects[key] for key in sorted(self._by_owner.get((resource, namespace, uid), ()))]

    def put(self, resource: Resource, item: Object) -> bool:
        """Cache an object unless it is stale or deleted; return whether it was stored.

        resourceVersions are compared as integers, which the API guarantees since Kubernetes 1.35.
        """
        with self._lock:
            if item["metadata"]["uid"] in self._deleted:
                return False
            key = key_of(item)
            cached = self._objects.get(resource, {}).get(key)
            if cached is not None and _version(item) <= _version(cached):
                return False
            self._forget(resource, key)
            self._objects.setdefault(resource, {})[key] = item
            self._index(resource, key, item)
            return True

    def amend(self, resource: Resource, item: Object) -> None:
        """Replace a cached object by an assumed one of the same resourceVersion, until its next update."""
        with self._lock:
            key = key_of(item)
            if key in self._objects.get(resource, {}):
                self._objects[resource][key] = item

    def remove(self, resource: Resource, item: Object) -> bool:
        """Remove a deleted object and remember its uid; return whether it was cached."""
        with self._lock:
            uid = item["metadata"]["uid"]
            self._deleted.add(uid)
            key = key_of(item)
            cached = self._objects.get(resource, {}).get(key)
            if cached is None or cached["metadata"]["uid"] != uid:
                return False
            self._forget(resource, key)
            return True

    def replace(self, resource: Resource, items: Iterable[Object], version: str) -> list[Object]:
        """Replace all objects of a kind by a list; objects newer than the list's resourceVersion stay."""
        listed = {key_of(item): item for item in items}
        old = [item for item in self.all(resource) if _version(item) <= int(version)]
        missing = [item for item in old if key_of(item) not in listed]
        removed = [item for item in missing if self.remove(resource, item)]
        return removed + [item for item in listed.values() if self.put(resource, item)]

    def _forget(self, resource: Resource, key: ObjectKey) -> None:
        cached = self._objects.get(resource, {}).pop(key, None)
        owner = controller_of(cached) if cached else None
        if owner:
            self._by_owner.get((resource, key[0], owner["uid"]), set()).discard(key)

    def _index(self, resource: Resource, key: ObjectKey, item: Object) -> None:
        owner = controller_of(item)
        if owner:
            self._by_owner.setdefault((resource, key[0], owner["uid"]), set()).add(key)


def _version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])
