"""Decisions of plans: writes to make, or the reason to make none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from muster.objects.meta import ObjectRef
from muster.policy.reasons import Reason


class PatchType(StrEnum):
    """The media types of PATCH requests."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Verb(StrEnum):
    """The verb of an action, as in RBAC."""

    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


@dataclass(frozen=True)
class GangsPlaced:
    """All gangs of an owner are placed, which they were not before."""

    kind: str
    seconds: float


@dataclass(frozen=True)
class GangGivenUp:
    """An owner gets no gang, or lacks one of its gangs, for a reason that it did not have before."""

    reason: str


Milestone = GangsPlaced | GangGivenUp
"""A placement, or a gang that was given up: metrics count it once the write that reports it succeeded."""


@dataclass(frozen=True)
class Action:
    """One write.

    Attributes:
        target: the object; a UID in it is a precondition of a deletion.
        body: the object to create or to put, or the patch; None for a deletion.
        operations: the operations of a JSON patch, which has no body.
        subresource: "status", or "" for the object itself.
        if_refused: actions in place of this one if the API server refuses it (403, 422), so that no stamped
            pod is left without a group; `{refusal}` in their messages becomes the server's message.
        instead: returns such actions from the server's message and whether it will never accept the action
            (400, 413, 415, 422); if it may (403), the event is delivered again.
        optional: whether its failure does not stop the plan, as for Events.
        milestones: what metrics count once the write has succeeded.
    """

    verb: Verb
    target: ObjectRef
    body: Mapping[str, Any] | None = None
    patch: PatchType | None = None
    subresource: str = ""
    if_refused: tuple[Action, ...] = ()
    optional: bool = False
    operations: tuple[Mapping[str, Any], ...] = ()
    milestones: tuple[Milestone, ...] = ()
    instead: Callable[[str, bool], Iterable[Action]] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Reply:
    """The reply event after a plan was carried out, of type `dev.muster.<step>.<type_suffix>`."""

    type_suffix: str
    owner: ObjectRef
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GangStatus:
    """The status of one gang.

    Attributes:
        reason: why it waits; Scheduled if it is placed.
        since: when it began to wait; None if that is unknown.
        bound_at: when its last pod was bound; None if that is unknown or no pod is.
    """

    reason: str
    since: datetime | None
    bound_at: datetime | None = None


@dataclass(frozen=True)
class GangReport:
    """The gangs of one owner as they are now, for metrics."""

    placed: int = 0
    waiting: tuple[GangStatus, ...] = ()
    gave_up: str = ""


@dataclass(frozen=True)
class Plan:
    """Writes in order, with the reason: a `Reason`, or of a step of one's own a word from a fixed set.

    With `requeue` the event is delivered again after the writes.
    """

    reason: str
    message: str
    actions: tuple[Action, ...]
    reply: Reply | None = None
    requeue: bool = False
    gangs: GangReport | None = None


@dataclass(frozen=True)
class NoOp:
    """No write, with the reason; a reply if another step has to look at the owner."""

    reason: str
    message: str = ""
    requeue: bool = False
    gangs: GangReport | None = None
    reply: Reply | None = None


def as_refused(plan: Plan, reply_type: str) -> Plan:
    """Return a plan whose main write was refused, with the reason RefusedByApi and a reply of this type."""
    message = f"refused: {plan.message}"
    data = {"reason": Reason.REFUSED_BY_API, "message": message}
    reply = None if plan.reply is None else Reply(reply_type, plan.reply.owner, data)
    return replace(plan, reason=Reason.REFUSED_BY_API, message=message, reply=reply)


Decision = Plan | NoOp


@dataclass(frozen=True)
class GroupingFailure:
    """Why an owner's pods cannot be grouped as asked; fallback PodGroups are made instead."""

    reason: str
    message: str
    group: str = ""
