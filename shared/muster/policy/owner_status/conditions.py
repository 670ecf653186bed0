"""The conditions of an owner, and the patch that writes them to its status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muster.objects.meta import find_condition, read_time
from muster.objects.patches import PatchType
from muster.objects.text import printable
from muster.policy.model import Action, GangGivenUp, Verb
from muster.policy.owners import known_kind_of
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason

READY = "PodGroupsReady"
SCHEDULED = "PodGroupsScheduled"
NOT_SCHEDULED = "PodGroupsNotScheduled"
"""Written last, with status True, where the last condition would be one of the two above and not True."""

MESSAGE_LIMIT = 2048
"""The most characters of a condition's message, and of an eviction's in it."""

_MAY_STILL_BE_MADE = frozenset({Reason.WAITING_FOR_POD_GROUP, Reason.NOT_AS_CREATED, Reason.NOT_MUSTERS})
"""Reasons of a false PodGroupsReady for which Muster has not given up: it creates the group when it can."""


@dataclass(frozen=True)
class Condition:
    """A condition without its time."""

    type: str
    true: bool
    reason: str
    message: str


def why_given_up(ready: Condition) -> str:
    """Return the reason of PodGroupsReady if Muster has given up a gang of the owner, else ""."""
    return "" if ready.true or ready.reason in _MAY_STILL_BE_MADE else ready.reason


def conditions_patch(owner: OwnerObject, conditions: tuple[Condition, ...], now: datetime) -> Action | None:
    """Return the patch that writes these conditions to the owner's status, or None if it has them already.

    A merge patch of the whole list with Muster's conditions first, because a merge patch keeps the order that
    it sends. It carries the resourceVersion just read, because the status subresource ignores a wrong UID.
    """
    current = owner.status.conditions
    written = [_dated(owner, condition, current, now) for condition in conditions]
    prefix = known_kind_of(owner).condition_prefix
    types = {f"{prefix}{name}" for name in (READY, SCHEDULED, NOT_SCHEDULED)}
    of_muster = [entry for entry in current if entry["type"] in types]
    foreign = [entry for entry in current if entry["type"] not in types]
    replaced = {prefix + NOT_SCHEDULED, *(entry["type"] for entry in written)}
    ours = [*written, *(entry for entry in of_muster if entry["type"] not in replaced)]
    if known_kind_of(owner).shows_last_condition and not foreign and ours[-1]["status"] != "True":
        ours.append(ours[-1] | {"type": prefix + NOT_SCHEDULED, "status": "True"})
    if sorted(ours, key=_type) == sorted(of_muster, key=_type) and not _is_misplaced(owner, ours, foreign):
        return None
    body = {
        "metadata": {"resourceVersion": owner.metadata.resource_version},
        "status": {"conditions": [*ours, *foreign]},
    }
    gave_up = tuple(_newly_given_up(owner, conditions))
    return Action(
        Verb.PATCH, owner.ref, body, patch=PatchType.MERGE, subresource="status", milestones=gave_up
    )


def _newly_given_up(owner: OwnerObject, conditions: tuple[Condition, ...]) -> Iterator[GangGivenUp]:
    """GangGivenUp if PodGroupsReady gets a reason for giving up that the owner's status does not have yet."""
    for condition in conditions:
        if condition.type != READY or not why_given_up(condition):
            continue
        before = find_condition(owner.status.conditions, condition_type(owner, condition.type)) or {}
        if (before.get("status"), before.get("reason")) != ("False", condition.reason):
            yield GangGivenUp(condition.reason)


def _is_misplaced(
    owner: OwnerObject, ours: Sequence[Mapping[str, Any]], foreign: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether the owner's last condition is not the one that `kubectl get` has to show.

    The State column of `kubectl get trainjobs` is the type of the last condition, whatever its status
    (api/v1alpha1 of Trainer v2.3.0). It is the Trainer's condition wherever the Trainer has written one. It
    writes none before the TrainJob is suspended or ends; until then the last condition is one that is True.
    """
    shown = (foreign or ours)[-1]
    return known_kind_of(owner).shows_last_condition and owner.status.conditions[-1]["type"] != shown["type"]


def condition_type(owner: OwnerObject, name: str) -> str:
    """Return the type of a condition of Muster's, READY or SCHEDULED, with the prefix of the owner's kind."""
    return f"{known_kind_of(owner).condition_prefix}{name}"


def _dated(
    owner: OwnerObject, condition: Condition, current: tuple[Mapping[str, Any], ...], now: datetime
) -> dict[str, Any]:
    """Return the condition as the API has it; its transition time changes with its status only."""
    kind = condition_type(owner, condition.type)
    status = "True" if condition.true else "False"
    before = find_condition(current, kind)
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if before is not None and before.get("status") == status and _has_time(before):
        since = before["lastTransitionTime"]
    entry: dict[str, Any] = {
        "type": kind,
        "status": status,
        "reason": str(condition.reason),
        "message": printable(condition.message, MESSAGE_LIMIT),
        "lastTransitionTime": since,
    }
    return {**(before or {}), **entry}


def _has_time(condition: Mapping[str, Any]) -> bool:
    """Whether a condition has a time that clients can read; Go writes the first second of year 1 as null."""
    time = read_time(condition.get("lastTransitionTime") or "")
    return time is not None and time.year > 1


def _type(entry: Mapping[str, Any]) -> str:
    return str(entry["type"])
