"""resize_gang: minCount follows the pods that are still to run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from muster.objects.patches import PatchType
from muster.objects.scheduling import CompositePodGroupTemplate, PodGroup, Workload, WorkloadSpec
from muster.policy import bodies
from muster.policy.groups import Group, members_to_run, that_stay
from muster.policy.model import Action, Decision, Nothing, Observed, Plan, Reply, Verb
from muster.policy.ownership import Considered, consider
from muster.policy.quorums import is_of_wrong_size, quorum_groups, replaced_composites, wanted_quorums
from muster.policy.reasons import Reason


def plan_resize(observed: Observed, now: datetime) -> Decision:  # noqa: ARG001 - every plan takes the time
    """New minCounts for the gangs of an owner, in its Workload's templates and its PodGroups."""
    considered = consider(observed)
    if isinstance(considered, Nothing):
        return considered
    workload = _workload_to_resize(observed, considered)
    if isinstance(workload, Nothing):
        return workload
    root = considered.gang.root
    targets = wanted_sizes(observed, considered) | wanted_quorums(observed, considered)
    actions = (
        *_templates(workload, considered, targets),
        *replaced_composites(observed, considered, workload, targets),
        *_groups(observed, targets),
    )
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


def _workload_to_resize(observed: Observed, considered: Considered) -> Workload | Nothing:
    """Muster's Workload for an owner, or why the sizes of the owner's groups are not Muster's to change."""
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
    return workload


def wanted_sizes(observed: Observed, considered: Considered) -> dict[str, int]:
    """The minCount each gang of the owner should have now, by the name of its PodGroup."""
    there = {group.metadata.name: group for group in observed.groups}
    needed = members_to_run(considered.gang, observed.jobs, observed.pods)
    bound = Counter(pod.pod_group_name for pod in that_stay(observed.jobs, observed.pods) if pod.bound)
    targets: dict[str, int] = {}
    for leaf in _gangs(considered):
        for suffix in leaf.sizes:
            name = considered.gang.pod_group_name(leaf.name, suffix)
            target = max(1, min(needed[leaf.name, suffix], leaf.pinned or needed[leaf.name, suffix]))
            group = there.get(name)
            targets[name] = target if group is None else _approach(group, target, bound[name])
    return targets


def _approach(group: PodGroup, needed: int, bound: int) -> int:
    """How far a group may go towards what is needed.

    Down at once: a gang that was scaled down never places again with the old number. Up at once while no
    member that stays has a node: before the first placement, and after a restart. Else only as far as new
    pods are bound, so that the replacement of a running member never waits for growth.
    """
    current = group.spec.scheduling_policy.min_count
    if needed <= current or not group.placed or bound == 0:
        return needed
    return max(current, min(needed, bound))


def _gangs(considered: Considered) -> Iterator[Group]:
    return (leaf for root in considered.tree for leaf in root.leaves() if leaf.gang)


def _templates(workload: Workload, considered: Considered, targets: dict[str, int]) -> Iterator[Action]:
    """One patch of all templates whose number changed.

    A JSON patch, because the lists of a Workload have no merge keys: another patch replaces them as a whole,
    and removing a template is forbidden (scheduling/v1beta1/types.go, Kubernetes v1.37.1). Replacing the
    resourceVersion by the one just read makes it a conflict where the indexes may have moved.
    """
    sizes = {
        leaf.name: max(targets[considered.gang.pod_group_name(leaf.name, suffix)] for suffix in leaf.sizes)
        for leaf in _gangs(considered)
        if leaf.sizes
    }
    quorums = {
        group.name: targets[considered.gang.pod_group_name(group.name, "")]
        for group in quorum_groups(considered)
    }
    changed = tuple(_changed(workload.spec, sizes | quorums, "/spec"))
    if changed:
        version = workload.metadata.resource_version
        guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        yield Action(Verb.PATCH, workload.ref, patch=PatchType.JSON, operations=(guard, *changed))


def _changed(
    level: WorkloadSpec | CompositePodGroupTemplate, sizes: dict[str, int], path: str
) -> Iterator[dict[str, Any]]:
    """The numbers of one level, and of those below it, that are not right."""
    lists = (
        ("podGroupTemplates", "minCount", level.pod_group_templates),
        ("compositePodGroupTemplates", "minGroupCount", level.composite_pod_group_templates),
    )
    for name, count, templates in lists:
        for index, template in enumerate(templates):
            here, policy = f"{path}/{name}/{index}", template.scheduling_policy
            if policy.gang and sizes.get(template.name, policy.needs) != policy.needs:
                field = f"{here}/schedulingPolicy/gang/{count}"
                yield {"op": "replace", "path": field, "value": sizes[template.name]}
            if isinstance(template, CompositePodGroupTemplate):
                yield from _changed(template, sizes, here)


def _groups(observed: Observed, targets: dict[str, int]) -> Iterator[Action]:
    for group in observed.groups:
        target = targets.get(group.metadata.name, 0)
        if not is_of_wrong_size(group, target):
            continue
        body = {
            "metadata": {"resourceVersion": group.metadata.resource_version},
            "spec": {"schedulingPolicy": {"gang": {"minCount": target}}},
        }
        yield Action(Verb.PATCH, group.ref, body, patch=PatchType.STRATEGIC)
