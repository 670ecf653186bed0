"""The loop that all simulated controllers share: objects are watched, keys reconciled, writes executed.

A response goes into the cache at once, so that a sync never acts again before it sees its own writes.
Upstream controllers track "expectations" for the same purpose.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from muster.cluster import errors
from muster.cluster.http.client import Client
from muster.cluster.interface import Object
from muster.objects.resources import Resource
from muster.simulator.controllers.fields import ObjectKey, controller_of, key_of
from muster.simulator.controllers.writes import Executor, Result

log = logging.getLogger(__name__)

WATCH_SECONDS = 20
"""Timeout of one watch request; also how long a thread may outlive `stop`."""
RETRY_SECONDS = 0.2
UNSERVED_SECONDS = 1.0
"""Interval between lists of a kind that is not served, such as one behind a feature gate."""
FIRST_RETRY, LAST_RETRY = 0.02, 1.0
"""Seconds until a failed key is reconciled again, doubled with each failure."""

Key = tuple[str, ...]


@dataclass(frozen=True)
class ReconcileRequest:
    """A key to reconcile and the delay in seconds until then."""

    key: Key
    after: float = 0.0


class Controller(Protocol):
    """A level-triggered simulated controller, by the name that enables it and the kinds that it reads."""

    name: str
    watches: tuple[Resource, ...]

    def requests_for(self, resource: Resource, item: Object, /) -> Iterable[ReconcileRequest]:
        """Return the keys to reconcile after this object was added, changed or deleted."""
        ...

    def reconcile(self, key: Key, cache: Cache, now: float, /) -> Result:
        """Return the writes that move a key towards its desired state; `now` in seconds since the epoch."""
        ...


class Cache:
    """The objects that were read, thread-safe; callers must not modify them."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._objects: dict[Resource, dict[ObjectKey, Object]] = {}
        self._deleted: set[str] = set()

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return the object, or None."""
        with self._lock:
            return self._objects.get(resource, {}).get((namespace, name))

    def all(self, resource: Resource) -> list[Object]:
        """Return all objects of a kind, by namespace and name."""
        with self._lock:
            return [item for _, item in sorted(self._objects.get(resource, {}).items(), key=lambda e: e[0])]

    def controlled(self, resource: Resource, uid: str) -> list[Object]:
        """Return the objects of a kind whose controller owner has this uid, by name."""
        return [item for item in self.all(resource) if (controller_of(item) or {}).get("uid") == uid]

    def put(self, resource: Resource, item: Object) -> bool:
        """Cache an object unless it is stale or deleted; return whether it was stored."""
        with self._lock:
            objects = self._objects.setdefault(resource, {})
            cached = objects.get(key_of(item))
            stale = cached is not None and _version(item) <= _version(cached)
            if stale or item["metadata"]["uid"] in self._deleted:
                return False
            objects[key_of(item)] = item
            return True

    def remove(self, resource: Resource, item: Object) -> bool:
        """Remove a deleted object and remember its uid; return whether it was cached."""
        with self._lock:
            uid, objects = item["metadata"]["uid"], self._objects.get(resource, {})
            self._deleted.add(uid)
            cached = objects.get(key_of(item))
            if cached is None or cached["metadata"]["uid"] != uid:
                return False
            del objects[key_of(item)]
            return True

    def replace(self, resource: Resource, items: Iterable[Object], version: str) -> list[Object]:
        """Replace all objects of a kind by a list; objects newer than the list's resourceVersion stay."""
        listed = {key_of(item): item for item in items}
        old = [item for item in self.all(resource) if _version(item) <= int(version)]
        missing = [item for item in old if key_of(item) not in listed]
        removed = [item for item in missing if self.remove(resource, item)]
        return removed + [item for item in listed.values() if self.put(resource, item)]


def _version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])


class Loop:
    """A thread for each kind that lists and watches it, and one that reconciles keys and executes writes."""

    def __init__(self, controllers: Iterable[Controller], connect: Callable[[], Client]) -> None:
        self._controllers = {controller.name: controller for controller in controllers}
        self._connect = connect
        self._cache = Cache()
        self._executor = Executor(connect())
        self._changed = threading.Condition()
        self._due: dict[tuple[str, Key], float] = {}
        self._failures: dict[tuple[str, Key], int] = {}
        self._stopped = threading.Event()
        self._worker = threading.Thread(target=self._work, name="controllers", daemon=True)

    def start(self, timeout: float = 10.0) -> None:
        """List every kind, then start to reconcile."""
        kinds = {kind for controller in self._controllers.values() for kind in controller.watches}
        listed = {kind: threading.Event() for kind in kinds}
        for kind, event in listed.items():
            threading.Thread(target=self._inform, args=(kind, event), name=kind.plural, daemon=True).start()
        for kind, event in listed.items():
            if not event.wait(timeout):
                self.stop()
                raise errors.Unavailable(f"no list of {kind.plural} within {timeout:g} s")
        self._worker.start()

    def stop(self) -> None:
        """Stop after the current reconcile; watches end within `WATCH_SECONDS`."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()
        if self._worker.ident is not None:
            self._worker.join(timeout=10)

    def _inform(self, kind: Resource, listed: threading.Event) -> None:
        client = self._connect()
        while not self._stopped.is_set():
            try:
                self._list_and_watch(client, kind, listed)
            except errors.Expired:
                continue
            except errors.Gone:
                listed.set()
                self._stopped.wait(UNSERVED_SECONDS)
            except errors.ClusterError as error:
                log.debug("watching %s: %s", kind.plural, error)
                self._stopped.wait(RETRY_SECONDS)

    def _list_and_watch(self, client: Client, kind: Resource, listed: threading.Event) -> None:
        items, version = client.list_with_version(kind)
        for item in self._cache.replace(kind, items, version):
            self._queue(kind, item)
        listed.set()
        while not self._stopped.is_set():
            for change, item in client.watch(kind, resource_version=version, timeout_seconds=WATCH_SECONDS):
                if self._stopped.is_set():
                    return
                version = item["metadata"]["resourceVersion"]
                if change != "BOOKMARK":
                    self._observe(kind, item, gone=change == "DELETED")

    def _observe(self, kind: Resource, item: Object, *, gone: bool) -> None:
        if self._cache.remove(kind, item) if gone else self._cache.put(kind, item):
            self._queue(kind, item)

    def _queue(self, kind: Resource, item: Object) -> None:
        """Queue the keys of every controller that watches this kind."""
        for controller in self._controllers.values():
            if kind in controller.watches:
                for request in controller.requests_for(kind, item):
                    self._add((controller.name, request.key), request.after)

    def _add(self, item: tuple[str, Key], after: float) -> None:
        """Queue a key to be due in so many seconds, unless it is due earlier."""
        with self._changed:
            due = time.monotonic() + after
            self._due[item] = min(due, self._due.get(item, due))
            self._changed.notify()

    def _next(self) -> tuple[str, Key] | None:
        """Wait for the next due key and return it; None once the loop is stopped."""
        with self._changed:
            while not self._stopped.is_set():
                item = min(self._due, key=self._due.__getitem__, default=None)
                wait = None if item is None else self._due[item] - time.monotonic()
                if item is not None and wait is not None and wait <= 0:
                    del self._due[item]
                    return item
                self._changed.wait(wait)
        return None

    def _work(self) -> None:
        while (item := self._next()) is not None:
            try:
                after = self._reconcile(*item)
            except errors.ClusterError as error:
                log.debug("%s: %s", item, error)
                failures = self._failures[item] = self._failures.get(item, 0) + 1
                after = max(
                    min(FIRST_RETRY * 2.0 ** min(failures - 1, 10), LAST_RETRY), error.retry_after or 0.0
                )
            except Exception:
                log.exception("the simulated controller %s failed on %s", *item)
                after = LAST_RETRY
            else:
                self._failures.pop(item, None)
            if after is not None:
                self._add(item, after)

    def _reconcile(self, name: str, key: Key) -> float | None:
        result = self._controllers[name].reconcile(key, self._cache, time.time())
        for write in result.writes:
            for kind, item, gone in self._executor.execute(write):
                self._observe(kind, item, gone=gone)
        return result.requeue_after
