"""emit_conditions: conditions on the owner that say whether its groups exist and its pods are scheduled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from muster.objects.meta import ObjectRef, find_condition, is_true
from muster.objects.resources import POD_GROUPS
from muster.objects.scheduling import CompositePodGroup, ManagedPodGroup, PodGroup
from muster.objects.versions import GATES_OF_THE_SCHEDULER, HOW_TO_SWITCH_ON
from muster.policy.group_labels import belongs_to, is_musters
from muster.policy.model import (
    Action,
    Decision,
    GangReport,
    GroupingFailure,
    NoOp,
    Plan,
    Reply,
    WaitingGang,
)
from muster.policy.owner_status.conditions import (
    MESSAGE_LIMIT,
    READY,
    SCHEDULED,
    Condition,
    condition_type,
    conditions_patch,
    why_given_up,
)
from muster.policy.owner_status.dropped_settings import with_dropped_settings
from muster.policy.owner_status.group_status import (
    BINDING_TIME,
    WORST_FIRST,
    GangStatus,
    GroupStatus,
    bound_alone,
    gang_statuses,
    gangs_placed,
    group_statuses,
    refusal_of_pod,
)
from muster.policy.owner_status.replaced_groups import without_replaced_groups
from muster.policy.owner_status.timeout import groups_not_given_up, scheduling_timeout
from muster.policy.owners.kind import OwnerObject
from muster.policy.plans import manifests
from muster.policy.plans.gate_release import reasons_to_hold
from muster.policy.plans.min_counts import only_flags, wanted_min_counts, wanted_min_group_counts
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.members import LiveMembers

COMPONENT = "muster-emit-conditions"
_REASONS = frozenset(map(str, Reason))
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

_MAY_LACK_PODS = (Reason.WAITING_FOR_PODS, Reason.SCHEDULING_GATED)


@dataclass(frozen=True)
class ConditionInputs:
    """The inputs of emit_conditions.

    Attributes:
        subject: the object that the event was about.
        resolved: the owner's groups, or why it is left alone.
        members: its Jobs, pods and groups.
        failed_create: the message of the latest FailedCreate Event of its Jobs, while pods are missing.
    """

    subject: ObjectRef
    resolved: ResolvedOwner | NoOp
    members: LiveMembers
    failed_create: str = ""


def plan_conditions(inputs: ConditionInputs, now: datetime) -> Decision:
    """Update the owner's conditions, and create an Event if the scheduler's answer changed."""
    resolved, members = inputs.resolved, inputs.members
    if isinstance(resolved, NoOp):
        return resolved
    statuses = group_statuses(resolved, members, reasons_to_hold(resolved, members))
    conditions = current_conditions(resolved, members, inputs.failed_create, now, statuses)
    ready, scheduled = conditions
    gangs = tuple(gang_statuses(resolved, members, _with_times(resolved, members, statuses, now)))
    report = _gang_report(gangs, ready)
    patch = conditions_patch(resolved.owner, conditions, now)
    binding = not scheduled.true and _is_being_bound(inputs.subject, members, now)
    requeue = binding or (not scheduled.true and _has_new_replacements(members, now))
    if patch is None:
        message = f"{resolved.owner.ref} already has these conditions"
        return NoOp(Reason.UP_TO_DATE, message, requeue=requeue, gangs=report)
    if binding and inputs.subject.kind == POD_GROUPS.kind and _same_statuses(resolved.owner, conditions):
        # The event comes again, and all pods are bound then. A sweep does not, so it writes the count.
        return NoOp(Reason.WAITING_FOR_SCHEDULER, scheduled.message, requeue=True, gangs=report)
    placed = gangs_placed(resolved.owner, gangs, scheduled)
    if placed is not None:
        patch = replace(patch, milestones=(*patch.milestones, placed))
    reply = Reply(
        "scheduled" if scheduled.true else "waiting",
        resolved.root,
        {"reason": scheduled.reason, "message": scheduled.message[:MESSAGE_LIMIT]},
    )
    actions = (patch, *_events(resolved, conditions, now))
    return Plan(Reason.CONDITIONS_UPDATED, scheduled.message, actions, reply, requeue=requeue, gangs=report)


def nothing_to_report(group: ManagedPodGroup, owner: OwnerObject, *, added: bool) -> NoOp | None:
    """Return the reason why an event of a PodGroup cannot change its owner's conditions, or None if it may.

    Args:
        group: the PodGroup as it is now.
        owner: its root owner as it is now.
        added: whether the event is the first of the group.
    """
    if not group.placed:
        return None
    if added:
        return NoOp(Reason.UP_TO_DATE, f"{group.ref} is placed already, which is an event of its own")
    if not (group.metadata.written_by_creator_alone and owner.has_original_size):
        return None  # pods may have been added
    if all(is_true(owner.status.conditions, condition_type(owner, name)) for name in (READY, SCHEDULED)):
        return NoOp(Reason.UP_TO_DATE, f"the conditions of {owner.ref} say that its groups are scheduled")
    return None


def current_conditions(
    resolved: ResolvedOwner,
    members: LiveMembers,
    failed_create: str,
    now: datetime,
    statuses: Mapping[str, GroupStatus] | None = None,
) -> tuple[Condition, Condition]:
    """PodGroupsReady and PodGroupsScheduled of an owner, with what depends on the time.

    Args:
        resolved: the owner.
        members: its Jobs, pods and groups.
        failed_create: the message of the latest FailedCreate Event of its Jobs, while pods are missing.
        now: the time.
        statuses: `group_statuses` of the same owner, if they are known.
    """
    ready, scheduled = conditions_of(resolved, members, failed_create, statuses)
    if scheduled.reason == Reason.WAITING_FOR_SCHEDULER:
        scheduled = _groups_ignored(members, scheduled, now) or scheduled
    timeout = scheduling_timeout(resolved, members, now)
    if timeout is not None:
        message = f"{timeout}; {scheduled.message}"
        scheduled = Condition(SCHEDULED, true=False, reason=Reason.SCHEDULING_TIMED_OUT, message=message)
    return ready, scheduled


def conditions_of(
    resolved: ResolvedOwner,
    members: LiveMembers,
    failed_create: str = "",
    statuses: Mapping[str, GroupStatus] | None = None,
) -> tuple[Condition, Condition]:
    """PodGroupsReady and PodGroupsScheduled of an owner, from its groups and pods as they are now.

    The arguments are those of `current_conditions`.
    """
    if not resolved.api.served:
        return _without_groups(GroupingFailure(Reason.API_NOT_SERVED, HOW_TO_SWITCH_ON))
    if resolved.failure is not None and not resolved.tree:
        return _without_groups(resolved.failure, held=resolved.policy.holds)
    statuses = group_statuses(resolved, members) if statuses is None else statuses
    existing = {group.metadata.name: group for group in members.groups}
    composites = {group.metadata.name for group in members.composites}
    wanted_composites = list(resolved.composite_names())
    missing = [name for name in wanted_composites if name not in composites]
    missing += [name for name in statuses if name not in existing]
    groups = [existing[name] for name in statuses if name in existing]
    gangs = groups_not_given_up(resolved, groups)
    fallback = [group for group in groups if _is_fallback(group) and group.metadata.name not in gangs]
    # One of another owner, whose pods have this one's labels, is no gang either.
    fallback += _fallback_of_strays(resolved, members)
    total = len(statuses) + len(wanted_composites)
    ready = _ready(resolved.why_no_groups, missing, fallback, total)
    ready = without_replaced_groups(resolved, members, ready)
    if ready.true:
        ready = with_dropped_settings(resolved, _with_sizes(resolved, members, ready))
    return ready, _scheduled(list(statuses.values()), failed_create)


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


def _same_statuses(owner: OwnerObject, conditions: tuple[Condition, Condition]) -> bool:
    """Whether an owner has conditions of these types and statuses, whatever their reasons and messages."""
    current = owner.status.conditions
    before = (find_condition(current, condition_type(owner, condition.type)) for condition in conditions)
    return all(
        found is not None and (found.get("status") == "True") is condition.true
        for found, condition in zip(before, conditions, strict=True)
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
    created = [pod.metadata.created_at for pod in waiting if pod.metadata.created_at is not None]
    return any(now - at < BINDING_TIME for at in created)


def _with_times(
    resolved: ResolvedOwner, members: LiveMembers, statuses: Mapping[str, GroupStatus], now: datetime
) -> Mapping[str, GroupStatus]:
    """Return the statuses of an owner's groups, with the reasons that depend on the time."""
    timeout = scheduling_timeout(resolved, members, now)
    late = timeout.groups if timeout is not None else frozenset[str]()
    ignored = {
        name
        for name in bound_alone(members, now) & statuses.keys()
        if statuses[name].reason == Reason.WAITING_FOR_SCHEDULER
    }
    reasons = dict.fromkeys(ignored, Reason.GROUPS_IGNORED)
    reasons |= dict.fromkeys(late & statuses.keys(), Reason.SCHEDULING_TIMED_OUT)
    return {**statuses, **{name: replace(statuses[name], reason=reason) for name, reason in reasons.items()}}


def _groups_ignored(members: LiveMembers, scheduled: Condition, now: datetime) -> Condition | None:
    """GroupsIgnored if pods were bound some time ago and the scheduler wrote no status of their group."""
    ignored = bound_alone(members, now)
    if not ignored:
        return None
    names = ", ".join(sorted(ignored))
    reason = f"kube-scheduler bound pods of {names} one by one: {GATES_OF_THE_SCHEDULER}"
    return replace(scheduled, reason=Reason.GROUPS_IGNORED, message=f"{scheduled.message}; {reason}")


def _fallback_of_strays(resolved: ResolvedOwner, members: LiveMembers) -> list[PodGroup]:
    """Return the fallback PodGroups that unfinished pods name and that are not among the owner's groups."""
    wanted = {name for _, name in resolved.pod_groups()}
    named = {pod.pod_group_name for pod in members.pods if not (pod.finished or pod.being_deleted)}
    strays = named - wanted
    made = [group for group in members.groups if belongs_to(group.metadata.labels, resolved.root.uid)]
    return [group for group in made if group.metadata.name in strays and _is_fallback(group)]


def _is_fallback(group: PodGroup) -> bool:
    """Whether Muster made a group in place of a gang."""
    metadata = group.metadata
    return manifests.FALLBACK in metadata.annotations and is_musters(metadata.labels)


def _without_groups(failure: GroupingFailure, *, held: bool = False) -> tuple[Condition, Condition]:
    """Return both conditions of an owner that gets no groups at all."""
    message = f"{_effect_on_pods(failure, held=held)}: {failure.message}"
    return (
        Condition(READY, true=False, reason=failure.reason, message=failure.message),
        Condition(SCHEDULED, true=False, reason=failure.reason, message=message),
    )


def _effect_on_pods(failure: GroupingFailure, *, held: bool) -> str:
    """Return, for a message, how pods are scheduled whose groups cannot be made."""
    if held:
        return "the pods stay gated"
    if failure.reason == Reason.PRIORITIES_DIFFER:
        return "the scheduler places none of these pods, not even one by one"
    return "the pods are scheduled one by one"


def _with_sizes(resolved: ResolvedOwner, members: LiveMembers, ready: Condition) -> Condition:
    """Return the condition, with the groups whose minCount or minGroupCount does not follow their pods.

    Where minCount is immutable only growth is reported: a gang shrinks as its members finish.
    """
    flagged, version = only_flags(resolved), resolved.api.version
    if resolved.own is not None or not (flagged or not resolved.api.resizable):
        return ready
    by_kind: tuple[tuple[tuple[PodGroup | CompositePodGroup, ...], dict[str, int]], ...] = (
        (members.composites, wanted_min_group_counts(resolved, members)),
        (members.groups, wanted_min_counts(resolved, members)),
    )
    differing = [
        f"{group.metadata.name} has {group.minimum_field} {group.spec.scheduling_policy.needs}, "
        f"its {group.member_kind} need {wanted[group.metadata.name]}"
        for groups, wanted in by_kind
        for group in groups
        if _differs(group, wanted.get(group.metadata.name, 0), lower_too=flagged)
    ]
    if not differing:
        return ready
    cause = "onScale is Flag" if flagged else f"minCount is immutable in {version}"
    reason = Reason.SCALING_FLAGGED if flagged else Reason.GANG_SIZE_FIXED
    return replace(ready, reason=reason, message=f"{ready.message}; {cause}: {'; '.join(differing)}")


def _differs(group: PodGroup | CompositePodGroup, wanted: int, *, lower_too: bool) -> bool:
    current = group.spec.scheduling_policy.needs
    return wanted > current or (lower_too and 0 < wanted < current)


def _ready(
    failure: GroupingFailure | None, missing: list[str], fallback: list[PodGroup], total: int
) -> Condition:
    if failure is not None:
        return Condition(READY, true=False, reason=failure.reason, message=failure.message)
    if fallback:
        reason, _, message = fallback[0].metadata.annotations[manifests.FALLBACK].partition(": ")
        if reason not in _REASONS:  # somebody else wrote the annotation, and the API refuses most texts
            reason = Reason.NOT_AS_CREATED
        names = ", ".join(group.metadata.name for group in fallback)
        return Condition(READY, true=False, reason=reason, message=f"fallback PodGroups {names}: {message}")
    if missing:
        message = f"{total - len(missing)} of {total} PodGroups exist; missing: {', '.join(missing)}"
        return Condition(READY, true=False, reason=Reason.WAITING_FOR_POD_GROUP, message=message)
    return Condition(
        READY, true=True, reason=Reason.POD_GROUPS_EXIST, message=f"{total} of {total} PodGroups exist"
    )


def _scheduled(states: list[GroupStatus], failed_create: str) -> Condition:
    worst = min((state.reason for state in states), key=WORST_FIRST.index, default=Reason.SCHEDULED)
    done = sum(state.reason == Reason.SCHEDULED for state in states)
    waiting = [state for state in states if state.reason != Reason.SCHEDULED] or states
    messages = [state.message for state in sorted(waiting, key=lambda state: WORST_FIRST.index(state.reason))]
    message = f"{done} of {len(states)} groups scheduled; {'; '.join(messages)}"
    if failed_create and any(state.reason in _MAY_LACK_PODS for state in states):
        message += f"; pods could not be created: {failed_create}"
    return Condition(SCHEDULED, true=worst == Reason.SCHEDULED, reason=worst, message=message)


def _gang_report(gangs: tuple[GangStatus, ...], ready: Condition) -> GangReport:
    waiting = tuple(WaitingGang(gang.reason, gang.since) for gang in gangs if gang.reason != Reason.SCHEDULED)
    return GangReport(len(gangs) - len(waiting), waiting, why_given_up(ready))


def _events(resolved: ResolvedOwner, conditions: tuple[Condition, ...], now: datetime) -> tuple[Action, ...]:
    return tuple(
        manifests.create_event(
            resolved.root,
            component=COMPONENT,
            warning=not condition.true,
            reason=condition.reason,
            message=condition.message,
            now=now,
        )
        for condition in conditions
        if _is_worth_an_event(resolved.owner, condition, resolved.why_no_groups)
    )


def _is_worth_an_event(owner: OwnerObject, condition: Condition, failure: GroupingFailure | None) -> bool:
    """Whether the scheduler's answer changed, or a failure is reported for the first time.

    The step that gives up creates the Event with its condition; where its write was a conflict and this one
    came first, the Event is created here. Changed counts alone are not worth an Event.
    """
    before = find_condition(owner.status.conditions, condition_type(owner, condition.type))
    changed = before is None or before.get("reason") != condition.reason
    return changed and (
        condition.reason in _WORTH_AN_EVENT or (failure is not None and condition.type == READY)
    )
