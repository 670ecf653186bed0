"""The conditions of an owner, and the patch that writes them to its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muster.objects.meta import find_condition
from muster.objects.patches import PatchType
from muster.objects.text import printable
from muster.policy.model import Action, Verb
from muster.policy.owners import known_kind_of
from muster.policy.owners.kind import OwnerObject

READY = "PodGroupsReady"
SCHEDULED = "PodGroupsScheduled"

MESSAGE_LIMIT = 2048


@dataclass(frozen=True)
class Condition:
    """A condition without its time."""

    type: str
    true: bool
    reason: str
    message: str


def conditions_patch(owner: OwnerObject, conditions: tuple[Condition, ...], now: datetime) -> Action | None:
    """The patch that writes these conditions to the owner's status, or None if it has them already.

    A merge patch of the whole list with ours first: the last condition of a TrainJob is its State column and
    stays the Trainer's. It carries the resourceVersion just read, because the status subresource ignores a
    wrong UID.
    """
    current = owner.status.conditions
    wanted = [_dated(owner, condition, current, now) for condition in conditions]
    types = {entry["type"] for entry in wanted}
    others = [entry for entry in current if entry["type"] not in types]
    ours = [entry for entry in current if entry["type"] in types]
    if sorted(ours, key=_type) == sorted(wanted, key=_type):
        return None
    body = {
        "metadata": {"resourceVersion": owner.metadata.resource_version},
        "status": {"conditions": [*wanted, *others]},
    }
    return Action(Verb.PATCH, owner.ref, body, patch=PatchType.MERGE, subresource="status")


def condition_type(owner: OwnerObject, condition: Condition) -> str:
    """The type of the condition, with the prefix that the owner's kind asks for."""
    return f"{known_kind_of(owner).condition_prefix}{condition.type}"


def _dated(
    owner: OwnerObject, condition: Condition, current: tuple[Mapping[str, Any], ...], now: datetime
) -> dict[str, Any]:
    """The condition as the API has it; its transition time changes with its status only."""
    kind = condition_type(owner, condition)
    status = "True" if condition.true else "False"
    before = find_condition(current, kind)
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if before is not None and before.get("status") == status:
        since = before.get("lastTransitionTime") or since
    entry: dict[str, Any] = {
        "type": kind,
        "status": status,
        "reason": str(condition.reason),
        "message": printable(condition.message)[:MESSAGE_LIMIT],
        "lastTransitionTime": since,
    }
    return {**(before or {}), **entry}


def _type(entry: Mapping[str, Any]) -> str:
    return str(entry["type"])
