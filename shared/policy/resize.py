"""resize_gang: minCount follows the pods that are still to run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from shared.objects.jobs import Pod
from shared.objects.patches import PatchType
from shared.objects.scheduling import CompositePodGroupTemplate, PodGroup, Workload, WorkloadSpec
from shared.policy import bodies
from shared.policy.groups import Group, members_to_run
from shared.policy.model import Action, Decision, Nothing, Observed, Plan, Reply, Verb
from shared.policy.ownership import Considered, consider
from shared.policy.reasons import Reason


def plan_resize(observed: Observed, now: datetime) -> Decision:  # noqa: ARG001 - every plan takes the time
    """New minCounts for the gangs of an owner, in its Workload's templates and its PodGroups."""
    considered = consider(observed)
    if isinstance(considered, Nothing):
        return considered
    left = _left_as_it_is(observed, considered)
    workload, root = observed.workload, considered.gang.root
    if left is not None or workload is None:
        return left or Nothing(Reason.AWAITING_WORKLOAD, f"{root} has no Workload yet")
    targets = wanted_sizes(observed, considered)
    actions = (*_templates(workload, considered, targets), *_groups(observed, targets))
    if not actions:
        return Nothing(Reason.UP_TO_DATE, f"minCount of every group of {root} is right")
    sizes = ", ".join(f"{name} {count}" for name, count in targets.items())
    if flags(considered):
        return Nothing(Reason.SCALING_FLAGGED, f"{considered.ruling.where}: onScale is Flag; wanted: {sizes}")
    if not observed.scheduling.resizable:
        version = observed.scheduling.version
        return Nothing(Reason.GANG_SIZE_FIXED, f"{version} does not let minCount change; wanted: {sizes}")
    reply = Reply("resized", root, {"minCounts": targets})
    return Plan(Reason.GANG_RESIZED, f"minCount: {sizes}", actions, reply)


def follows(observed: Observed, considered: Considered) -> bool:
    """Whether the minCounts of an owner's groups follow its pods at all."""
    return considered.own is None and observed.scheduling.resizable and not flags(considered)


def flags(considered: Considered) -> bool:
    """Whether the policy says `onScale: Flag`."""
    policy = considered.ruling.workload
    return policy is not None and policy.on_scale == "Flag"


def _left_as_it_is(observed: Observed, considered: Considered) -> Nothing | None:
    """Why the sizes of an owner's groups are not Muster's to change."""
    root, workload = considered.gang.root, observed.workload
    if considered.flaw is not None:
        return Nothing(considered.flaw.reason, considered.flaw.message)
    if considered.own is not None:
        return Nothing(
            Reason.OWN_WORKLOAD, f"Workload {considered.own.metadata.name} rules; scaling changes nothing"
        )
    if workload is None or workload.being_deleted:
        return Nothing(Reason.AWAITING_WORKLOAD, f"{root} has no Workload yet")
    if not bodies.belongs_to(workload.metadata.labels, root.uid):
        return Nothing(Reason.NOT_MUSTERS, f"{workload.ref} does not belong to {root}")
    return None


def wanted_sizes(observed: Observed, considered: Considered) -> dict[str, int]:
    """The minCount each gang of the owner should have now, by the name of its PodGroup."""
    there = {group.metadata.name: group for group in observed.groups}
    needed = members_to_run(considered.gang, observed.jobs, observed.pods)
    targets: dict[str, int] = {}
    for leaf in _gangs(considered):
        for suffix in leaf.sizes:
            name = considered.gang.pod_group_name(leaf.name, suffix)
            target = max(1, min(needed[leaf.name, suffix], leaf.pinned or needed[leaf.name, suffix]))
            group = there.get(name)
            targets[name] = target if group is None else _approach(group, target, observed.pods)
    return targets


def _approach(group: PodGroup, needed: int, pods: tuple[Pod, ...]) -> int:
    """How far a group may go towards what is needed.

    Down at once: a gang that was scaled down never places again with the old number. Up at once while no
    member has a node: before the first placement, and after a restart. Else only as far as new pods are
    bound, so that the replacement of a running member never waits for growth.
    """
    current = group.spec.scheduling_policy.min_count
    bound = sum(
        pod.bound and not (pod.finished or pod.being_deleted)
        for pod in pods
        if pod.pod_group_name == group.metadata.name
    )
    if needed <= current or not group.placed or bound == 0:
        return needed
    return max(current, min(needed, bound))


def _gangs(considered: Considered) -> Iterator[Group]:
    return (leaf for root in considered.tree for leaf in root.leaves() if leaf.gang)


def _templates(workload: Workload, considered: Considered, targets: dict[str, int]) -> Iterator[Action]:
    """One patch of all templates that changed; the lists are maps by name, so others are not touched."""
    sizes = {
        leaf.name: max(targets[considered.gang.pod_group_name(leaf.name, suffix)] for suffix in leaf.sizes)
        for leaf in _gangs(considered)
        if leaf.sizes
    }
    changed = _changed(workload.spec, sizes)
    if changed:
        body = {"metadata": {"resourceVersion": workload.metadata.resource_version}, "spec": changed}
        yield Action(Verb.PATCH, workload.ref, body, patch=PatchType.STRATEGIC)


def _changed(level: WorkloadSpec | CompositePodGroupTemplate, sizes: dict[str, int]) -> dict[str, Any]:
    """The templates of one level that change, and those above one that does."""
    leaves = [
        {"name": template.name, "schedulingPolicy": {"gang": {"minCount": sizes[template.name]}}}
        for template in level.pod_group_templates
        if template.scheduling_policy.gang
        and sizes.get(template.name, template.scheduling_policy.min_count)
        != template.scheduling_policy.min_count
    ]
    below = {template.name: _changed(template, sizes) for template in level.composite_pod_group_templates}
    composites = [{"name": name, **change} for name, change in below.items() if change]
    lists = {"podGroupTemplates": leaves, "compositePodGroupTemplates": composites}
    return {name: templates for name, templates in lists.items() if templates}


def _groups(observed: Observed, targets: dict[str, int]) -> Iterator[Action]:
    for group in observed.groups:
        policy, target = group.spec.scheduling_policy, targets.get(group.metadata.name)
        if target is None or policy.gang is None or policy.gang.min_count == target:
            continue
        if group.being_deleted or not bodies.is_musters(group.metadata.labels):
            continue
        body = {
            "metadata": {"resourceVersion": group.metadata.resource_version},
            "spec": {"schedulingPolicy": {"gang": {"minCount": target}}},
        }
        yield Action(Verb.PATCH, group.ref, body, patch=PatchType.STRATEGIC)
