"""create_workload: the Workload of an owner, or fallback PodGroups where its groups cannot be made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from muster.objects.meta import ObjectRef
from muster.objects.pods import Pod, to_run
from muster.objects.resources import WORKLOADS
from muster.objects.scheduling import Workload
from muster.policy.group_labels import REPLICATED_JOB, belongs_to, stamped_name
from muster.policy.groups import manifests
from muster.policy.model import Action, Decision, GroupingFailure, NoOp, Plan, Reply, Verb, as_refused
from muster.policy.owners import kind_of
from muster.policy.owners.job import has_foreign_labels
from muster.policy.owners.kind import OwnerObject
from muster.policy.plans.orphans import OrphanInputs, plan_orphan
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.status.conditions import READY, report_failure, stored_condition
from muster.policy.tree.members import LiveMembers

COMPONENT = "muster-create-workload"

_MAY_BE_STAMPED = frozenset({Reason.UPSTREAM_GROUPS, Reason.MANAGED_ELSEWHERE, Reason.OTHER_SCHEDULER})
"""Reasons to skip an owner that stamp-pods cannot see, so that it may stamp the pods."""

_WORKLOAD_REFUSED = f"{Reason.REFUSED_BY_API}: Workload "
"""The beginning of the annotation of fallback PodGroups in place of those of a refused Workload."""


@dataclass(frozen=True)
class WorkloadInputs:
    """The inputs of create_workload; the members are empty unless `needs_members` asks for them."""

    live: LiveOwner
    resolved: ResolvedOwner | NoOp
    members: LiveMembers = field(default_factory=LiveMembers)


def plan_workload(inputs: WorkloadInputs | OrphanInputs, now: datetime) -> Decision:
    """Create the Workload of an owner, once; or fallback PodGroups if its groups cannot be made."""
    if isinstance(inputs, OrphanInputs):
        return plan_orphan(inputs)
    resolved, members = inputs.resolved, inputs.members
    if isinstance(resolved, NoOp):
        return _fallback_of_skipped(inputs.live.owner, resolved, members, now)
    failure = resolved.why_no_groups
    if failure is None:
        decision = _workload(resolved, members, now)
    else:
        decision = _fallback_of_failed(resolved, members, failure, now)
    return _with_fallback_of_strays(resolved, members, decision, now)


def as_executed(plan: Plan) -> Plan:
    """Return the plan with the reason RefusedByApi if it was to create a Workload and did not."""
    created = any(action.target.kind == WORKLOADS.kind for action in plan.actions)
    return plan if created or plan.reason != Reason.WORKLOAD_CREATED else as_refused(plan, "gave-up")


def needs_members(inputs: WorkloadInputs) -> bool:
    """Whether plan_workload may create fallback PodGroups, for which it needs the owner's pods and groups."""
    live, resolved = inputs.live, inputs.resolved
    if isinstance(resolved, NoOp):
        # NotMarked: the namespace lost its label, but Jobs of a JobSet that were labelled before still create
        # stamped pods.
        kind = None if live.runner is None else kind_of(live.runner)
        runs_jobs = kind is not None and not kind.is_job
        return resolved.reason in _MAY_BE_STAMPED or (resolved.reason == Reason.NOT_MARKED and runs_jobs)
    # Its Workload may have been refused, if emit_conditions has seen that its groups are missing.
    ready = stored_condition(resolved.owner, READY)
    refused = live.workload is None and ready.get("status") == "False"
    return resolved.why_no_groups is not None or refused or _may_have_strays(resolved)


def _may_have_strays(resolved: ResolvedOwner) -> bool:
    """Whether some of an owner's pods may be stamped although Muster does not group their template.

    stamp-pods sees the labels of a pod, but not that the pod's Job is grouped upstream, nor that the
    namespace lost its label since that Job was made, nor that the labels are those of another owner.
    """
    unseen = {Reason.NOT_MARKED, Reason.UPSTREAM_GROUPS}
    return any(
        pod_set.ungrouped in unseen or has_foreign_labels(pod_set, resolved.owner)
        for pod_set in resolved.pod_sets.pod_sets
    )


def _workload(resolved: ResolvedOwner, members: LiveMembers, now: datetime) -> Decision:
    if resolved.own is not None:
        name = resolved.own.metadata.name
        message = f"Workload {name} applies and is never changed"
        return NoOp(Reason.NOT_MUSTERS, message, reply=_created(resolved.root, name))
    if resolved.live.workload is not None:
        return _name_in_use(resolved.live, resolved.live.workload, resolved.root)
    if _has_fallback_of_refused_workload(resolved, members):
        return NoOp(Reason.REFUSED_BY_API, f"all groups of {resolved.root} are fallback PodGroups")
    name = resolved.pod_sets.workload_name
    sizes = ", ".join(
        f"{group.name} ({'gang of ' + str(group.template_min_count) if group.gang else 'basic'})"
        for group in resolved.tree
    )
    instead = partial(_instead_of_refused_workload, resolved, members, now)
    first: dict[Reason, str] = {}
    for reason, message in resolved.warnings:
        first.setdefault(reason, message)
    warnings = (
        manifests.create_event(resolved.root, COMPONENT, reason, message, now)
        for reason, message in first.items()
    )
    return Plan(
        Reason.WORKLOAD_CREATED,
        f"Workload {name} for {resolved.root}: {sizes}",
        (replace(manifests.create_workload(resolved), instead=instead), *warnings),
        _created(resolved.root, name),
    )


def _created(root: ObjectRef, name: str) -> Reply:
    """Return the reply by which create_pod_groups begins, also where an earlier one may have been lost."""
    return Reply("created", root, {"workload": name})


def _name_in_use(live: LiveOwner, workload: Workload, root: ObjectRef) -> Decision:
    """Leave a Workload of the owner's name if it is the owner's; delete one of an earlier owner."""
    if workload.being_deleted:
        return NoOp(Reason.BEING_DELETED, f"{workload.ref} is being deleted", requeue=True)
    if live.musters_workload is not None:
        reply = _created(root, workload.metadata.name)
        return NoOp(Reason.UP_TO_DATE, f"{workload.ref} exists", reply=reply)
    if live.other_owner is not None:
        message = f"{workload.ref} belongs to {live.other_owner.ref}, which is being deleted"
        return NoOp(Reason.WORKLOAD_DOES_NOT_FIT, message, requeue=True)
    return Plan(
        Reason.ORPHANS_REMOVED,
        f"{workload.ref} is left over from an earlier owner of that name",
        (Action(Verb.DELETE, workload.ref),),
        requeue=True,
    )


def _has_fallback_of_refused_workload(resolved: ResolvedOwner, members: LiveMembers) -> bool:
    """Whether fallback PodGroups exist for all groups of an owner whose Workload the API server refused.

    Their pods would stay in them, so a Workload has no use any more.
    """
    existing = {
        group.metadata.name
        for group in members.groups
        if group.metadata.annotations.get(manifests.FALLBACK, "").startswith(_WORKLOAD_REFUSED)
        and belongs_to(group.metadata.labels, resolved.root.uid)
    }
    return bool(existing) and all(one.name in existing for one in resolved.pod_groups)


def _instead_of_refused_workload(
    resolved: ResolvedOwner, members: LiveMembers, now: datetime, refusal: str, never: bool
) -> Iterator[Action]:
    """Yield an Event about a refused Workload, and fallback PodGroups if it will never be accepted.

    Where a quota or a role refuses it, the pods wait for their gang: both may change.
    """
    failure = GroupingFailure(Reason.REFUSED_BY_API, f"Workload {resolved.pod_sets.workload_name}: {refusal}")
    event = manifests.quoting(manifests.event_of_refusal(resolved.root, COMPONENT, now), failure.message)
    yield event
    if never and not resolved.policy.holds:
        yield from _in_place_of_groups(resolved, members, failure, event)


def _fallback_of_failed(
    resolved: ResolvedOwner, members: LiveMembers, failure: GroupingFailure, now: datetime
) -> Decision:
    """Create a fallback PodGroup for every group of an owner, its condition and an Event.

    If it has too many groups, they are created for existing pods; later pods get theirs by sweeps.
    """
    created: tuple[Action, ...] = ()
    if resolved.api.served and not resolved.policy.holds:
        event = manifests.event_of_refusal(resolved.root, COMPONENT, now)
        created = tuple(_in_place_of_groups(resolved, members, failure, event))
    reported = report_failure(resolved.owner, failure.reason, failure.message, COMPONENT, now)
    if not (created or reported):
        return NoOp(failure.reason, failure.message)
    reply = Reply("gave-up", resolved.root, {"reason": failure.reason, "message": failure.message})
    return Plan(failure.reason, failure.message, (*created, *reported), reply)


def _in_place_of_groups(
    resolved: ResolvedOwner, members: LiveMembers, failure: GroupingFailure, event: Action
) -> Iterator[Action]:
    """Yield the creation of each missing group as a fallback PodGroup; if it is refused, of the Event."""
    if not resolved.tree:
        pods = ((pod, failure) for pod in _first_pod_of_each_missing_group(members))
        yield from manifests.fallback_for_pods(resolved.root, pods, event)
    for one in resolved.pod_groups:
        if one.name not in members.group_named:
            yield replace(manifests.fallback_for_group(resolved.root, one, failure), if_refused=(event,))


def _fallback_of_skipped(
    owner: OwnerObject | None, skipped: NoOp, members: LiveMembers, now: datetime
) -> Decision:
    """Create fallback PodGroups for pods that were stamped although their owner is skipped.

    The pods alone give the names, so this works whatever is wrong with the owner.
    """
    if owner is None:
        return skipped
    failure = GroupingFailure(skipped.reason, skipped.message)
    pods = [(pod, failure) for pod in _first_pod_of_each_missing_group(members)]
    event = manifests.event_of_refusal(owner.ref, COMPONENT, now)
    created = tuple(manifests.fallback_for_pods(owner.ref, pods, event))
    names = {action.target.name for action in created}
    # Those of an earlier run whose report was a conflict are in its condition, too.
    made = (group for group in members.groups if belongs_to(group.metadata.labels, owner.metadata.uid))
    names |= {group.metadata.name for group in made if manifests.FALLBACK in group.metadata.annotations}
    message = f"fallback PodGroups {', '.join(sorted(names))}: {skipped.message}"
    reported = report_failure(owner, skipped.reason, message, COMPONENT, now) if names else ()
    if not (created or reported):
        return skipped
    message = f"{len(names)} fallback PodGroups: {skipped.message}"
    return Plan(Reason.FALLBACK_CREATED, message, (*created, *reported))


def _with_fallback_of_strays(
    resolved: ResolvedOwner, members: LiveMembers, decision: Decision, now: datetime
) -> Decision:
    """Add fallback PodGroups for stamped pods outside of the owner's groups to a decision about these."""
    strays = list(_strays(resolved, members))
    if not strays or decision.requeue:
        return decision
    event = manifests.event_of_refusal(resolved.root, COMPONENT, now)
    created = tuple(manifests.fallback_for_pods(resolved.root, strays, event))
    if isinstance(decision, Plan) and any(action.subresource == "status" for action in decision.actions):
        return replace(decision, actions=(*decision.actions, *created))  # its condition is more serious
    names, (_, first) = ", ".join(action.target.name for action in created), strays[0]
    message = f"fallback PodGroups {names}: {first.message}"
    actions = (*created, *report_failure(resolved.owner, first.reason, message, COMPONENT, now))
    if isinstance(decision, Plan):
        return replace(decision, actions=(*decision.actions, *actions))
    return Plan(Reason.FALLBACK_CREATED, message, actions, decision.reply)


def _strays(resolved: ResolvedOwner, members: LiveMembers) -> Iterator[tuple[Pod, GroupingFailure]]:
    """Yield a pod of each missing PodGroup outside of the owner's groups, and why Muster makes no gang."""
    wanted = {one.name for one in resolved.pod_groups}
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
        yield pod, GroupingFailure(pod_set.ungrouped or Reason.NOT_MARKED, message)


def _first_pod_of_each_missing_group(members: LiveMembers) -> Iterator[Pod]:
    """Yield one pod for each missing PodGroup that stamp-pods named; skip names that users wrote."""
    existing = {group.metadata.name for group in members.groups}
    for pod in members.pods:
        name = pod.pod_group_name
        stamped = name and name == stamped_name(pod.metadata.labels)
        if stamped and name not in existing and to_run(pod):
            existing.add(name)
            yield pod
