"""emit_conditions: conditions on the owner that say whether its groups exist and its pods are scheduled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from muster.objects.meta import is_true
from muster.objects.pods import to_run
from muster.objects.scheduling import ManagedPodGroup
from muster.policy.groups.manifests import create_event
from muster.policy.model import Action, Decision, GangReport, NoOp, Plan, Reply
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.status.conditions import (
    MESSAGE_LIMIT,
    READY,
    SCHEDULED,
    condition_type,
    conditions_patch,
    why_given_up,
)
from muster.policy.status.group_status import BINDING_TIME, refusal_of_pod
from muster.policy.status.owner_status import GroupingStatus, owner_status
from muster.policy.tree.members import LiveMembers

COMPONENT = "muster-emit-conditions"
_WORTH_AN_EVENT = frozenset(
    {
        Reason.SCHEDULED,
        Reason.UNSCHEDULABLE,
        Reason.SCHEDULING_TIMED_OUT,
        Reason.SCHEDULER_ERROR,
        Reason.MEMBERS_LOST,
        Reason.GANG_SIZE_FIXED,
        Reason.GROUPS_IGNORED,
    }
)
"""Reasons that get an Event when a condition changes to them."""


@dataclass(frozen=True)
class ConditionInputs:
    """The inputs of emit_conditions."""

    resolved: ResolvedOwner | NoOp
    members: LiveMembers
    failed_create: str = ""


@dataclass(frozen=True)
class PlacedInputs:
    """An owner all of whose PodGroups are placed, which tells its status."""

    owner: OwnerObject
    status: GroupingStatus


def plan_conditions(inputs: ConditionInputs | PlacedInputs, now: datetime) -> Decision:
    """Update the owner's conditions, and create an Event if the scheduler's answer changed."""
    if isinstance(inputs, PlacedInputs):
        return _report(inputs.owner, inputs.status, now)
    resolved, members = inputs.resolved, inputs.members
    if isinstance(resolved, NoOp):
        return resolved
    status = owner_status(resolved, members, inputs.failed_create, now)
    requeue = not status.scheduled.true and _has_new_replacements(members, now)
    failed = resolved.why_no_groups is not None
    return _report(resolved.owner, status, now, failed=failed, requeue=requeue)


def _report(
    owner: OwnerObject, status: GroupingStatus, now: datetime, *, failed: bool = False, requeue: bool = False
) -> Decision:
    ready, scheduled = status.conditions
    waiting = tuple(gang for gang in status.gangs if gang.reason != Reason.SCHEDULED)
    report = GangReport(len(status.gangs) - len(waiting), waiting, why_given_up(ready))
    patch = conditions_patch(owner, status.conditions, now)
    if patch is None:
        return NoOp(
            Reason.UP_TO_DATE, f"{owner.ref} already has these conditions", requeue=requeue, gangs=report
        )
    if status.placed is not None:
        patch = replace(patch, milestones=(*patch.milestones, status.placed))
    reply = Reply(
        "scheduled" if scheduled.true else "waiting",
        owner.ref,
        {"reason": scheduled.reason, "message": scheduled.message[:MESSAGE_LIMIT]},
    )
    actions = (patch, *_events(owner, status, now, failed=failed))
    return Plan(Reason.CONDITIONS_UPDATED, scheduled.message, actions, reply, requeue=requeue, gangs=report)


def nothing_to_report(group: ManagedPodGroup, owner: OwnerObject, runner: OwnerObject | None) -> NoOp | None:
    """Return why an event of a PodGroup cannot change the conditions of its owner; None if it may."""
    whole = (runner or owner).has_original_size
    if not (group.placed and group.metadata.written_by_creator_alone and whole):
        return None  # pods may have been added
    if all(is_true(owner.status.conditions, condition_type(owner, name)) for name in (READY, SCHEDULED)):
        return NoOp(Reason.UP_TO_DATE, f"the conditions of {owner.ref} say that its groups are scheduled")
    return None


def _has_new_replacements(members: LiveMembers, now: datetime) -> bool:
    """Whether a pod made less than five seconds ago in place of a lost one waits for the scheduler's answer.

    No event follows that answer: the group keeps its condition, and the Job does not count bound pods.
    """
    if not any(job.lost_pods for job in members.jobs):
        return False
    placed = {group.metadata.name for group in members.groups if group.placed}
    waiting = (
        pod
        for pod in members.pods
        if pod.pod_group_name in placed and to_run(pod) and not pod.bound and refusal_of_pod(pod) is None
    )
    created = (pod.metadata.created_at for pod in waiting)
    return any(at is not None and now - at < BINDING_TIME for at in created)


def _events(owner: OwnerObject, status: GroupingStatus, now: datetime, *, failed: bool) -> tuple[Action, ...]:
    """Return an Event for each condition in which the scheduler's answer or a first failure is new.

    create_workload creates the Event of a failure with its condition; where its write was a conflict and this
    one came first, the Event is created here. Changed counts alone are not worth an Event.
    """
    return tuple(
        create_event(
            owner.ref, COMPONENT, condition.reason, condition.message, now, warning=not condition.true
        )
        for condition in status.conditions
        if condition.has_new_reason(owner)
        and (condition.reason in _WORTH_AN_EVENT or (failed and condition.type == READY))
    )
