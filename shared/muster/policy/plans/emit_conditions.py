"""emit_conditions: conditions on the owner that say whether its groups exist and its pods are scheduled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from muster.objects.meta import ObjectRef, is_true
from muster.objects.resources import POD_GROUPS
from muster.objects.scheduling import ManagedPodGroup
from muster.policy.groups.manifests import create_event
from muster.policy.model import Action, Decision, GangReport, NoOp, Plan, Reply, WaitingGang
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

    subject: ObjectRef
    resolved: ResolvedOwner | NoOp
    members: LiveMembers
    failed_create: str = ""


def plan_conditions(inputs: ConditionInputs, now: datetime) -> Decision:
    """Update the owner's conditions, and create an Event if the scheduler's answer changed."""
    resolved, members = inputs.resolved, inputs.members
    if isinstance(resolved, NoOp):
        return resolved
    owner, status = resolved.owner, owner_status(resolved, members, inputs.failed_create, now)
    ready, scheduled = status.conditions
    waiting = tuple(
        WaitingGang(gang.reason, gang.since) for gang in status.gangs if gang.reason != Reason.SCHEDULED
    )
    report = GangReport(len(status.gangs) - len(waiting), waiting, why_given_up(ready))
    patch = conditions_patch(owner, status.conditions, now)
    binding = not scheduled.true and _is_being_bound(inputs.subject, members, now)
    requeue = binding or (not scheduled.true and _has_new_replacements(members, now))
    if patch is None:
        return NoOp(
            Reason.UP_TO_DATE, f"{owner.ref} already has these conditions", requeue=requeue, gangs=report
        )
    if binding and inputs.subject.kind == POD_GROUPS.kind and _has_same_statuses(owner, status):
        # The event comes again, and all pods are bound then. A sweep does not, so it writes the count.
        return NoOp(Reason.WAITING_FOR_SCHEDULER, scheduled.message, requeue=True, gangs=report)
    if status.placed is not None:
        patch = replace(patch, milestones=(*patch.milestones, status.placed))
    reply = Reply(
        "scheduled" if scheduled.true else "waiting",
        resolved.root,
        {"reason": scheduled.reason, "message": scheduled.message[:MESSAGE_LIMIT]},
    )
    actions = (patch, *_events(resolved, status, now))
    return Plan(Reason.CONDITIONS_UPDATED, scheduled.message, actions, reply, requeue=requeue, gangs=report)


def nothing_to_report(group: ManagedPodGroup, owner: OwnerObject, *, added: bool) -> NoOp | None:
    """Return why an event of a PodGroup cannot change the conditions of its owner; None if it may."""
    if not group.placed:
        return None
    if added:
        return NoOp(Reason.UP_TO_DATE, f"{group.ref} is placed already, which is an event of its own")
    if not (group.metadata.written_by_creator_alone and owner.has_original_size):
        return None  # pods may have been added
    if all(is_true(owner.status.conditions, condition_type(owner, name)) for name in (READY, SCHEDULED)):
        return NoOp(Reason.UP_TO_DATE, f"the conditions of {owner.ref} say that its groups are scheduled")
    return None


def _is_being_bound(subject: ObjectRef, members: LiveMembers, now: datetime) -> bool:
    """Whether a group was placed less than five seconds ago and its pods are still being bound.

    The scheduler writes the group's condition before it binds, and no event of a PodGroup follows. An event
    of one group waits for that group only: a job of many groups would outlast the retries of its first.
    """
    unbound = {pod.pod_group_name for pod in members.pods if not (pod.bound or pod.finished)}
    names = unbound & {subject.name} if subject.kind == POD_GROUPS.kind else unbound
    return any(
        group.placed_at is not None and abs(now - group.placed_at) < BINDING_TIME
        for group in members.groups
        if group.metadata.name in names
    )


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
        if pod.pod_group_name in placed
        and not (pod.bound or pod.finished or pod.being_deleted)
        and refusal_of_pod(pod) is None
    )
    created = (pod.metadata.created_at for pod in waiting)
    return any(at is not None and now - at < BINDING_TIME for at in created)


def _has_same_statuses(owner: OwnerObject, status: GroupingStatus) -> bool:
    return all(
        condition.stored(owner).get("status") == ("True" if condition.true else "False")
        for condition in status.conditions
    )


def _events(resolved: ResolvedOwner, status: GroupingStatus, now: datetime) -> tuple[Action, ...]:
    """Return an Event for each condition in which the scheduler's answer or a first failure is new.

    create_workload creates the Event of a failure with its condition; where its write was a conflict and this
    one came first, the Event is created here. Changed counts alone are not worth an Event.
    """
    failed = resolved.why_no_groups is not None
    return tuple(
        create_event(
            resolved.root,
            component=COMPONENT,
            warning=not condition.true,
            reason=condition.reason,
            message=condition.message,
            now=now,
        )
        for condition in status.conditions
        if condition.has_new_reason(resolved.owner)
        and (condition.reason in _WORTH_AN_EVENT or (failed and condition.type == READY))
    )
