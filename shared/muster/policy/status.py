"""What a condition of an owner says, and the one write that makes its status say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muster.objects.jobs import Job
from muster.objects.meta import find_condition
from muster.objects.patches import PatchType
from muster.policy.model import Action, Owner, Verb

READY = "PodGroupsReady"
PLACED = "PodGroupsScheduled"
JOB_PREFIX = "muster.dev/"
"""Condition types of a Job are shared with the whole world there, so ours carry a prefix."""

MESSAGE_LIMIT = 2048


@dataclass(frozen=True)
class Verdict:
    """What a condition says, before it has a time."""

    type: str
    true: bool
    reason: str
    message: str


def status_write(owner: Owner, said: tuple[Verdict, ...], now: datetime) -> Action | None:
    """The one write that makes the owner's conditions say this, or None where they do already.

    A merge patch of the whole list with ours first: the last condition of a TrainJob is its State column and
    stays the Trainer's. It carries the resourceVersion just read, because the status subresource ignores a
    wrong UID.
    """
    current = owner.status.conditions
    wanted = [_dated(owner, verdict, current, now) for verdict in said]
    ours = {condition["type"] for condition in wanted}
    kept = [condition for condition in current if condition["type"] not in ours]
    mine = [condition for condition in current if condition["type"] in ours]
    if sorted(mine, key=_type) == sorted(wanted, key=_type):
        return None
    body = {
        "metadata": {"resourceVersion": owner.metadata.resource_version},
        "status": {"conditions": [*wanted, *kept]},
    }
    return Action(Verb.PATCH, owner.ref, body, patch=PatchType.MERGE, subresource="status")


def _dated(
    owner: Owner, verdict: Verdict, current: tuple[Mapping[str, Any], ...], now: datetime
) -> dict[str, Any]:
    kind = type_on(owner, verdict)
    status = "True" if verdict.true else "False"
    before = find_condition(current, kind)
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if before is not None and before.get("status") == status:
        since = before.get("lastTransitionTime") or since
    condition: dict[str, Any] = {
        "type": kind,
        "status": status,
        "reason": str(verdict.reason),
        "message": verdict.message[:MESSAGE_LIMIT],
        "lastTransitionTime": since,
    }
    return {**(before or {}), **condition}


def type_on(owner: Owner, verdict: Verdict) -> str:
    """The type of the condition, as the owner's kind has it."""
    return f"{JOB_PREFIX}{verdict.type}" if isinstance(owner, Job) else verdict.type


def _type(condition: Mapping[str, Any]) -> str:
    return str(condition["type"])
