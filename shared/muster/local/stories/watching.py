"""The timeline of a story: every change of the objects that matter, recorded from an API server's watches."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from muster.cluster.errors import ClusterError, Expired, Gone
from muster.objects.resources import JOBS, JOBSETS, POD_GROUPS, PODS, TRAINJOBS, WORKLOADS, Resource
from muster.replay.snapshots import Object, Objects

KINDS = (TRAINJOBS, JOBSETS, JOBS, PODS, WORKLOADS, POD_GROUPS)
WATCH_SECONDS = 5
"""How long one watch request lasts, and so how long a thread may outlive its recorder."""
RETRY_SECONDS = 0.5
_ASK_AGAIN = 0.2
"""Seconds after which a condition is asked again although no object changed."""


@dataclass(frozen=True)
class Entry:
    """One change of one object, as a watch delivered it.

    Attributes:
        at: seconds since the epoch, when the watch delivered it.
        change: ADDED, MODIFIED or DELETED.
        object: as the watch gave it.
    """

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
        """The namespace of the object; empty for an object of the whole cluster."""
        return str(self.object["metadata"].get("namespace", ""))

    @property
    def version(self) -> int:
        """The resourceVersion: one counter for all kinds, so it orders what watches deliver in any order."""
        return int(self.object["metadata"]["resourceVersion"])


class Source(Protocol):
    """The two requests of a recorder; `muster.cluster.client.Client` answers both."""

    def list_with_version(self, resource: Resource, /) -> tuple[Objects, str]:
        """Return all objects of a kind and the resourceVersion from which a watch goes on."""

    def watch(
        self, resource: Resource, /, *, resource_version: str, timeout_seconds: int
    ) -> Iterator[tuple[str, Object]]:
        """Yield each change after a resourceVersion, until the server or the time ends the watch."""


Key = tuple[str, str, str]


class Recorder:
    """Records the changes of some kinds; safe to read from any thread.

    Args:
        source: where to list and watch; it decides of which namespaces.
        kinds: what to watch from the start.
        watch_seconds: after how long a watch is asked for anew.
    """

    def __init__(
        self, source: Source, kinds: Iterable[Resource] = KINDS, watch_seconds: int = WATCH_SECONDS
    ) -> None:
        self._source = source
        self._kinds = list(kinds)
        self._watch_seconds = watch_seconds
        self._changed = threading.Condition()
        self._history: list[Entry] = []
        self._objects: dict[Key, Object] = {}
        self._gaps: list[str] = []
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> Self:
        """Begin to watch: an object that exists already is known, but is no change."""
        for resource in self._kinds:
            objects, version = self._source.list_with_version(resource)
            with self._changed:
                self._objects |= {_key(found): found for found in objects}
            self._watch(resource, version)
        return self

    def follow(self, resource: Resource) -> None:
        """Watch one more kind: an object that exists already is an ADDED change.

        Raises:
            ClusterError: the kind cannot be listed.
        """
        version = self._catch_up(resource)
        self._kinds.append(resource)
        self._watch(resource, version)

    def stop(self) -> None:
        """Record nothing more."""
        self._stopped.set()

    def resume(self) -> None:
        """Watch again after `stop`: every object that changed meanwhile is one change, to its present state.

        A kind that is no longer served stays as it was.
        """
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._stopped.clear()
        for resource in self._kinds:
            with contextlib.suppress(Gone):
                self._watch(resource, self._catch_up(resource))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def history(self, namespace: str = "") -> list[Entry]:
        """Return all changes so far in the order of their resourceVersions, of one namespace or of all."""
        with self._changed:
            entries = [entry for entry in self._history if namespace in {"", entry.namespace}]
        return sorted(entries, key=_version)

    def objects(self, namespace: str = "") -> Objects:
        """Return all objects in their latest state, of one namespace or of all."""
        with self._changed:
            objects = list(self._objects.values())
        return [found for found in objects if namespace in {"", found["metadata"].get("namespace", "")}]

    def gaps(self) -> list[str]:
        """Return why changes may be missing from the history: a forgotten past, a watch that was refused."""
        with self._changed:
            return list(self._gaps)

    def until(self, holds: Callable[[], Any], seconds: float) -> bool:
        """Wait until a condition holds, asking again after every change; return whether it did in time."""
        end = time.monotonic() + seconds
        while True:
            with self._changed:
                known = len(self._history)
            # Asked without the lock: a slow condition must not delay what the watches note.
            if holds():
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            with self._changed:
                if len(self._history) == known:
                    self._changed.wait(min(left, _ASK_AGAIN))

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
                for change, found in self._source.watch(
                    resource, resource_version=version, timeout_seconds=self._watch_seconds
                ):
                    version = found["metadata"]["resourceVersion"]
                    if self._stopped.is_set():
                        return
                    if change != "BOOKMARK":
                        self._take(Entry(time.time(), change, found))
            except Expired as error:
                self._note_gap(resource, error)
                version = ""
            except ClusterError as error:
                self._note_gap(resource, error)
                self._stopped.wait(RETRY_SECONDS)

    def _note_gap(self, resource: Resource, error: ClusterError) -> None:
        if not self._stopped.is_set():
            with self._changed:
                self._gaps.append(f"{resource.kind}: {error}")
                self._changed.notify_all()

    def _catch_up(self, resource: Resource) -> str:
        """Record what a list shows to be changed; return the resourceVersion to go on from."""
        objects, version = self._source.list_with_version(resource)
        with self._changed:
            before = {key: found for key, found in self._objects.items() if key[0] == resource.kind}
        for found in objects:
            known = before.pop(_key(found), None)
            if known is None:
                self._take(Entry(time.time(), "ADDED", found))
            elif known["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                self._take(Entry(time.time(), "MODIFIED", found))
        for gone in before.values():
            metadata = {**gone["metadata"], "resourceVersion": version}
            self._take(Entry(time.time(), "DELETED", {**gone, "metadata": metadata}))
        return version

    def _take(self, entry: Entry) -> None:
        with self._changed:
            self._history.append(entry)
            if entry.change == "DELETED":
                self._objects.pop(_key(entry.object), None)
            else:
                self._objects[_key(entry.object)] = entry.object
            self._changed.notify_all()


def state(entries: Iterable[Entry], kind: str) -> dict[str, Object]:
    """Return the objects of a kind that exist after the entries, by name."""
    objects: dict[str, Object] = {}
    for entry in entries:
        if entry.kind == kind:
            remember(objects, entry)
    return objects


def remember(objects: dict[str, Object], entry: Entry) -> None:
    """Bring objects by name to the state after an entry."""
    if entry.change == "DELETED":
        objects.pop(entry.name, None)
    else:
        objects[entry.name] = entry.object


def _version(entry: Entry) -> int:
    return entry.version


def _key(found: Object) -> Key:
    metadata = found["metadata"]
    return found["kind"], metadata.get("namespace", ""), metadata["name"]
