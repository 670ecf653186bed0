"""The conditions of an owner, and the patch that writes them to its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from muster.objects.meta import find_condition, time_text
from muster.policy.groups.manifests import create_event
from muster.policy.model import Action, GangGivenUp, PatchType, Verb
from muster.policy.owners import known_kind_of
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason

READY = "PodGroupsReady"
SCHEDULED = "PodGroupsScheduled"
NOT_SCHEDULED = "PodGroupsNotScheduled"
"""Written last, with status True, where the last condition would be one of the two above and not True."""

MESSAGE_LIMIT = 2048
"""The most characters of a condition's message, and of an eviction's in it."""

_MAY_STILL_BE_MADE = frozenset({Reason.WAITING_FOR_POD_GROUP, Reason.NOT_MUSTERS})
"""Reasons of a false PodGroupsReady for which Muster has not given up: it creates the group when it can."""


@dataclass(frozen=True)
class Condition:
    """A condition without its time."""

    type: str
    true: bool
    reason: str
    message: str

    def stored(self, owner: OwnerObject) -> Mapping[str, Any]:
        """Return the condition of this type in the owner's status; empty if it has none."""
        return stored_condition(owner, self.type)

    def has_new_reason(self, owner: OwnerObject) -> bool:
        """Whether the owner's status lacks the condition or has it with another reason."""
        return self.stored(owner).get("reason") != self.reason


def why_given_up(ready: Condition) -> str:
    """Return the reason of PodGroupsReady if Muster has given up a gang of the owner, else ""."""
    return "" if ready.true or ready.reason in _MAY_STILL_BE_MADE else ready.reason


def condition_type(owner: OwnerObject, name: str) -> str:
    """Return the type of a condition of Muster's, READY or SCHEDULED, with the prefix of the owner's kind."""
    return f"{known_kind_of(owner).condition_prefix}{name}"


def stored_condition(owner: OwnerObject, name: str) -> Mapping[str, Any]:
    """Return a condition of Muster's, READY or SCHEDULED, in the owner's status; empty if it has none."""
    return find_condition(owner.status.conditions, condition_type(owner, name)) or {}


def conditions_patch(owner: OwnerObject, conditions: tuple[Condition, ...], now: datetime) -> Action | None:
    """Return the patch that writes these conditions to the owner's status, or None if it has them already.

    A merge patch of the whole list with Muster's conditions first, because a merge patch keeps the order that
    it sends. It carries the resourceVersion just read, because the status subresource ignores a wrong UID.

    The State column of `kubectl get trainjobs` is the type of the last condition, whatever its status
    (api/v1alpha1 of Trainer v2.3.0). The Trainer writes none before the TrainJob is suspended or ends; until
    then the last condition is one that is True.
    """
    kind, current = known_kind_of(owner), owner.status.conditions
    not_scheduled = kind.condition_prefix + NOT_SCHEDULED
    types = {condition_type(owner, READY), condition_type(owner, SCHEDULED), not_scheduled}
    before = [entry for entry in current if entry["type"] in types]
    foreign = [entry for entry in current if entry["type"] not in types]
    written = [_dated(owner, condition, now) for condition in conditions]
    replaced = {not_scheduled, *(entry["type"] for entry in written)}
    ours = [*written, *(entry for entry in before if entry["type"] not in replaced)]
    if kind.shows_last_condition and not foreign and ours[-1]["status"] != "True":
        ours.append(ours[-1] | {"type": not_scheduled, "status": "True"})
    conditions_now = [*ours, *foreign]
    by_type = itemgetter("type")
    unchanged = sorted(ours, key=by_type) == sorted(before, key=by_type)
    if unchanged and not (kind.shows_last_condition and current[-1]["type"] != conditions_now[-1]["type"]):
        return None
    body = {
        "metadata": {"resourceVersion": owner.metadata.resource_version},
        "status": {"conditions": conditions_now},
    }
    given_up = tuple(
        GangGivenUp(condition.reason)
        for condition in conditions
        if condition.type == READY and why_given_up(condition) and _is_news(condition, owner)
    )
    return Action(
        Verb.PATCH, owner.ref, body, patch=PatchType.MERGE, subresource="status", milestones=given_up
    )


def report_failure(
    owner: OwnerObject, reason: str, message: str, component: str, now: datetime
) -> tuple[Action, ...]:
    """Return a false PodGroupsReady and an Event of the same text; nothing if the owner has the condition."""
    patch = conditions_patch(owner, (Condition(READY, true=False, reason=reason, message=message),), now)
    if patch is None:
        return ()
    return patch, create_event(owner.ref, component, reason, message, now)


def _is_news(condition: Condition, owner: OwnerObject) -> bool:
    return condition.has_new_reason(owner) or condition.stored(owner).get("status") != "False"


def _dated(owner: OwnerObject, condition: Condition, now: datetime) -> dict[str, Any]:
    """Return the condition as the API has it; its transition time changes with its status only."""
    before, status = condition.stored(owner), "True" if condition.true else "False"
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        **before,
        "type": condition_type(owner, condition.type),
        "status": status,
        "reason": str(condition.reason),
        "message": condition.message[:MESSAGE_LIMIT],
        "lastTransitionTime": since or time_text(now),
    }
