"""The groups that an owner should have, by the templates of its Workload, and the counts that they need now.

minGroupCount follows the child groups that still have pods to run, as minCount follows the pods: to the
scheduler a child group whose pods have all ended is not ready (gangscheduling.go, Kubernetes v1.37.1).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from muster.objects.pods import Pod
from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS
from muster.objects.scheduling import (
    MOST_MEMBERS,
    AnyGroup,
    CompositePodGroupTemplate,
    Gang,
    PodGroup,
    PodGroupTemplate,
    SchedulingPolicy,
    Workload,
)
from muster.policy.group_labels import GATE, GroupInstance, is_musters
from muster.policy.groups.manifests import FALLBACK
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnedGroup, ResolvedOwner
from muster.policy.tree.members import GroupKey, LiveMembers, by_group, members_to_run, next_min_count


@dataclass(frozen=True)
class WantedGroup:
    """A group that an owner should have."""

    name: str
    template: PodGroupTemplate
    parent: str
    pod_groups: tuple[OwnedGroup, ...]
    priority_class: str

    @property
    def composite(self) -> bool:
        """Whether it is a CompositePodGroup."""
        return isinstance(self.template, CompositePodGroupTemplate)

    @property
    def key(self) -> GroupKey:
        """Its kind and name."""
        return (COMPOSITE_POD_GROUPS if self.composite else POD_GROUPS).kind, self.name

    @property
    def pods(self) -> int:
        """The most pods that run in it at once."""
        return sum(one.group.sizes[one.suffix] for one in self.pod_groups)


def wanted_groups(resolved: ResolvedOwner, workload: Workload) -> Iterator[WantedGroup]:
    """Yield the groups that the templates of an owner's Workload make, parents before children.

    Composite groups of a user's own Workload are not in the tree: each has one CompositePodGroup.
    """
    owned: defaultdict[str, list[OwnedGroup]] = defaultdict(list)
    for one in resolved.owned:
        owned[one.group.template_name].append(one)
    name_of, own = resolved.pod_sets.pod_group_name, resolved.own is not None
    for template, above in workload.hierarchy():
        composite = isinstance(template, CompositePodGroupTemplate)
        parent = name_of(above, "") if above else ""
        for one in owned[template.name]:
            if composite == one.composite:
                pod_groups, parent_of_one = resolved.pod_groups_of(one), parent if own else one.parent
                yield WantedGroup(one.name, template, parent_of_one, pod_groups, one.priority_class_name)
        if own and isinstance(template, CompositePodGroupTemplate) and template.name not in resolved.groups:
            below = tuple(one for name in template.leaves() for one in owned[name])
            priority = below[0].group.priority_class_name if below else template.priority_class_name
            yield WantedGroup(name_of(template.name, ""), template, parent, below, priority)


def child_groups(
    groups: Sequence[OwnedGroup | WantedGroup], pods: Mapping[str, int], members: LiveMembers
) -> Counter[str]:
    """Return the number of child groups with pods, by CompositePodGroup.

    A group that exists below another parent, or none, stays there: its spec is fixed.
    """
    counts: Counter[str] = Counter()
    for group in reversed(groups):
        existing = members.existing.get(group.key)
        filled = counts[group.name] if group.composite else pods[group.name]
        if filled > 0 and (existing is None or existing.spec.parent == group.parent):
            counts[group.parent] += 1
    return counts


def pods_to_run(resolved: ResolvedOwner, members: LiveMembers) -> dict[str, int]:
    """Return the pods that will still run at once, by name of their PodGroup."""
    needed = members_to_run(resolved.pod_sets, members)
    return {one.name: needed[GroupInstance(one.group.name, one.suffix)] for one in resolved.pod_groups}


def first_policies(
    resolved: ResolvedOwner, members: LiveMembers, wanted: tuple[WantedGroup, ...]
) -> Mapping[GroupKey, SchedulingPolicy]:
    """Return the policy of each group's template, with a count that the group can reach.

    A user's own count is lowered only for a group that never has that many members, such as a last block.
    """
    needed = pods_to_run(resolved, members)
    followed = wanted_counts(resolved, members) if follows(resolved) else {}
    children = child_groups(wanted, {one.name: one.pods for one in wanted}, members)
    policies: dict[GroupKey, SchedulingPolicy] = {}
    for group in wanted:
        policy = policies[group.key] = group.template.scheduling_policy
        if policy.gang is None or (group.composite and policy.gang.min_group_count is None):
            continue
        if group.composite:
            most = children[group.name]
        else:
            most = needed[group.name] if resolved.own is None else group.pods
        count = followed.get(group.name) or max(1, min(policy.needs, most))
        gang = Gang(min_group_count=count) if group.composite else Gang(min_count=count)
        policies[group.key] = SchedulingPolicy(gang=gang)
    return policies


def follows(resolved: ResolvedOwner) -> bool:
    """Whether Muster keeps the counts of an owner's groups equal to its pods."""
    return resolved.own is None and resolved.api.resizable and not only_flags(resolved)


def only_flags(resolved: ResolvedOwner) -> bool:
    """Whether the policy says `onScale: Flag`."""
    return resolved.policy.workload.on_scale == "Flag"


def wanted_counts(
    resolved: ResolvedOwner, members: LiveMembers, timed_out: Collection[str] = ()
) -> dict[str, int]:
    """Return the count that each gang should have now, by name: 1 if it was given up after a timeout."""
    needed = pods_to_run(resolved, members)
    bound = Counter(pod.pod_group_name for pod in members.staying if pod.bound)
    given_up = groups_given_up(members.groups) | set(timed_out)
    children = child_groups(resolved.owned, needed, members)
    counts: dict[str, int] = {}
    for one in (one for one in resolved.pod_groups if one.group.gang):
        pods, group = needed[one.name], members.group_named.get(one.name)
        target = max(1, min(pods, one.group.pinned or pods, MOST_MEMBERS))
        if group is not None:
            target = 1 if one.name in given_up else next_min_count(group, target, bound[one.name])
        counts[one.name] = target
    for one in (one for one in resolved.composites if one.group.gang):
        below = {pod_group.name for pod_group in resolved.pod_groups_of(one)}
        target = max(1, min(one.group.template_min_count, children[one.name]))
        if not below.isdisjoint(given_up):
            target = 1
        composite = members.composite_named.get(one.name)
        current = target if composite is None else composite.spec.scheduling_policy.needs
        # Lowered at once; raised only while no staying pod below it has a node, as after a restart, when all
        # children count again.
        counts[one.name] = current if target > current and not below.isdisjoint(bound) else target
    return counts


def is_of_wrong_size(group: AnyGroup, wanted: int) -> bool:
    """Whether a gang of Muster's has another count than the wanted one; 0 wants none.

    The count of a PodGroup that is being deleted is only lowered: its pods keep it (podgroup-protection).
    """
    count = group.spec.scheduling_policy.needs
    if not is_musters(group.metadata.labels) or 0 in {count, wanted}:
        return False
    if group.being_deleted:
        return isinstance(group, PodGroup) and wanted < count
    return wanted != count


@dataclass(frozen=True)
class ShortGang:
    """A gang of Muster's of which fewer pods are bound than it needs, with its pods that are to run."""

    name: str
    group: PodGroup
    pods: tuple[Pod, ...]
    bound: int
    needed: int


def short_gangs(resolved: ResolvedOwner, members: LiveMembers) -> Iterator[ShortGang]:
    """Yield the gangs of an owner that lack bound pods, without those that others' gates hold."""
    pods = by_group(members.staying)
    needed = pods_to_run(resolved, members)
    for group in members.groups:
        name, policy = group.metadata.name, group.spec.scheduling_policy
        if not is_musters(group.metadata.labels) or group.being_deleted or policy.gang is None:
            continue
        minimum, bound = min(policy.min_count, needed.get(name, 0)), sum(pod.bound for pod in pods[name])
        if bound < minimum and not any(set(pod.gates) - {GATE} for pod in pods[name]):
            yield ShortGang(name, group, tuple(pods[name]), bound, minimum)


@dataclass(frozen=True)
class SchedulingTimeout:
    """The gangs of an owner that have waited too long."""

    groups: frozenset[str]
    limit: int

    def __str__(self) -> str:
        return f"{', '.join(sorted(self.groups))} waited for room for more than {self.limit} s"


def scheduling_timeout(
    resolved: ResolvedOwner, members: LiveMembers, now: datetime
) -> SchedulingTimeout | None:
    """Return the gangs of an owner that have waited too long by the times in the objects, or None."""
    policy = resolved.policy.workload
    if policy.scheduling_timeout_seconds is None or resolved.own is not None:
        return None
    limit = timedelta(seconds=policy.scheduling_timeout_seconds)
    given_up = groups_given_up(members.groups)
    late = frozenset(
        gang.name
        for gang in short_gangs(resolved, members)
        if (since := _waiting_since(gang)) is not None and now - since >= limit and gang.name not in given_up
    )
    return SchedulingTimeout(late, policy.scheduling_timeout_seconds) if late else None


def groups_given_up(groups: Iterable[PodGroup]) -> frozenset[str]:
    """Return the names of PodGroups given up after their timeout: their pods are scheduled one by one."""
    beginning = f"{Reason.SCHEDULING_TIMED_OUT}: "
    return frozenset(
        group.metadata.name
        for group in groups
        if group.metadata.annotations.get(FALLBACK, "").startswith(beginning)
    )


def _waiting_since(gang: ShortGang) -> datetime | None:
    """When a gang began to wait for pods that it lacks; None if it does not wait.

    That is the scheduler's first refusal, which is not repeated for pods of a restarted or resumed owner, nor
    for a replacement: their creation counts.
    """
    group = gang.group
    counted = [pod for pod in gang.pods if not (pod.bound and group.placed)]
    created = [pod.metadata.created_at for pod in counted if pod.metadata.created_at is not None]
    if group.refused_at is not None and all(group.refused_at < time for time in created):
        return max(created, default=group.refused_at)
    return group.refused_at or max(created, default=None)
