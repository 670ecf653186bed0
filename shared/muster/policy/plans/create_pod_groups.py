"""create_pod_groups: the PodGroups and CompositePodGroups of a stored Workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS
from muster.objects.scheduling import Workload
from muster.policy.groups import manifests
from muster.policy.groups.wanted_groups import (
    WantedGroup,
    first_policies,
    wanted_groups,
)
from muster.policy.model import Action, Decision, GroupingFailure, NoOp, Plan, Reply
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnerGroups, ResolvedOwner
from muster.policy.status.owner_status import dropped_settings
from muster.policy.tree.members import GroupKey, LiveMembers

COMPONENT = "muster-create-pod-groups"


def plan_pod_groups(inputs: OwnerGroups, now: datetime) -> Decision:
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
    if resolved.suspended:
        message = f"{resolved.root} is suspended: its PodGroups are created when it is resumed"
        return NoOp(Reason.WAITING_FOR_POD_GROUP, message)
    workload = resolved.stored_workload()
    return (
        workload if isinstance(workload, NoOp) else _create_missing(resolved, inputs.members, workload, now)
    )


def _create_missing(
    resolved: ResolvedOwner, members: LiveMembers, workload: Workload, now: datetime
) -> Decision:
    root, existing = resolved.root, members.existing
    wanted = tuple(wanted_groups(resolved, workload))
    policies = first_policies(resolved, members, wanted)
    added_later = tuple(_without_template(resolved, workload))
    event = manifests.event_of_refusal(root, COMPONENT, now)
    missing = []
    for group in wanted:
        if group.key not in existing:
            created = manifests.create_group(
                root,
                workload,
                group.name,
                group.template,
                policy=policies[group.key],
                priority_class=group.priority_class,
                parent=group.parent,
            )
            without_group = [one for one in group.pod_groups if one.key not in existing]
            hold = resolved.policy.holds
            missing.append(manifests.with_fallback(root, created, without_group, event, hold=hold))
    if not (existing or added_later) and _are_plain(resolved, wanted, missing):
        missing = [manifests.with_number_of_groups(action, len(missing)) for action in missing]
    missing += [action for action in added_later if _key(action) not in existing]
    # A group that exists is ours, a fallback, or a user's own: each serves the pods that name it.
    keys = (*(group.key for group in wanted), *map(_key, added_later))
    being_deleted = [key[1] for key in keys if key in existing and existing[key].being_deleted]
    if not missing and being_deleted:
        return NoOp(Reason.BEING_DELETED, f"{', '.join(being_deleted)}: being deleted", requeue=True)
    if not missing:
        return NoOp(Reason.UP_TO_DATE, f"all PodGroups of {workload.ref} exist")
    names = [action.target.name for action in missing]
    reply = Reply("created", root, {"workload": workload.metadata.name})
    message = f"PodGroups of {workload.ref}: {', '.join(names)}"
    plan = Plan(Reason.POD_GROUPS_CREATED, message, tuple(missing), reply, requeue=bool(being_deleted))
    return as_executed(plan)


def as_executed(plan: Plan) -> Plan:
    """Return the plan with its groups in the reply; RefusedByApi without a reply if it creates none.

    A plan that was carried out has only actions that succeeded: no refused group, but its fallback.
    """
    kinds = {POD_GROUPS.kind, COMPOSITE_POD_GROUPS.kind}
    names = [action.target.name for action in plan.actions if action.target.kind in kinds]
    if plan.reply is None or not names:
        return replace(plan, reason=Reason.REFUSED_BY_API, message=f"refused: {plan.message}", reply=None)
    return replace(plan, reply=replace(plan.reply, data={**plan.reply.data, "podGroups": names}))


def _are_plain(resolved: ResolvedOwner, wanted: Sequence[WantedGroup], created: Sequence[Action]) -> bool:
    """Whether Muster's Workload makes gangs of all pods alone, with all settings that the policy asks for."""
    if resolved.own is not None or dropped_settings(resolved) or not created:
        return False
    specs = [action.body["spec"] for action in created if action.body is not None]
    gangs = [(spec["schedulingPolicy"].get("gang") or {}).get("minCount") for spec in specs]
    return gangs == [group.pods for group in wanted] and not any(group.composite for group in wanted)


def _key(creation: Action) -> GroupKey:
    return creation.target.kind, creation.target.name


def _without_template(resolved: ResolvedOwner, workload: Workload) -> Iterator[Action]:
    """Fallback PodGroups for groups labelled after the Workload was created, which takes no new templates."""
    stored = {template.name for template, _ in workload.hierarchy()}
    for one in resolved.pod_groups:
        if one.group.template_name not in stored and not resolved.policy.holds:
            workload_name = workload.metadata.name
            message = f"Workload {workload_name} has no template for {one.group.name}, which was added later"
            failure = GroupingFailure(Reason.WORKLOAD_DOES_NOT_FIT, message)
            yield manifests.fallback_for_group(resolved.root, one, failure)
