"""The result of a reconcile: the writes to execute and when to reconcile again.

A reconcile is pure: it reads objects and returns a `Result`. The worker executes the writes in order and
stops at the first that fails, as upstream controllers do when a sync returns an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.cluster.interface import Object, PatchType
from muster.objects.resources import Resource


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
    name: str
    namespace: str
    body: Any
    patch: PatchType
    manager: str
    subresource: str = ""


@dataclass(frozen=True)
class Delete:
    """DELETE with a uid precondition; a kubelet sends `grace_seconds` 0 once the containers are gone."""

    resource: Resource
    name: str
    namespace: str
    uid: str
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


def status_patch(
    resource: Resource, old: Object, status: Object, manager: str, *, locked: bool
) -> tuple[Patch, ...]:
    """Return the merge patch from the status of `old` to `status`; empty if they are equal."""
    changes = merge_difference(old.get("status") or {}, status)
    if not changes:
        return ()
    metadata = old["metadata"]
    body: Object = {"status": changes}
    if locked:
        body["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
    target = (resource, metadata["name"], metadata.get("namespace", ""))
    return (Patch(*target, body, PatchType.MERGE, manager, subresource="status"),)


def merge_difference(old: Object, new: Object) -> Object:
    """Return the JSON merge patch (RFC 7386) from `old` to `new`; empty if they are equal."""
    patch: Object = {name: None for name in old if name not in new}
    for name, value in new.items():
        if name in old and old[name] == value:
            continue
        before = old.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            patch[name] = merge_difference(before, value)
        else:
            patch[name] = value
    return patch


def strategic_status(resource: Resource, item: Object, status: Object, manager: str) -> Patch:
    """Return the strategic merge patch of the status of an object, which keeps the conditions of others."""
    metadata = item["metadata"]
    target = (resource, metadata["name"], metadata.get("namespace", ""))
    body = {"metadata": {"uid": metadata["uid"]}, "status": status}
    return Patch(*target, body, PatchType.STRATEGIC, manager, subresource="status")
