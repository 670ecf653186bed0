"""The result of planning: writes to make, or the reason to make none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.policy.reasons import Reason


class Verb(StrEnum):
    """What an action does to an object, as RBAC spells it."""

    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


@dataclass(frozen=True)
class Action:
    """One write.

    Attributes:
        verb: what is done.
        target: to which object; a UID in it is a precondition of a deletion.
        body: the object to create, the whole object as it shall be, or the patch; None for a deletion.
        patch: the media type of a patch.
        operations: of a JSON patch, which has no body.
        subresource: "status", or "" for the object itself.
        if_refused: done instead when the API server will never accept this (403, 422), so that no stamped
            pod is left without a group; the server's words are put in for `{refusal}` in their messages.
        optional: losing it costs nothing but a message; its failure does not stop the plan (Events).
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
    """The CloudEvent a step answers with once its plan was carried out: `dev.muster.<step>.<what>`."""

    what: str
    owner: ObjectRef
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Writes, in order, and why.

    Attributes:
        come_again: the writes only clear the way; the event must be delivered again.
    """

    reason: Reason
    message: str
    actions: tuple[Action, ...]
    reply: Reply | None = None
    requeue: bool = False


@dataclass(frozen=True)
class NoOp:
    """No write, and why.

    Attributes:
        come_again: not yet; the event must be delivered again.
    """

    reason: Reason
    message: str = ""
    requeue: bool = False


Decision = Plan | NoOp


@dataclass(frozen=True)
class GroupingFailure:
    """Why an owner's pods cannot be grouped as asked; fallback PodGroups are made instead.

    Attributes:
        reason: one of the reasons for giving up.
        message: what was observed, with field paths.
        group: the group at fault; "" if it is none in particular.
    """

    reason: Reason
    message: str
    group: str = ""
