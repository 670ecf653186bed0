"""The writes of the simulated controllers, and their execution.

A reconcile is pure: it reads objects and returns a `Result`. The writes are executed in order until one
fails, as upstream controllers return an error from a sync.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muster.cluster import errors
from muster.cluster.http.client import Client
from muster.cluster.interface import Object, PatchType
from muster.objects import resources
from muster.objects.resources import Resource
from muster.simulator.controllers.fields import key_of, timestamp

SCHEDULER = "kube-scheduler"


@dataclass(frozen=True)
class Create:
    """POST of a new object, or forced server-side apply; `failure` is the reason of an Event on the owner."""

    resource: Resource
    body: Object
    manager: str
    failure: str
    owner: Object
    apply: bool = False


@dataclass(frozen=True)
class Patch:
    """PATCH of an object, or of its subresource."""

    resource: Resource
    item: Object
    body: Any
    patch: PatchType
    manager: str
    subresource: str = ""


@dataclass(frozen=True)
class Delete:
    """DELETE with a uid precondition; a kubelet sends `grace_seconds` 0 once the containers are gone."""

    resource: Resource
    item: Object
    propagation: str = "Background"
    grace_seconds: int | None = None


@dataclass(frozen=True)
class Bind:
    """POST of a Binding of a pod to a node."""

    pod: Object
    node: str


@dataclass(frozen=True)
class RecordEvent:
    """POST of a core/v1 Event; repetitions of the same Event are dropped."""

    about: Object
    type: str
    reason: str
    message: str
    component: str


Write = Create | Patch | Delete | Bind | RecordEvent


@dataclass(frozen=True)
class Result:
    """The writes in order, and the seconds until the next reconcile; None: when an object changes."""

    writes: tuple[Write, ...] = ()
    requeue_after: float | None = None


Change = tuple[Resource, Object, bool]
"""A kind, one of its objects, and whether it is gone."""


def status_patch(
    resource: Resource, old: Object, status: Object, manager: str, *, locked: bool
) -> tuple[Patch, ...]:
    """Return the merge patch from the status of `old` to `status`; empty if they are equal."""
    changes = _merge_difference(old.get("status") or {}, status)
    if not changes:
        return ()
    lock = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}} if locked else {}
    return (Patch(resource, old, {**lock, "status": changes}, PatchType.MERGE, manager, "status"),)


def strategic_status(resource: Resource, item: Object, status: Object, manager: str) -> Patch:
    """Return the strategic merge patch of the status of an object, which keeps the conditions of others."""
    body = {"metadata": {"uid": item["metadata"]["uid"]}, "status": status}
    return Patch(resource, item, body, PatchType.STRATEGIC, manager, "status")


def _merge_difference(old: Object, new: Object) -> Object:
    """Return the JSON merge patch (RFC 7386) from `old` to `new`; empty if they are equal."""
    patch: Object = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(before, dict) and isinstance(value, dict) and before != value:
            patch[name] = _merge_difference(before, value)
        elif name not in old or before != value:
            patch[name] = value
    return patch


class Executor:
    """Executes writes with one client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._recorded: set[tuple[str, str, str]] = set()

    def execute(self, write: Write) -> Iterator[Change]:
        """Execute one write and yield what it changed; ClusterError if the request failed."""
        match write:
            case Create():
                yield from self._create(write)
            case Patch():
                yield from self._patch(write)
            case Delete():
                yield from self._delete(write)
            case Bind():
                yield from self._bind(write)
            case RecordEvent():
                self._record(write)

    def _create(self, write: Create) -> Iterator[Change]:
        try:
            if write.apply:
                namespace, name = key_of(write.body)
                query = {"fieldManager": write.manager, "force": "true"}
                path, kind = write.resource.path(name, namespace), PatchType.APPLY
                response = self._raw("PATCH", path, write.body, query=query, content_type=kind)
            else:
                response = self._client.create(write.resource, write.body, manager=write.manager)
        except errors.Terminating:
            return  # the namespace is terminating: retrying would fail as well
        except errors.ClusterError as error:
            self._record(RecordEvent(write.owner, "Warning", write.failure, error.message, write.manager))
            raise
        yield write.resource, response, False

    def _patch(self, write: Patch) -> Iterator[Change]:
        namespace, name = key_of(write.item)
        target = (write.resource, name, namespace)
        try:
            response = self._client.patch(
                *target, write.body, patch=write.patch, manager=write.manager, subresource=write.subresource
            )
        except errors.Gone:
            yield from self._read_back(write.resource, write.item)
            return
        yield write.resource, response, False
        metadata = response["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            # Removing the last finalizer may have deleted the object.
            yield from self._read_back(write.resource, write.item)

    def _delete(self, write: Delete) -> Iterator[Change]:
        uid = write.item["metadata"]["uid"]
        options: Object = {"propagationPolicy": write.propagation, "preconditions": {"uid": uid}}
        if write.grace_seconds is not None:
            options["gracePeriodSeconds"] = write.grace_seconds
        namespace, name = key_of(write.item)
        self._raw("DELETE", write.resource.path(name, namespace), options, accepted=(404, 409))
        yield from self._read_back(write.resource, write.item)

    def _bind(self, write: Bind) -> Iterator[Change]:
        namespace, name = key_of(write.pod)
        binding = {
            "metadata": {"name": name, "namespace": namespace, "uid": write.pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": write.node},
        }
        path = resources.PODS.path(name, namespace, "binding")
        self._raw("POST", path, binding, query={"fieldManager": SCHEDULER})
        yield from self._read_back(resources.PODS, write.pod)

    def _record(self, write: RecordEvent) -> None:
        uid = write.about["metadata"]["uid"]
        key = (uid, write.reason, write.message)
        if key in self._recorded:
            return
        self._recorded.add(key)
        namespace, name = key_of(write.about)
        now = timestamp(time.time())
        about = {field: write.about[field] for field in ("apiVersion", "kind")}
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{uuid.uuid4().hex[:16]}", "namespace": namespace or "default"},
            "involvedObject": {**about, "name": name, "namespace": namespace, "uid": uid},
            "type": write.type,
            "reason": write.reason,
            "message": write.message,
            "source": {"component": write.component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            self._client.create(resources.EVENTS, body, manager=write.component)
        except errors.ClusterError:
            self._recorded.discard(key)  # a lost Event must not fail the sync

    def _raw(
        self, method: str, path: str, body: Object, *, accepted: tuple[int, ...] = (), **options: Any
    ) -> Object:
        status, response = self._client.raw(method, path, body=body, **options)
        if status >= 400 and status not in accepted:  # noqa: PLR2004 - HTTP codes are their own names
            raise errors.from_answer(status, response, {})
        return dict(response)

    def _read_back(self, resource: Resource, item: Object) -> Iterator[Change]:
        """Read an object: after a deletion a finalizer or a kubelet may still hold it."""
        namespace, name = key_of(item)
        current = self._client.get(resource, name, namespace)
        if current is None or current["metadata"]["uid"] != item["metadata"]["uid"]:
            yield resource, item, True
        if current is not None:
            yield resource, current, False
