"""create_pod_groups: a stored Workload made into the PodGroups that pods are stamped with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS
from muster.objects.scheduling import (
    CompositePodGroupTemplate,
    Gang,
    PodGroupTemplate,
    SchedulingPolicy,
    Workload,
)
from muster.policy import bodies, stand_ins
from muster.policy.groups import GivenUp, Group, Place, members_to_run
from muster.policy.model import Action, Decision, Nothing, Observed, Plan, Reply
from muster.policy.ownership import Considered, consider
from muster.policy.reasons import Reason

COMPONENT = "muster-create-pod-groups"


def plan_pod_groups(observed: Observed, now: datetime) -> Decision:
    """The PodGroups that are missing, with the policies of the Workload as it is stored."""
    considered = consider(observed)
    if isinstance(considered, Nothing):
        return considered
    if considered.flaw is not None:
        return Nothing(considered.flaw.reason, f"{considered.flaw.message}; create_workload makes stand-ins")
    root = considered.gang.root
    workload = considered.own or observed.workload
    if workload is None or workload.being_deleted:
        return Nothing(Reason.AWAITING_WORKLOAD, f"{root} has no Workload yet")
    if considered.own is None and not bodies.belongs_to(workload.metadata.labels, root.uid):
        return Nothing(Reason.NOT_MUSTERS, f"{workload.ref} does not belong to {root}")
    return _materialise(observed, considered, workload, now)


def _materialise(observed: Observed, considered: Considered, workload: Workload, now: datetime) -> Decision:
    root = considered.gang.root
    there = {group.metadata.name: group for group in (*observed.composites, *observed.groups)}
    wanted = [*_wanted(observed, considered, workload, now), *_without_template(considered, workload)]
    on_their_way_out = [
        action.target.name
        for action in wanted
        if action.target.name in there and there[action.target.name].being_deleted
    ]
    # What is there already is ours, a stand-in, or a user's own: each serves the pods of that name.
    missing = tuple(action for action in wanted if action.target.name not in there)
    if not missing and on_their_way_out:
        named = ", ".join(on_their_way_out)
        return Nothing(Reason.BEING_DELETED, f"being deleted: {named}", come_again=True)
    if not missing:
        return Nothing(Reason.UP_TO_DATE, f"all PodGroups of {workload.ref} exist")
    names = [action.target.name for action in missing]
    reply = Reply("created", root, {"workload": workload.metadata.name})
    message = f"PodGroups of {workload.ref}: {', '.join(names)}"
    again = bool(on_their_way_out)
    return naming_created(Plan(Reason.POD_GROUPS_CREATED, message, missing, reply, come_again=again))


def naming_created(plan: Plan) -> Plan:
    """The plan with the groups that it creates in its reply; RefusedByApi without one where there are none.

    Of a plan that was carried out these are the groups that exist: what was refused is not in it, and the
    stand-ins for it are.
    """
    kinds = {POD_GROUPS.kind, COMPOSITE_POD_GROUPS.kind}
    names = [one.target.name for one in plan.actions if one.target.kind in kinds]
    if plan.reply is None or not names:
        return replace(plan, reason=Reason.REFUSED_BY_API, message=f"refused: {plan.message}", reply=None)
    return replace(plan, reply=replace(plan.reply, data={**plan.reply.data, "podGroups": names}))


def _wanted(
    observed: Observed, considered: Considered, workload: Workload, now: datetime
) -> Iterator[Action]:
    """Every group of the stored Workload, parents before children."""
    gang, own, hold = considered.gang, considered.own is not None, considered.ruling.holds
    leaves = {leaf.name: leaf for root in considered.tree for leaf in root.leaves()}
    live = members_to_run(gang, observed.jobs)
    for template, above in workload.hierarchy():
        parent = gang.pod_group_name(above, "") if above else ""
        create = partial(bodies.create_group, gang.root, workload, template=template, parent=parent)
        if isinstance(template, CompositePodGroupTemplate):
            below = [leaves[name] for name in template.leaves() if name in leaves]
            name, one_class = gang.pod_group_name(template.name, ""), _class_of(template, below)
            created = create(name=name, policy=template.scheduling_policy, priority_class=one_class)
            yield stand_ins.refused(gang, created, _places(below), COMPONENT, now, hold=hold)
            continue
        leaf = leaves.get(template.name)
        if leaf is None:
            continue  # a template of the user's own Workload that no pod is stamped for
        for suffix in leaf.sizes:
            name = gang.pod_group_name(template.name, suffix)
            policy = _policy(template, leaf, suffix, live, own=own)
            created = create(name=name, policy=policy, priority_class=leaf.priority_class_at(suffix))
            yield stand_ins.refused(gang, created, ((leaf, suffix),), COMPONENT, now, hold=hold)


def _without_template(considered: Considered, workload: Workload) -> Iterator[Action]:
    """Stand-ins for marks that came after the Workload, which takes no new templates."""
    stored = {template.name for template, _ in workload.hierarchy()}
    for leaf in (leaf for root in considered.tree for leaf in root.leaves()):
        if leaf.name in stored or considered.ruling.holds:
            continue
        message = f"Workload {workload.metadata.name} was made before {leaf.name} and has no template for it"
        why = GivenUp(Reason.WORKLOAD_DOES_NOT_FIT, message)
        for suffix in leaf.sizes:
            name = considered.gang.pod_group_name(leaf.name, suffix)
            yield bodies.create_stand_in(considered.gang.root, name, leaf.priority_class_at(suffix), why)


def _class_of(template: PodGroupTemplate, below: list[Group]) -> str:
    """The class of the pods below a composite: the scheduler compares theirs with the root group's."""
    return below[0].priority_class_name if below else template.priority_class_name


def _places(leaves: list[Group]) -> tuple[tuple[Group, str], ...]:
    return tuple((leaf, suffix) for leaf in leaves for suffix in leaf.sizes)


def _policy(
    template: PodGroupTemplate, leaf: Group, suffix: str, live: Counter[Place], *, own: bool
) -> SchedulingPolicy:
    """The template's policy; a gang asks for no more pods than will come.

    A user's own minCount is kept as it is but for a group that never has that many pods, such as the last
    block of completion indexes.
    """
    policy = template.scheduling_policy
    if policy.gang is None:
        return policy
    pods = leaf.sizes[suffix] if own else live[leaf.name, suffix]
    return SchedulingPolicy(gang=Gang(min_count=max(1, min(policy.gang.min_count, pods))))
