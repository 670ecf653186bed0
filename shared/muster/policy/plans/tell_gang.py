"""emit_conditions, of pods of any controller: an Event on the controller, which Muster does not write."""

from __future__ import annotations

from datetime import datetime, timedelta

from muster.policy.groups.gathered import GatheredPods
from muster.policy.groups.manifests import FALLBACK, create_event
from muster.policy.model import Action, Decision, GangReport, GangStatus, NoOp, PatchType, Plan, Verb
from muster.policy.plans.emit_conditions import COMPONENT
from muster.policy.reasons import Reason
from muster.policy.status.group_status import status_of_gathered

TOLD = "muster.dev/told"
"""Annotation of a gathered group: the reason of its last Event, and since when that holds."""

_TOLD_AFTER = {
    Reason.SCHEDULED: timedelta(),
    Reason.UNSCHEDULABLE: timedelta(),
    Reason.SCHEDULER_ERROR: timedelta(),
    Reason.WAITING_FOR_PODS: timedelta(minutes=1),
}
"""Reasons that get an Event, and how long they must have lasted: pods may just be about to come."""


def plan_telling(inputs: GatheredPods, now: datetime) -> Decision:
    """Create an Event that says what a gang waits for, or that it is placed."""
    group, live = inputs.group, inputs.staying
    if group is None or not live:
        return NoOp(Reason.DELETED, f"{inputs.subject} does not exist, or has no pods")
    status = status_of_gathered(group, inputs.pods)
    placed = status.reason == Reason.SCHEDULED
    created = [pod.metadata.created_at for pod in live if pod.metadata.created_at]
    refused = [at for at in (group.refused_at, *(pod.refused_at for pod in live if not pod.bound)) if at]
    since = {Reason.SCHEDULED: group.placed_at, Reason.WAITING_FOR_PODS: min(created, default=None)}.get(
        status.reason, max(refused, default=None)
    )
    waits = () if placed else (GangStatus(status.reason, since),)
    is_gang = group.spec.scheduling_policy.gang is not None
    report = (
        GangReport(int(placed), waits) if is_gang and FALLBACK not in group.metadata.annotations else None
    )
    after = _TOLD_AFTER.get(status.reason)
    told = f"{status.reason} {since}"
    is_told = group.metadata.annotations.get(TOLD) == told
    if after is None or since is None or now - since < after or is_told or group.being_deleted:
        return NoOp(Reason.UP_TO_DATE, status.message, gangs=report)
    event = create_event(inputs.made_by, COMPONENT, status.reason, status.message, now, warning=not placed)
    note = {"metadata": {"uid": group.metadata.uid, "annotations": {TOLD: told}}}
    noted = Action(Verb.PATCH, group.ref, note, patch=PatchType.MERGE)
    return Plan(Reason.CONDITIONS_UPDATED, status.message, (event, noted), gangs=report)
