"""create_pod_groups: the PodGroups and CompositePodGroups of a stored Workload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS
from muster.objects.scheduling import Gang, SchedulingPolicy, Workload
from muster.policy.group_labels import GroupInstance, belongs_to
from muster.policy.groups import manifests
from muster.policy.groups.wanted_groups import (
    GroupKey,
    WantedGroup,
    child_groups,
    existing_groups,
    follows,
    wanted_counts,
    wanted_groups,
)
from muster.policy.model import Action, Decision, GroupingFailure, NoOp, Plan, Reply
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.members import LiveMembers, members_to_run

COMPONENT = "muster-create-pod-groups"


@dataclass(frozen=True)
class PodGroupInputs:
    """The inputs of create_pod_groups."""

    resolved: ResolvedOwner | NoOp
    members: LiveMembers


def plan_pod_groups(inputs: PodGroupInputs, now: datetime) -> Decision:
    """Create the missing PodGroups, with the policies of the stored Workload."""
    resolved = inputs.resolved
    if isinstance(resolved, NoOp):
        return resolved
    failure = resolved.failure
    if failure is not None:
        instead = (
            "the pods keep their gate"
            if resolved.policy.holds
            else "create_workload creates fallback PodGroups"
        )
        return NoOp(failure.reason, f"{failure.message}; {instead}")
    root = resolved.root
    workload = resolved.own or resolved.live.workload
    if workload is None or workload.being_deleted:
        return NoOp(Reason.AWAITING_WORKLOAD, f"{root} has no Workload yet")
    if resolved.own is None and not belongs_to(workload.metadata.labels, root.uid):
        return NoOp(Reason.NOT_MUSTERS, f"{workload.ref} does not belong to {root}")
    return _create_missing(resolved, inputs.members, workload, now)


def _create_missing(
    resolved: ResolvedOwner, members: LiveMembers, workload: Workload, now: datetime
) -> Decision:
    existing = existing_groups(members)
    wanted = tuple(wanted_groups(resolved, workload))
    added_later = tuple(_without_template(resolved, workload))
    # A group that exists is ours, a fallback, or a user's own: each serves the pods that name it.
    keys = (*(group.key for group in wanted), *map(_key, added_later))
    being_deleted = [key[1] for key in keys if key in existing and existing[key].being_deleted]
    missing = (
        *_creations(resolved, members, workload, wanted, now),
        *(action for action in added_later if _key(action) not in existing),
    )
    if not missing and being_deleted:
        return NoOp(Reason.BEING_DELETED, f"{', '.join(being_deleted)}: being deleted", requeue=True)
    if not missing:
        return NoOp(Reason.UP_TO_DATE, f"all PodGroups of {workload.ref} exist")
    names = [action.target.name for action in missing]
    reply = Reply("created", resolved.root, {"workload": workload.metadata.name})
    message = f"PodGroups of {workload.ref}: {', '.join(names)}"
    requeue = bool(being_deleted)
    return as_executed(Plan(Reason.POD_GROUPS_CREATED, message, missing, reply, requeue=requeue))


def as_executed(plan: Plan) -> Plan:
    """Return the plan with its groups in the reply; RefusedByApi without a reply if it creates none.

    A plan that was carried out has only actions that succeeded: no refused group, but its fallback.
    """
    kinds = {POD_GROUPS.kind, COMPOSITE_POD_GROUPS.kind}
    names = [action.target.name for action in plan.actions if action.target.kind in kinds]
    if plan.reply is None or not names:
        return replace(plan, reason=Reason.REFUSED_BY_API, message=f"refused: {plan.message}", reply=None)
    return replace(plan, reply=replace(plan.reply, data={**plan.reply.data, "podGroups": names}))


def _key(creation: Action) -> GroupKey:
    return creation.target.kind, creation.target.name


def _creations(
    resolved: ResolvedOwner,
    members: LiveMembers,
    workload: Workload,
    wanted: tuple[WantedGroup, ...],
    now: datetime,
) -> Iterator[Action]:
    owner, hold = resolved.pod_sets, resolved.policy.holds
    needed = members_to_run(owner, members)
    followed = wanted_counts(resolved, members) if follows(resolved) else {}
    existing = existing_groups(members)
    children = child_groups(wanted, existing)
    event = manifests.event_of_refusal(owner.root, COMPONENT, now)
    for group in wanted:
        if group.key in existing:
            continue
        if group.composite:
            most = children[group.name]
        elif resolved.own is not None:
            most = group.pods
        else:
            most = sum(needed[GroupInstance(leaf.name, suffix)] for leaf, suffix in group.pod_groups)
        created = manifests.create_group(
            owner.root,
            workload,
            group.name,
            group.template,
            policy=_policy(group, followed.get(group.name), most),
            priority_class=group.priority_class,
            parent=group.parent,
        )
        without_group = tuple(
            (leaf, suffix)
            for leaf, suffix in group.pod_groups
            if (POD_GROUPS.kind, owner.pod_group_name(leaf.name, suffix)) not in existing
        )
        yield manifests.with_fallback(owner, created, without_group, event, hold=hold)


def _without_template(resolved: ResolvedOwner, workload: Workload) -> Iterator[Action]:
    """Fallback PodGroups for groups labelled after the Workload was created, which takes no new templates."""
    stored = {template.name for template, _ in workload.hierarchy()}
    for leaf in resolved.leaves():
        if leaf.template_name in stored or resolved.policy.holds:
            continue
        message = f"Workload {workload.metadata.name} has no template for {leaf.name}, which was added later"
        failure = GroupingFailure(Reason.WORKLOAD_DOES_NOT_FIT, message)
        for suffix in leaf.sizes:
            yield manifests.fallback_for_group(resolved.pod_sets, leaf, suffix, failure)


def _policy(group: WantedGroup, followed: int | None, most: int) -> SchedulingPolicy:
    """Return the policy of a group's template, with a count that the group can reach.

    A user's own count is lowered only for a group that never has that many members, such as the last block of
    completion indexes. Where Muster follows the pods, the template may have the minCount of a JobSet that had
    fewer left to run and was then created again.

    Args:
        group: the group.
        followed: the count that its members need; None if Muster does not follow them.
        most: its pods, or its child groups with pods.
    """
    policy = group.template.scheduling_policy
    if policy.gang is None or (group.composite and policy.gang.min_group_count is None):
        return policy
    count = max(1, min(policy.needs, most) if followed is None else followed)
    return SchedulingPolicy(gang=Gang(min_group_count=count) if group.composite else Gang(min_count=count))
