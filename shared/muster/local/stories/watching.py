"""Record the timeline of a story: the changes of objects, from an API server's watches."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

from muster.cluster.errors import ClusterError, Expired, Gone
from muster.objects.resources import JOBS, JOBSETS, POD_GROUPS, PODS, TRAINJOBS, WORKLOADS, Resource
from muster.replay.snapshots import Named, Object, Objects, name_of

KINDS = (TRAINJOBS, JOBSETS, JOBS, PODS, WORKLOADS, POD_GROUPS)
WATCH_SECONDS = 5
"""How long a watch request lasts, and so how long a thread may run after the recorder was stopped."""
RETRY_SECONDS = 0.5
_POLL_SECONDS = 0.2
"""How long until a condition is evaluated again although no object changed."""


@dataclass(frozen=True)
class Entry:
    """A change of an object: when a watch delivered it, ADDED, MODIFIED or DELETED, and the latest state."""

    at: float
    change: str
    object: Object

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return str(self.object["kind"])

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self.object["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace of the object; "" if it is cluster-scoped."""
        return str(self.object["metadata"].get("namespace", ""))

    @property
    def version(self) -> int:
        """The resourceVersion; a counter for all kinds, so it orders the changes of several watches."""
        return int(self.object["metadata"]["resourceVersion"])


class TimelineRecorder:
    """Records the changes of some kinds; thread-safe.

    The source is a Client, or whatever lists and watches like one, and decides in which namespaces.
    """

    def __init__(
        self, source: Any, kinds: Iterable[Resource] = KINDS, watch_seconds: int = WATCH_SECONDS
    ) -> None:
        self._source = source
        self._kinds = list(kinds)
        self._watch_seconds = watch_seconds
        self._changed = threading.Condition()
        self._history: list[Entry] = []
        self._objects: dict[Named, Object] = {}
        self._gaps: list[str] = []
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def follow(self, resource: Resource) -> None:
        """Watch another kind; objects that exist already are recorded as ADDED."""
        version = self._catch_up(resource)
        self._kinds.append(resource)
        self._watch(resource, version)

    def stop(self) -> None:
        """Stop recording."""
        self._stopped.set()

    @property
    def idle(self) -> bool:
        """Whether all watches have ended, as they do some time after `stop`."""
        return not any(thread.is_alive() for thread in self._threads)

    def resume(self) -> None:
        """Watch again after `stop`; each object that changed meanwhile is recorded as one change.

        The objects of a kind that is no longer served are kept.
        """
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._stopped.clear()
        for resource in self._kinds:
            with contextlib.suppress(Gone):
                self._watch(resource, self._catch_up(resource))

    def __enter__(self) -> Self:
        """Start to watch; objects that exist already are known, but are not recorded as changes."""
        for resource in self._kinds:
            objects, version = self._source.list_with_version(resource)
            with self._changed:
                self._objects |= {name_of(body): body for body in objects}
            self._watch(resource, version)
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def history(self, namespace: str = "") -> list[Entry]:
        """Return all changes so far in the order of their resourceVersions, of one namespace or of all."""
        with self._changed:
            entries = [entry for entry in self._history if namespace in {"", entry.namespace}]
        return sorted(entries, key=lambda entry: entry.version)

    def take(self) -> list[Entry]:
        """Return the changes since the last call in the order of their resourceVersions, and forget them."""
        with self._changed:
            entries, self._history = self._history, []
        return sorted(entries, key=lambda entry: entry.version)

    def objects(self, namespace: str = "") -> Objects:
        """Return all objects in their latest state, of one namespace or of all."""
        with self._changed:
            objects = list(self._objects.values())
        return [body for body in objects if namespace in {"", body["metadata"].get("namespace", "")}]

    def gaps(self) -> list[str]:
        """Return the errors of watches, because of which changes may be missing from the history."""
        with self._changed:
            return list(self._gaps)

    def until(self, condition: Callable[[], Any], seconds: float) -> bool:
        """Wait until a condition is true, evaluated after every change; return whether it was in time."""
        end = time.monotonic() + seconds
        while True:
            with self._changed:
                known = len(self._history)
            # Without the lock, so that a slow condition does not delay the watches.
            if condition():
                return True
            remaining = end - time.monotonic()
            if remaining <= 0:
                return False
            with self._changed:
                if len(self._history) == known:
                    self._changed.wait(min(remaining, _POLL_SECONDS))

    def _watch(self, resource: Resource, version: str) -> None:
        thread = threading.Thread(
            target=self._record, args=(resource, version), name=f"recorder-{resource.plural}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _record(self, resource: Resource, version: str) -> None:
        while not self._stopped.is_set():
            try:
                version = version or self._catch_up(resource)
                for change, body in self._source.watch(
                    resource, resource_version=version, timeout_seconds=self._watch_seconds
                ):
                    version = body["metadata"]["resourceVersion"]
                    if self._stopped.is_set():
                        return
                    if change != "BOOKMARK":
                        self._append(Entry(time.time(), change, body))
            except Expired as error:
                self._add_gap(resource, error)
                version = ""
            except ClusterError as error:
                self._add_gap(resource, error)
                self._stopped.wait(RETRY_SECONDS)

    def _add_gap(self, resource: Resource, error: ClusterError) -> None:
        if not self._stopped.is_set():
            with self._changed:
                self._gaps.append(f"{resource.kind}: {error}")
                self._changed.notify_all()

    def _catch_up(self, resource: Resource) -> str:
        """Record the changes that a list shows; return the resourceVersion to watch from."""
        version: str
        objects, version = self._source.list_with_version(resource)
        with self._changed:
            before = {key: body for key, body in self._objects.items() if key[0] == resource.kind}
        for body in objects:
            known = before.pop(name_of(body), None)
            if known is None:
                self._append(Entry(time.time(), "ADDED", body))
            elif known["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
                self._append(Entry(time.time(), "MODIFIED", body))
        for deleted in before.values():
            metadata = {**deleted["metadata"], "resourceVersion": version}
            self._append(Entry(time.time(), "DELETED", {**deleted, "metadata": metadata}))
        return version

    def _append(self, entry: Entry) -> None:
        with self._changed:
            self._history.append(entry)
            if entry.change == "DELETED":
                self._objects.pop(name_of(entry.object), None)
            else:
                self._objects[name_of(entry.object)] = entry.object
            self._changed.notify_all()


def state(entries: Iterable[Entry], kind: str) -> dict[str, Object]:
    """Return the objects of a kind that exist after the entries, by name."""
    objects: dict[str, Object] = {}
    for entry in entries:
        if entry.kind == kind:
            apply_entry(objects, entry)
    return objects


def apply_entry(objects: dict[str, Object], entry: Entry) -> None:
    """Update objects by name to the state after an entry."""
    if entry.change == "DELETED":
        objects.pop(entry.name, None)
    else:
        objects[entry.name] = entry.object
