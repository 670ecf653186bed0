"""Decisions of plans: writes to make, or the reason to make none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType


class Verb(StrEnum):
    """The verb of an action, as in RBAC."""

    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


@dataclass(frozen=True)
class Action:
    """One write.

    Attributes:
        verb: the kind of write.
        target: the object; a UID in it is a precondition of a deletion.
        body: the object to create or to put, or the patch; None for a deletion.
        patch: the media type of a patch.
        operations: the operations of a JSON patch, which has no body.
        subresource: "status", or "" for the object itself.
        if_refused: actions in place of this one if the API server refuses it (403, 422), so that no stamped
            pod is left without a group; `{refusal}` in their messages becomes the server's message.
        optional: whether its failure does not stop the plan, as for Events.
    """

    verb: Verb
    target: ObjectRef
    body: Mapping[str, Any] | None = None
    patch: PatchType | None = None
    subresource: str = ""
    if_refused: tuple[Action, ...] = ()
    optional: bool = False
    operations: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Reply:
    """The reply event after a plan was carried out, of type `dev.muster.<step>.<type_suffix>`."""

    type_suffix: str
    owner: ObjectRef
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Writes in order, with the reason.

    Attributes:
        reason: a `Reason` of Muster, or a word in CamelCase of a step of one's own, from a fixed set: metrics
            count by it.
        requeue: whether the event must be delivered again after the writes.
    """

    reason: str
    message: str
    actions: tuple[Action, ...]
    reply: Reply | None = None
    requeue: bool = False


@dataclass(frozen=True)
class NoOp:
    """No write, with the reason.

    Attributes:
        reason: as in a `Plan`.
        requeue: whether the event must be delivered again.
    """

    reason: str
    message: str = ""
    requeue: bool = False


Decision = Plan | NoOp


@dataclass(frozen=True)
class GroupingFailure:
    """Why an owner's pods cannot be grouped as asked; fallback PodGroups are made instead.

    Attributes:
        reason: one of the reasons for giving up.
        message: the cause, with field paths.
        group: the group at fault; "" if it is none in particular.
    """

    reason: str
    message: str
    group: str = ""
