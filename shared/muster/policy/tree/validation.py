"""Validation of a tree before its groups are created: limits, deadlocks, priorities and schedulers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from muster.policy import group_labels, limits
from muster.policy.group_labels import GroupLabels
from muster.policy.model import GroupingFailure
from muster.policy.owners.kind import OwnerPodSets, PodSet
from muster.policy.reasons import Reason
from muster.policy.sources.schema import shortened
from muster.policy.tree.groups import Group

TEMPLATE_LIMIT = 8
"""Templates in one list of a Workload (scheduling/v1beta1/types.go, Kubernetes v1.37.1)."""


def exceeds_limits(owner: OwnerPodSets) -> GroupingFailure | None:
    """TooManyGroups if an owner has too many pod templates or its labels ask for too many PodGroups."""
    count, allowed = len(owner.pod_sets), limits.REPLICATED_JOBS
    if count > allowed:
        where = owner.pod_sets[allowed].path
        return _too_many(f"{where}: is one of {count} pod templates", allowed)
    # The PodGroups of a group are numbered from 0: templates that share the group share them too.
    most: dict[str, tuple[int, str]] = {}
    for pod_set in owner.pod_sets:
        for name, label, groups in _numbered(pod_set):
            if groups > most.get(name, (0, ""))[0]:
                most[name] = groups, f"{pod_set.path}.metadata.labels[{label}]"
    total = sum(groups for groups, _ in most.values())
    if total <= limits.POD_GROUPS:
        return None
    groups, where = max(most.values(), key=lambda entry: entry[0])
    counted = f"{groups} of {total}" if groups < total else str(total)
    return _too_many(f"{where}: makes {counted} PodGroups", limits.POD_GROUPS)


def too_many_composites(where: str, composites: int) -> GroupingFailure | None:
    """TooManyGroups if an owner would get too many CompositePodGroups."""
    if composites <= limits.COMPOSITE_POD_GROUPS:
        return None
    return _too_many(f"{where}: makes {composites} CompositePodGroups", limits.COMPOSITE_POD_GROUPS)


def warnings(tree: tuple[Group, ...], *, asked: bool) -> Iterator[tuple[Reason, str]]:
    """Yield how gangs can block those of another owner, and why an eviction would end their Jobs."""
    for message in _blocking_gangs(tree, asked=asked):
        yield Reason.HOLDS_WHILE_WAITING, message
    for message in _gangs_ended_by_eviction(tree):
        yield Reason.ENDS_WHEN_EVICTED, message


def _blocking_gangs(tree: tuple[Group, ...], *, asked: bool) -> Iterator[str]:
    """Yield how the gangs of one owner can block those of another such owner; not of several `asked` for.

    A gang holds its nodes while another waits for room, or for it to be Ready, as in shipped MPI runtimes. A
    dependency that is `Complete` holds nothing.
    """
    both = "two such owners that do not both fit can block each other for ever"
    leaves = [leaf for root in tree for leaf in root.leaves()]
    group_at = {pod_set.index: leaf.name for leaf in leaves for pod_set in leaf.pod_sets}
    for late in leaves:
        waited = 0
        for pod_set in late.pod_sets:
            waited |= pod_set.waits_for & ~pod_set.must_complete
        holding = {name for index, name in group_at.items() if waited >> index & 1}
        for name in sorted(holding - {late.name}):
            yield (
                f"group {name} holds its nodes while group {late.name} waits for it to be Ready: {both}; "
                "one group for both, without dependsOn, cannot"
            )
    gangs = [group for group in tree if group.gang and group.has_pods]
    if not (asked or all(_one_waits(*pair) for pair in combinations(gangs, 2))):
        yield (
            f"{' and '.join(gang.name for gang in gangs)} are {len(gangs)} separate gangs: one may run "
            f"without the other, and {both}; for a single gang give their pod templates the same label "
            f"{group_labels.GROUP}, or a policy with a group of groups"
        )


def _one_waits(one: Group, other: Group) -> bool:
    """Whether the pods of one of two gangs do not exist before those of the other."""
    pairs = [(a, b) for a in one.pod_sets for b in other.pod_sets]
    return any(a.waits_for >> b.index & 1 or b.waits_for >> a.index & 1 for a, b in pairs)


def _gangs_ended_by_eviction(tree: tuple[Group, ...]) -> Iterator[str]:
    """Yield a warning for each pod template whose Jobs fail when a gang of theirs is evicted as a whole."""
    for leaf in (leaf for root in tree for leaf in root.leaves() if leaf.gang):
        for pod_set in leaf.pod_sets:
            jobs = 1 if pod_set.labels is None or pod_set.labels.by_job else max(1, pod_set.jobs)
            parts = (part for parts in leaf.parts.values() for part in parts)
            most = max((pods // jobs for other, pods in parts if other.path == pod_set.path), default=0)
            if pod_set.survives is not None and most > pod_set.survives:
                yield (
                    f"group {leaf.name}: a gang is evicted as a whole, and {most} pods of one Job then count "
                    f"as failures above its backoffLimit {pod_set.survives}, so that the Job fails; set a "
                    "larger one, or a podFailurePolicy that ignores DisruptionTarget"
                )


def _too_many(what: str, allowed: int) -> GroupingFailure:
    return GroupingFailure(Reason.TOO_MANY_GROUPS, f"{what}, but one owner can have {allowed}")


def _numbered(pod_set: PodSet) -> Iterator[tuple[str, str, int]]:
    """Yield each group of a pod set, the label that numbers its PodGroups, and their number."""
    labels = pod_set.labels
    if labels is None:
        return
    if labels.leader_shape.per_job:
        yield labels.leader_group, group_labels.LEADER_GROUP_PER, pod_set.jobs
    jobs = pod_set.jobs if labels.shape.per_job else 1
    label = group_labels.GROUP_PER if labels.shape.per_job else group_labels.GROUP_SIZE
    yield labels.group, label, jobs * _blocks(pod_set, labels)


def _blocks(pod_set: PodSet, labels: GroupLabels) -> int:
    size = labels.shape.size
    return max(1, -(-pod_set.completion_indexes // size)) if size and pod_set.indexed else 1


def validate_tree(tree: tuple[Group, ...], *, kept: bool = False) -> GroupingFailure | None:
    """Why a tree is impossible, or None."""
    leaves = [leaf for root in tree for leaf in root.leaves()]
    if len(tree) > TEMPLATE_LIMIT:
        return GroupingFailure(
            Reason.TOO_MANY_GROUPS,
            f"{len(tree)} groups ({', '.join(root.name for root in tree)}), "
            f"but a Workload can have {TEMPLATE_LIMIT}",
        )
    for leaf in leaves:
        failure = _exclusive(leaf) or _differ(leaf, kept=kept)
        if failure is not None:
            return failure
    blocked = find_deadlock(tree)
    if blocked is None:
        return None
    members = "child groups" if blocked.group.children else "pods"
    message = (
        f"group {blocked.group.name}: needs {blocked.needed} {members} and has {blocked.at_once} "
        f"before {blocked.late} starts, which waits for it"
    )
    return GroupingFailure(Reason.WAITS_FOR_ITSELF, message, blocked.group.name)


def _exclusive(leaf: Group) -> GroupingFailure | None:
    """Refuse a gang whose pods under exclusive placement wait for index 0, which waits for the gang."""
    for suffix, parts in leaf.parts.items() if leaf.gang else ():
        held_back = {pod_set.path: _waiting_for_index_0(pod_set, leaf.name, pods) for pod_set, pods in parts}
        pods = leaf.sizes.get(suffix, 0)
        needed = min(leaf.template_min_count, pods)
        if needed > pods - sum(held_back.values()):
            template = next(path for path, waiting in held_back.items() if waiting)
            return GroupingFailure(
                Reason.WAITS_FOR_ITSELF,
                f"group {leaf.name}: with exclusive placement the pods of {template} wait for index 0, "
                f"so a gang of {needed} can never be placed together",
                leaf.name,
            )
    return None


def _waiting_for_index_0(pod_set: PodSet, group: str, pods: int) -> int:
    """Return how many of the pods in one PodGroup JobSet's webhook refuses until index 0 has a node."""
    labels = pod_set.labels
    if labels is None or not pod_set.exclusive or labels.leader_group not in {"", group}:
        return 0
    return max(0, pods - (1 if labels.by_job else pod_set.jobs))


def _differ(leaf: Group, *, kept: bool) -> GroupingFailure | None:
    """Refuse pods of one PodGroup that differ in priority or scheduler, none of which would be placed.

    All PodGroups of a template share its preemptionPolicy, which has to be that of their pods.
    """
    for pods in map(leaf.pod_sets_at, leaf.sizes):
        priorities = {pod_set.priority for pod_set in pods}
        schedulers = {shortened(pod_set.template.spec.scheduler_name) for pod_set in pods}
        if len(priorities) > 1 and not kept:
            names = ", ".join(sorted({str(priority) for priority in priorities}))
            return _pods_differ(leaf, f"{_paths(pods)} have priorityClassName {names}")
        if len(schedulers) > 1:
            return _pods_differ(leaf, f"{_paths(pods)} have schedulerName {', '.join(sorted(schedulers))}")
    if not kept and len({leaf.never_preempts_at(suffix) for suffix in leaf.sizes}) > 1:
        return _pods_differ(leaf, f"pods of {_paths(leaf.pod_sets)} differ in preemptionPolicy")
    return None


def _pods_differ(leaf: Group, what: str) -> GroupingFailure:
    return GroupingFailure(Reason.PODS_DIFFER, f"group {leaf.name}: {what}", leaf.name)


def _paths(pod_sets: tuple[PodSet, ...]) -> str:
    return ", ".join(pod_set.path for pod_set in pod_sets)


@dataclass(frozen=True)
class Deadlock:
    """A group that never starts: later pods do not exist until earlier ones run (`dependsOn`, `InOrder`)."""

    group: Group
    needed: int
    at_once: int
    late: str


@dataclass(frozen=True)
class _Node:
    """One PodGroup, with the pods of each pod set, or one CompositePodGroup, with the nodes below it."""

    group: Group
    needed: int
    parts: tuple[tuple[PodSet, int], ...] = ()
    children: tuple[_Node, ...] = ()

    def with_pods_of(self, pod_set: PodSet) -> Iterator[_Node]:
        """Yield the nodes that pods of a pod set are in, children before parents."""
        below = [node for child in self.children for node in child.with_pods_of(pod_set)]
        yield from below
        if below or any(other.index == pod_set.index for other, _ in self.parts):
            yield self

    def members(self, counts: Callable[[PodSet], bool]) -> int:
        """Return the pods of the pod sets that count, or the child groups that have enough of them."""
        pods = sum(pods for pod_set, pods in self.parts if counts(pod_set))
        return pods + sum(child.members(counts) >= child.needed for child in self.children)


def find_deadlock(tree: tuple[Group, ...]) -> Deadlock | None:
    """Return the first group that can never be placed, or None if all start.

    The scheduler places nothing below minCount or minGroupCount (gangscheduling.go, Kubernetes v1.37.1).
    """
    waiting = {pods.index: pods for root in tree for leaf in root.leaves() for pods in leaf.pod_sets}
    if not any(pod_set.waits_for for pod_set in waiting.values()):
        return None
    nodes = [node for root in tree for node in _nodes(root)]
    while True:
        unplaced = sum(1 << index for index in waiting)
        absent = [pod_set for pod_set in waiting.values() if pod_set.waits_for & unplaced]
        stuck = {pod_set.index: pod_set for pod_set in absent}
        blocked: list[Deadlock] = []
        for pod_set in (pod_set for index, pod_set in waiting.items() if index not in stuck):
            found = _too_few(nodes, pod_set, absent)
            if found is not None:
                blocked.append(found)
                stuck[pod_set.index] = pod_set
        if len(stuck) == len(waiting):
            return blocked[0] if blocked else None
        waiting = stuck


def _too_few(nodes: list[_Node], pod_set: PodSet, absent: list[PodSet]) -> Deadlock | None:
    """Return the lowest group with pods of a pod set that lacks members while others are absent, or None."""
    missing = sum(1 << late.index for late in absent) | pod_set.must_complete

    def counts(other: PodSet) -> bool:
        return not missing >> other.index & 1

    for node in (node for top in nodes for node in top.with_pods_of(pod_set)):
        members = node.members(counts)
        if members < node.needed:
            late = absent[0] if absent else pod_set
            return Deadlock(node.group, node.needed, members, late.replicated_job)
    return None


def _nodes(group: Group) -> Iterator[_Node]:
    copies = group.instances.values() if group.children else ()
    for copy in copies:
        needed = min(group.template_min_count, copy.own_child_groups) if group.gang else 1
        children = tuple(node for child in copy.children for node in _nodes(child))
        yield _Node(group, max(1, needed), children=children)
    for suffix, pods in group.sizes.items():
        if pods:
            needed = min(group.template_min_count, pods) if group.gang else 1
            parts = tuple(part for part in group.parts.get(suffix, ()) if part[1])
            yield _Node(group, max(1, needed), parts)
