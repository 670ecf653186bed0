"""The minCount and minGroupCount that the groups of an owner should have now.

The scheduler counts child groups that are ready, and one whose pods have all ended is not (gangscheduling.go,
Kubernetes v1.37.1): the replacement of a pod in another child would wait for it for ever, seen on the real
scheduler. So minGroupCount follows the child groups that still have pods to run, as minCount follows the
pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from muster.objects.scheduling import CompositePodGroup, PodGroup
from muster.policy.group_labels import GroupInstance, is_musters
from muster.policy.owner_status.timeout import gave_up_waiting
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.groups import Group
from muster.policy.tree.members import LiveMembers, members_to_run


def follows(resolved: ResolvedOwner) -> bool:
    """Whether Muster keeps the counts of an owner's groups equal to its pods."""
    return resolved.own is None and resolved.api.resizable and not only_flags(resolved)


def only_flags(resolved: ResolvedOwner) -> bool:
    """Whether the policy says `onScale: Flag`."""
    policy = resolved.policy.workload
    return policy is not None and policy.on_scale == "Flag"


def gangs(resolved: ResolvedOwner) -> Iterator[Group]:
    """Return the groups of pods that are gangs."""
    return (leaf for leaf in resolved.leaves() if leaf.gang)


def composite_gangs(resolved: ResolvedOwner) -> Iterator[Group]:
    """Return the composite groups that are gangs."""
    return (group for root in resolved.tree for group in root.composites() if group.gang)


def wanted_min_counts(
    resolved: ResolvedOwner, members: LiveMembers, timed_out: Collection[str] = ()
) -> dict[str, int]:
    """Return the minCount that each gang of the owner should have now, by the name of its PodGroup.

    Args:
        resolved: the owner.
        members: its Jobs, pods and groups.
        timed_out: PodGroups whose pods are to run one by one after `schedulingTimeoutSeconds`: their minCount
            becomes 1, and stays so.
    """
    existing = {group.metadata.name: group for group in members.groups}
    needed = members_to_run(resolved.pod_sets, members.jobs, members.pods)
    bound = Counter(pod.pod_group_name for pod in members.staying if pod.bound)
    targets: dict[str, int] = {}
    for leaf in gangs(resolved):
        for suffix in leaf.sizes:
            name = resolved.pod_sets.pod_group_name(leaf.name, suffix)
            pods = needed[GroupInstance(leaf.name, suffix)]
            target = min_count_of(leaf, pods)
            group = existing.get(name)
            if group is not None and (name in timed_out or gave_up_waiting(group)):
                targets[name] = 1
                continue
            targets[name] = target if group is None else _next_min_count(group, target, bound[name])
    return targets


def wanted_min_group_counts(
    resolved: ResolvedOwner, members: LiveMembers, timed_out: Collection[str] = ()
) -> dict[str, int]:
    """Return the minGroupCount that each composite gang of the owner should have now, by its name.

    Lowered at once; raised only while no staying pod below it has a node, as after a restart, when all
    children count again. PodGroups that are not below it, such as fallback PodGroups, never count.
    """
    existing = {group.metadata.name: group for group in members.composites}
    needed = members_to_run(resolved.pod_sets, members.jobs, members.pods)
    for instance in _outside_composites(resolved, members):
        del needed[instance]
    given_up = {group.metadata.name for group in members.groups if gave_up_waiting(group)} | set(timed_out)
    bound = {pod.pod_group_name for pod in members.staying if pod.bound}
    targets = {}
    for group in composite_gangs(resolved):
        most = group.template_min_count
        for suffix, copy in group.instances.items():
            name = resolved.pod_sets.pod_group_name(group.name, suffix)
            current = existing[name].spec.scheduling_policy.needs if name in existing else None
            target = max(1, min(most, _children_to_run(copy, needed)))
            if given_up.intersection(_names_below(resolved, copy)):
                target = 1
            if current is not None and target > current and bound & set(_names_below(resolved, copy)):
                target = current
            targets[name] = target
    return targets


def min_count_of(leaf: Group, pods: int) -> int:
    """Return the minCount of a gang of so many pods: all, or as pinned; at least 1."""
    return max(1, min(pods, leaf.pinned or pods))


def is_of_wrong_size(group: PodGroup | CompositePodGroup, wanted: int) -> bool:
    """Whether a gang of Muster's has another count than the wanted one; 0 wants none.

    The count of a PodGroup that is being deleted is only lowered: its pods keep it (podgroup-protection), and
    the replacement of one of them would wait for pods that have ended. A CompositePodGroup cannot be replaced
    before it is gone, which a finalizer of a user may delay.
    """
    count = group.spec.scheduling_policy.needs
    if not is_musters(group.metadata.labels) or 0 in {count, wanted}:
        return False
    if group.being_deleted:
        return isinstance(group, PodGroup) and wanted < count
    return wanted != count


def _outside_composites(resolved: ResolvedOwner, members: LiveMembers) -> Iterator[GroupInstance]:
    """Yield the PodGroups that exist without the CompositePodGroup in which the tree has them.

    They were created when their group could not be: the API server refused it, or the policy was invalid. The
    parent of a group never changes.
    """
    above = {
        child.name: group.name
        for root in resolved.tree
        for group in root.composites()
        for child in group.children
    }
    groups = {group.metadata.name: group for group in members.groups}
    for (name, suffix), pod_group in resolved.pod_groups() if above else ():
        parent = resolved.name_above(above.get(name, ""), name, suffix)
        group = groups.get(pod_group)
        if group is not None and group.spec.parent_composite_pod_group_name != parent:
            yield GroupInstance(name, suffix)


def _next_min_count(group: PodGroup, needed: int, bound: int) -> int:
    """Return the minCount to set on the way to the needed one.

    Lowered at once: a gang that was scaled down never places again with the old number. Raised at once while
    no staying member has a node: before the first placement, and after a restart. Else raised only as far as
    pods are bound, so that the replacement of a running member never waits for growth.
    """
    current = group.spec.scheduling_policy.min_count
    if needed <= current or not group.placed or bound == 0:
        return needed
    return max(current, min(needed, bound))


def _children_to_run(group: Group, needed: Counter[GroupInstance]) -> int:
    """Return the number of child groups that still have pods to run."""
    return sum(
        sum(_children_to_run(copy, needed) > 0 for copy in child.instances.values())
        if child.children
        else sum(needed[GroupInstance(child.name, suffix)] > 0 for suffix in child.sizes)
        for child in group.children
    )


def _names_below(resolved: ResolvedOwner, group: Group) -> Iterator[str]:
    for leaf in group.leaves():
        for suffix in leaf.sizes:
            yield resolved.pod_sets.pod_group_name(leaf.name, suffix)
