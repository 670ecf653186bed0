"""Everything that happens to the objects of a story, from watches, and waiting for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from muster.cluster.client import Client
from muster.cluster.errors import ClusterError, Expired
from muster.objects.resources import JOBS, JOBSETS, POD_GROUPS, PODS, TRAINJOBS, WORKLOADS, Resource
from muster.replay.snapshots import Object, Objects

KINDS = (TRAINJOBS, JOBSETS, JOBS, PODS, WORKLOADS, POD_GROUPS)
WATCH_SECONDS = 5
"""How long one watch request lasts, and so how long a thread may outlive its recorder."""


@dataclass(frozen=True)
class Seen:
    """One change.

    Attributes:
        at: seconds since the epoch, when it was seen.
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
        """The namespace of the object."""
        return str(self.object["metadata"].get("namespace", ""))

    @property
    def version(self) -> int:
        """Its resourceVersion: one counter for all kinds, in etcd as in the embedded server."""
        return int(self.object["metadata"]["resourceVersion"])


class Recorder:
    """Watches the kinds that matter, in all namespaces; safe to read from any thread."""

    def __init__(self, client: Client, kinds: Iterable[Resource] = KINDS) -> None:
        self._client = client
        self._kinds = tuple(kinds)
        self._changed = threading.Condition()
        self._history: list[Seen] = []
        self._objects: dict[str, Object] = {}
        self._stopped = threading.Event()

    def start(self) -> Self:
        """Begin: what exists by now is known, but is no change."""
        for resource in self._kinds:
            found, version = self._client.list_with_version(resource)
            with self._changed:
                self._objects |= {one["metadata"]["uid"]: one for one in found}
            threading.Thread(
                target=self._follow, args=(resource, version), name=f"recorder-{resource.plural}", daemon=True
            ).start()
        return self

    def stop(self) -> None:
        """Record nothing more."""
        self._stopped.set()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def history(self, namespace: str) -> list[Seen]:
        """All changes in a namespace so far, in the order of their resourceVersions."""
        with self._changed:
            return sorted((one for one in self._history if one.namespace == namespace), key=_version)

    def objects(self, namespace: str = "") -> Objects:
        """All objects as they were last seen, of one namespace or of all."""
        with self._changed:
            there = list(self._objects.values())
        return [one for one in there if namespace in {"", one["metadata"].get("namespace", "")}]

    def until(self, holds: Callable[[], Any], seconds: float) -> bool:
        """Wait until something holds, asked again after every change; whether it did in time."""
        end = time.monotonic() + seconds
        with self._changed:
            # Conditions of time alone, such as an answer of the server, are asked for twice a second.
            while not holds():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.5))
        return True

    def _follow(self, resource: Resource, version: str) -> None:
        while not self._stopped.is_set():
            try:
                version = version or self._catch_up(resource)
                for change, found in self._client.watch(
                    resource, resource_version=version, timeout_seconds=WATCH_SECONDS
                ):
                    version = found["metadata"]["resourceVersion"]
                    if self._stopped.is_set():
                        return
                    if change != "BOOKMARK":
                        self._take(Seen(time.time(), change, found))
            except Expired:
                version = ""
            except ClusterError:
                if self._stopped.wait(0.5):
                    return

    def _catch_up(self, resource: Resource) -> str:
        """Take what the API server has forgotten, as far as a list tells; the version to go on from."""
        found, version = self._client.list_with_version(resource)
        of_kind = (resource.api_version, resource.kind)
        before = {_uid(one): one for one in self.objects() if (one["apiVersion"], one["kind"]) == of_kind}
        for one in found:
            known = before.pop(_uid(one), None)
            if known is None:
                self._take(Seen(time.time(), "ADDED", one))
            elif known["metadata"]["resourceVersion"] != one["metadata"]["resourceVersion"]:
                self._take(Seen(time.time(), "MODIFIED", one))
        for one in before.values():
            self._take(Seen(time.time(), "DELETED", one))
        return version

    def _take(self, seen: Seen) -> None:
        with self._changed:
            self._history.append(seen)
            uid = seen.object["metadata"]["uid"]
            if seen.change == "DELETED":
                self._objects.pop(uid, None)
            else:
                self._objects[uid] = seen.object
            self._changed.notify_all()


def _version(seen: Seen) -> int:
    return seen.version


def _uid(one: Object) -> str:
    return str(one["metadata"]["uid"])
