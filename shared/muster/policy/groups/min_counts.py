"""The minCount and minGroupCount that the groups of an owner should have now.

The scheduler counts child groups that are ready, and one whose pods have all ended is not (gangscheduling.go,
Kubernetes v1.37.1): the replacement of a pod in another child would wait for it for ever, seen on the real
scheduler. So minGroupCount follows the child groups that still have pods to run, as minCount follows the
pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from muster.objects.pods import Pod
from muster.objects.scheduling import MOST_MEMBERS, CompositePodGroup, PodGroup
from muster.policy.group_labels import GroupInstance, is_musters
from muster.policy.groups.manifests import FALLBACK
from muster.policy.reasons import Reason
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


def wanted_counts(
    resolved: ResolvedOwner, members: LiveMembers, timed_out: Collection[str] = ()
) -> dict[str, int]:
    """Return the minCount or minGroupCount that each gang of the owner should have now, by name of the group.

    Args:
        resolved: the owner.
        members: its Jobs, pods and groups.
        timed_out: PodGroups whose pods are to run one by one after `schedulingTimeoutSeconds`: their minCount
            becomes 1, and stays so.
    """
    needed = members_to_run(resolved.pod_sets, members.jobs, members.pods)
    bound = Counter(pod.pod_group_name for pod in members.staying if pod.bound)
    given_up = groups_given_up(members.groups) | set(timed_out)
    counts = dict(_min_counts(resolved, members, needed, bound, given_up))
    return counts | dict(_min_group_counts(resolved, members, needed, bound, given_up))


def _min_counts(
    resolved: ResolvedOwner,
    members: LiveMembers,
    needed: Counter[GroupInstance],
    bound: Counter[str],
    given_up: Collection[str],
) -> Iterator[tuple[str, int]]:
    """Yield the name of each PodGroup that is a gang, and its minCount."""
    existing = {group.metadata.name: group for group in members.groups}
    for leaf in gangs(resolved):
        for suffix in leaf.sizes:
            name = resolved.pod_sets.pod_group_name(leaf.name, suffix)
            target, group = min_count_of(leaf, needed[GroupInstance(leaf.name, suffix)]), existing.get(name)
            if group is not None:
                target = 1 if name in given_up else _next_min_count(group, target, bound[name])
            yield name, target


def _min_group_counts(
    resolved: ResolvedOwner,
    members: LiveMembers,
    needed: Counter[GroupInstance],
    bound: Counter[str],
    given_up: Collection[str],
) -> Iterator[tuple[str, int]]:
    """Yield the name of each CompositePodGroup that is a gang, and its minGroupCount.

    Lowered at once; raised only while no staying pod below it has a node, as after a restart, when all
    children count again. PodGroups that are not below it, such as fallback PodGroups, never count.
    """
    existing = {group.metadata.name: group for group in members.composites}
    outside = frozenset(_outside_composites(resolved, members))
    for group in composite_gangs(resolved):
        for suffix, copy in group.instances.items():
            name = resolved.pod_sets.pod_group_name(group.name, suffix)
            current = existing[name].spec.scheduling_policy.needs if name in existing else None
            below = set(_names_below(resolved, copy))
            target = max(1, min(group.template_min_count, _children_to_run(copy, needed, outside)))
            if not below.isdisjoint(given_up):
                target = 1
            if current is not None and target > current and not below.isdisjoint(bound):
                target = current
            yield name, target


def min_count_of(leaf: Group, pods: int) -> int:
    """Return the minCount of a gang of so many pods: all, or as pinned; from 1 to MOST_MEMBERS."""
    return max(1, min(pods, leaf.pinned or pods, MOST_MEMBERS))


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
    """Yield the groups that exist without the CompositePodGroup in which the tree has them.

    They were created when their parent could not be: the API server refused it, or the policy was invalid; or
    a user created them. The parent of a group never changes.
    """
    pod_groups = {group.metadata.name: group for group in members.groups}
    composites = {group.metadata.name: group for group in members.composites}
    for group in (group for root in resolved.tree for group in root.composites()):
        for child in group.children:
            existing: Mapping[str, PodGroup | CompositePodGroup] = (
                composites if child.children else pod_groups
            )
            for suffix in child.instances if child.children else child.sizes:
                found = existing.get(resolved.pod_sets.pod_group_name(child.name, suffix))
                parent = resolved.name_above(group.name, child.name, suffix)
                if found is not None and found.spec.parent_composite_pod_group_name != parent:
                    yield GroupInstance(child.name, suffix)


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


def _children_to_run(group: Group, needed: Counter[GroupInstance], outside: Collection[GroupInstance]) -> int:
    """Return the number of child groups that still have pods to run and are not outside of the group."""
    running = {
        GroupInstance(child.name, suffix)
        for child in group.children
        for suffix, pods in (
            ((suffix, _children_to_run(copy, needed, outside)) for suffix, copy in child.instances.items())
            if child.children
            else ((suffix, needed[GroupInstance(child.name, suffix)]) for suffix in child.sizes)
        )
        if pods > 0
    }
    return len(running.difference(outside))


def _names_below(resolved: ResolvedOwner, group: Group) -> Iterator[str]:
    for leaf in group.leaves():
        for suffix in leaf.sizes:
            yield resolved.pod_sets.pod_group_name(leaf.name, suffix)


@dataclass(frozen=True)
class SchedulingTimeout:
    """The gangs of an owner that have waited too long.

    Attributes:
        groups: the names of their PodGroups.
        limit: the time that the policy allows, in seconds.
        then: what the policy asks for: `Report`, `Basic` or `Suspend`.
    """

    groups: frozenset[str]
    limit: int
    then: str

    def __str__(self) -> str:
        return f"{', '.join(sorted(self.groups))} waited for room for more than {self.limit} s"


def scheduling_timeout(
    resolved: ResolvedOwner, members: LiveMembers, now: datetime
) -> SchedulingTimeout | None:
    """Return the gangs of an owner that have waited too long, or None.

    The times are those that the scheduler and the API server wrote, so a function that was down loses none.
    """
    policy = resolved.policy.workload
    if policy is None or policy.scheduling_timeout_seconds is None or resolved.own is not None:
        return None
    limit = timedelta(seconds=policy.scheduling_timeout_seconds)
    pods: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in members.staying:
        pods[pod.pod_group_name].append(pod)
    waiting = {
        group.metadata.name: _waiting_since(group, pods[group.metadata.name]) for group in members.groups
    }
    given_up = groups_given_up(members.groups)
    late = frozenset(
        name
        for name, since in waiting.items()
        if since is not None and now - since >= limit and name not in given_up
    )
    return SchedulingTimeout(late, policy.scheduling_timeout_seconds, policy.on_timeout) if late else None


def groups_given_up(groups: Iterable[PodGroup]) -> frozenset[str]:
    """Return the names of PodGroups given up after their timeout: their pods are scheduled one by one."""
    beginning = f"{Reason.SCHEDULING_TIMED_OUT}: "
    return frozenset(
        group.metadata.name
        for group in groups
        if group.metadata.annotations.get(FALLBACK, "").startswith(beginning)
    )


def _waiting_since(group: PodGroup, staying: list[Pod]) -> datetime | None:
    """When a gang of Muster's began to wait for room; None if it does not.

    Before its first placement that is when the scheduler first refused it, so the time behind gates does not
    count. The refusal is not repeated for pods of a restarted or resumed owner; their creation counts.
    """
    policy = group.spec.scheduling_policy
    if not is_musters(group.metadata.labels) or group.being_deleted:
        return None
    if policy.gang is None or len(staying) < policy.min_count:
        return None
    if any(pod.bound or pod.gates for pod in staying):
        return None
    created = [pod.metadata.created_at for pod in staying if pod.metadata.created_at is not None]
    if group.refused_at is not None and all(group.refused_at < time for time in created):
        return max(created, default=group.refused_at)
    return group.refused_at or max(created, default=None)
