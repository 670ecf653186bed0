"""What a simulated controller answers: the writes it wants made, and when it wants to be asked again.

A reconcile is pure: it reads objects and returns a `Result`. `loop` carries the writes out in order and stops
at the first one the API server refuses, as the real controllers do when a sync returns an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from muster.cluster.port import Object, PatchType
from muster.objects.resources import Resource


@dataclass(frozen=True)
class Create:
    """POST of a new object.

    Attributes:
        failure: reason of the Warning Event on `owner` when the server refuses; empty: no Event.
        owner: the object the Event is about.
    """

    resource: Resource
    body: Object
    manager: str
    failure: str = ""
    owner: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Apply:
    """Server-side apply with force, which also creates; `failure` and `owner` are those of `Create`."""

    resource: Resource
    body: Object
    manager: str
    failure: str = ""
    owner: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Patch:
    """PATCH of an object or, with `subresource`, of its status."""

    resource: Resource
    name: str
    namespace: str
    body: Any
    patch: PatchType
    manager: str
    subresource: str = ""


@dataclass(frozen=True)
class Delete:
    """DELETE of the object with this uid; a kubelet sends `grace_seconds` 0 once containers are gone."""

    resource: Resource
    name: str
    namespace: str
    uid: str
    propagation: str = "Background"
    grace_seconds: int | None = None


@dataclass(frozen=True)
class Bind:
    """POST of a Binding: the pod goes to a node."""

    pod: Object
    node: str


@dataclass(frozen=True)
class Record:
    """A core/v1 Event about an object; the same one is written once only."""

    about: Object
    type: str
    reason: str
    message: str
    component: str


Write = Create | Apply | Patch | Delete | Bind | Record


@dataclass(frozen=True)
class Result:
    """The writes in their order and, where time matters, in how many seconds to come again."""

    writes: tuple[Write, ...] = ()
    again: float | None = None


def soonest(*seconds: float | None) -> float | None:
    """The shortest of several waiting times; None where nothing is waited for."""
    return min((wait for wait in seconds if wait is not None), default=None)


def status_patch(
    resource: Resource, old: Object, status: Object, manager: str, *, locked: bool
) -> tuple[Patch, ...]:
    """The merge patch that turns the status of `old` into `status`; empty when they are equal.

    Args:
        resource: the kind of `old`.
        old: the object as read.
        status: the status it shall have.
        manager: field manager of the write.
        locked: the write carries the resourceVersion read, so that a change in between refuses it.
    """
    changes = merge_difference(old.get("status") or {}, status)
    if not changes:
        return ()
    metadata = old["metadata"]
    body: Object = {"status": changes}
    if locked:
        body["metadata"] = {"resourceVersion": metadata["resourceVersion"]}
    place = (resource, metadata["name"], metadata.get("namespace", ""))
    return (Patch(*place, body, PatchType.MERGE, manager, subresource="status"),)


def merge_difference(old: Object, new: Object) -> Object:
    """The JSON merge patch (RFC 7386) that turns one object into another; empty when they are equal."""
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
