"""Fallback PodGroups: basic groups that let stamped pods run where no gang can be made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from muster.objects.meta import ObjectRef
from muster.objects.pods import Pod
from muster.policy.group_labels import REPLICATED_JOB, belongs_to, stamped_name
from muster.policy.model import Action, Decision, GroupingFailure, NoOp, Plan, Reply
from muster.policy.owner_status.conditions import READY, Condition, conditions_patch
from muster.policy.owners.job import has_foreign_labels
from muster.policy.owners.kind import NEVER, OwnerObject, OwnerPodSets
from muster.policy.plans import manifests
from muster.policy.plans.emit_conditions import conditions_of
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.groups import Group
from muster.policy.tree.members import LiveMembers

_WORKLOAD_REFUSED = f"{Reason.REFUSED_BY_API}: Workload "
"""The beginning of the annotation of fallback PodGroups in place of those of a refused Workload."""

_NOTHING_RUNS = frozenset({Reason.DELETED, Reason.FINISHED, Reason.AWAITING_JOBSET})


def give_up(
    resolved: ResolvedOwner, members: LiveMembers, failure: GroupingFailure, component: str, now: datetime
) -> Decision:
    """Create a fallback PodGroup for every group of the owner, its condition and an Event.

    If it has too many groups, they are created for existing pods; later pods get theirs by sweeps.

    Args:
        resolved: the owner.
        members: its pods, and the groups that exist.
        failure: why its groups cannot be made.
        component: the step that gives up, for the Event.
        now: for the condition and the Event.
    """
    let_go = resolved.api.served and not resolved.policy.holds
    event = event_of_refusal(resolved.root, component, now)
    created = tuple(_in_place_of_groups(resolved, members, failure, event)) if let_go else ()
    ready, _ = conditions_of(replace(resolved, failure=failure), members)
    reported = tuple(_report(resolved.owner, ready, component, now))
    if not (created or reported):
        return NoOp(failure.reason, failure.message)
    reply = Reply("gave-up", resolved.root, {"reason": failure.reason, "message": failure.message})
    return Plan(failure.reason, failure.message, (*created, *reported), reply)


def stand_for_workload(resolved: ResolvedOwner, members: LiveMembers) -> bool:
    """Whether fallback PodGroups exist for all groups of an owner whose Workload the API server refused.

    Their pods would stay in them, so a Workload has no use any more.
    """
    existing = {
        group.metadata.name
        for group in members.groups
        if group.metadata.annotations.get(manifests.FALLBACK, "").startswith(_WORKLOAD_REFUSED)
        and belongs_to(group.metadata.labels, resolved.root.uid)
    }
    return bool(existing) and all(name in existing for _, name in resolved.pod_groups())


def in_place_of_workload(
    resolved: ResolvedOwner,
    members: LiveMembers,
    component: str,
    now: datetime,
    refusal: str,
    never: bool,
) -> Iterator[Action]:
    """Yield an Event about a refused Workload, and fallback PodGroups if it will never be accepted.

    Where a quota or a role refuses it, the pods wait for their gang: both may change.

    Args:
        resolved: the owner.
        members: its groups that exist, as far as they were read.
        component: the step that creates the Workload, for the Event.
        now: for the Event.
        refusal: the message of the API server.
        never: whether the API server will never accept the Workload.
    """
    failure = GroupingFailure(Reason.REFUSED_BY_API, f"Workload {resolved.pod_sets.workload_name}: {refusal}")
    event = manifests.quoting(event_of_refusal(resolved.root, component, now), failure.message)
    yield event
    if never and not resolved.policy.holds:
        yield from _in_place_of_groups(resolved, members, failure, event)


def with_groups_of_strays(
    resolved: ResolvedOwner, members: LiveMembers, decision: Decision, component: str, now: datetime
) -> Decision:
    """Add fallback PodGroups for stamped pods outside of the owner's groups to a decision about these.

    Args:
        resolved: the owner.
        members: its pods and the groups they name, if it may have such pods.
        decision: about its groups.
        component: the step that decides, for the Event.
        now: for the condition and the Event.
    """
    event = event_of_refusal(resolved.root, component, now)
    created = tuple(replace(action, if_refused=(event,)) for action in _for_strays(resolved, members))
    if not created or decision.requeue:
        return decision
    if isinstance(decision, Plan) and any(action.subresource == "status" for action in decision.actions):
        return replace(decision, actions=(*decision.actions, *created))  # its condition is more serious
    reason, _, detail = (created[0].body or {})["metadata"]["annotations"][manifests.FALLBACK].partition(": ")
    message = f"fallback PodGroups {', '.join(action.target.name for action in created)}: {detail}"
    condition = Condition(READY, true=False, reason=reason, message=message)
    reported = _report(resolved.owner, condition, component, now)
    if isinstance(decision, Plan):
        return replace(decision, actions=(*decision.actions, *created, *reported))
    return Plan(Reason.STAND_INS_CREATED, message, (*created, *reported))


def for_stamped_pods(
    owner: OwnerObject | None, skipped: NoOp, members: LiveMembers, component: str, now: datetime
) -> Decision:
    """Create fallback PodGroups for pods that were stamped although their owner is skipped.

    The pods alone give the names, so this works whatever is wrong with the owner.

    Args:
        owner: the owner; None if it is gone.
        skipped: why it is skipped; returned if no pod needs a group.
        members: its pods and the groups they name.
        component: the step that skips it, for the Event.
        now: for the condition and the Event.
    """
    if owner is None or skipped.reason in _NOTHING_RUNS:
        return skipped
    failure = GroupingFailure(skipped.reason, skipped.message)
    event = event_of_refusal(owner.ref, component, now)
    missing = _first_pod_of_each_missing_group(members)
    created = [replace(_for_pod(owner.ref, pod, failure), if_refused=(event,)) for pod in missing]
    if not created:
        return skipped
    message = f"fallback PodGroups {', '.join(action.target.name for action in created)}: {skipped.message}"
    condition = Condition(READY, true=False, reason=skipped.reason, message=message)
    reported = _report(owner, condition, component, now)
    return Plan(
        Reason.STAND_INS_CREATED,
        f"{len(created)} fallback PodGroups: {skipped.message}",
        (*created, *reported),
    )


def if_refused(
    owner: OwnerPodSets,
    action: Action,
    instances: tuple[tuple[Group, str], ...],
    event: Action,
    *,
    hold: bool,
) -> Action:
    """Return `action` with an Event and fallback PodGroups to create if the API server refuses it.

    Args:
        owner: the owner.
        action: the creation of a group.
        instances: the PodGroups whose pods need it, by group and instance suffix: itself, or all below it.
        event: the Event (event_of_refusal), the same for all groups of the owner.
        hold: whether the pods stay gated: then no fallback PodGroups.
    """
    if hold:
        return replace(action, if_refused=(event,))
    failure = GroupingFailure(Reason.REFUSED_BY_API, "{refusal}")
    never = action.body is not None and action.body["spec"].get("preemptionPolicy") == NEVER
    groups = [_for_leaf(owner, leaf, suffix, failure, never_preempts=never) for leaf, suffix in instances]
    # The Event first: the same cause, such as a quota, may refuse the fallback PodGroup too.
    return replace(action, if_refused=(event, *groups))


def event_of_refusal(about: ObjectRef, component: str, now: datetime) -> Action:
    """Return the Event for an `if_refused`, with the API server's message."""
    return manifests.create_event(
        about, component=component, warning=True, reason=Reason.REFUSED_BY_API, message="{refusal}", now=now
    )


def _in_place_of_groups(
    resolved: ResolvedOwner, members: LiveMembers, failure: GroupingFailure, event: Action
) -> Iterator[Action]:
    """Yield the creation of each missing group as a fallback PodGroup; if it is refused, of the Event."""
    if not resolved.tree:
        for pod in _first_pod_of_each_missing_group(members):
            yield replace(_for_pod(resolved.root, pod, failure), if_refused=(event,))
    existing = {group.metadata.name for group in members.groups}
    leaves = {leaf.name: leaf for leaf in resolved.leaves()}
    for instance, name in resolved.pod_groups():
        if name not in existing:
            group = _for_leaf(resolved.pod_sets, leaves[instance.group], instance.suffix, failure)
            yield replace(group, if_refused=(event,))


def _for_strays(resolved: ResolvedOwner, members: LiveMembers) -> Iterator[Action]:
    wanted = {name for _, name in resolved.pod_groups()}
    pod_sets = {pod_set.replicated_job: pod_set for pod_set in resolved.pod_sets.pod_sets}
    for pod in _first_pod_of_each_missing_group(members):
        # The only pod set of a Job has no name, whatever labels its pods have.
        pod_set = pod_sets.get("") or pod_sets.get(pod.metadata.labels.get(REPLICATED_JOB, ""))
        if pod_set is None or pod.pod_group_name in wanted:
            continue
        message = (
            f"{pod_set.path} has labels of another owner, after which the groups of its pods are named"
            if has_foreign_labels(pod_set, resolved.owner)
            else f"{pod_set.path} is not grouped by Muster, but its pods are stamped"
        )
        yield _for_pod(resolved.root, pod, GroupingFailure(pod_set.ungrouped or Reason.NOT_MARKED, message))


def _for_leaf(
    owner: OwnerPodSets, leaf: Group, suffix: str, failure: GroupingFailure, *, never_preempts: bool = False
) -> Action:
    never = never_preempts or leaf.never_preempts_at(suffix)
    name, priority_class = owner.pod_group_name(leaf.name, suffix), leaf.priority_class_at(suffix)
    return manifests.create_fallback_group(owner.root, name, priority_class, failure, never_preempts=never)


def _for_pod(root: ObjectRef, pod: Pod, failure: GroupingFailure) -> Action:
    never = pod.spec.preemption_policy == NEVER
    return manifests.create_fallback_group(
        root, pod.pod_group_name, pod.spec.priority_class_name, failure, never_preempts=never
    )


def _report(owner: OwnerObject, condition: Condition, component: str, now: datetime) -> Iterator[Action]:
    """Yield the condition and an Event of the same text, unless the owner's status has the condition."""
    patch = conditions_patch(owner, (condition,), now)
    if patch is not None:
        yield patch
        yield manifests.create_event(
            owner.ref,
            component=component,
            warning=True,
            reason=condition.reason,
            message=condition.message,
            now=now,
        )


def _first_pod_of_each_missing_group(members: LiveMembers) -> Iterator[Pod]:
    """Yield one pod for each missing PodGroup that stamp-pods named; skip names that users wrote."""
    existing = {group.metadata.name for group in members.groups}
    for pod in members.pods:
        name = pod.pod_group_name
        stamped = name and name == stamped_name(pod.metadata.labels)
        if stamped and name not in existing and not (pod.finished or pod.being_deleted):
            existing.add(name)
            yield pod
