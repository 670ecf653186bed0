"""Validation of a tree before its groups are created: limits, deadlocks, priorities and schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.policy import group_labels, limits
from muster.policy.group_labels import GroupLabels
from muster.policy.model import GroupingFailure
from muster.policy.owners.kind import OwnerPodSets, PodSet
from muster.policy.reasons import Reason
from muster.policy.sources.policy_text import shortened
from muster.policy.tree.deadlock import Deadlock, batches_of, find_deadlock
from muster.policy.tree.groups import Group

TEMPLATE_LIMIT = 8
"""Templates in one list of a Workload (scheduling/v1beta1/types.go, Kubernetes v1.37.1)."""


@dataclass(frozen=True)
class Stage:
    """A group that keeps its nodes until a later one has run."""

    holds: str
    waits: str

    def __str__(self) -> str:
        return (
            f"group {self.holds} holds its nodes while group {self.waits} waits for it to be Ready: two such "
            "owners that do not both fit can block each other for ever; one group for both, without "
            "dependsOn, cannot"
        )


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


def holding_stages(tree: tuple[Group, ...]) -> Iterator[Stage]:
    """Yield the groups that run while a group of another gang waits for them to be Ready.

    JobSet creates a replicatedJob with `dependsOn: Ready`, or with `startupPolicy: InOrder`, once the ones
    before it are ready, and these keep running: shipped MPI runtimes start their launcher so. A gang of both
    is impossible (WaitsForItself). A dependency that is `Complete` holds nothing.
    """
    leaves = [leaf for root in tree for leaf in root.leaves()]
    group_at = {pod_set.index: leaf.name for leaf in leaves for pod_set in leaf.pod_sets}
    for late in leaves:
        waited = 0
        for pod_set in late.pod_sets:
            waited |= pod_set.waits_for & ~pod_set.must_complete
        holding = {name for index, name in group_at.items() if waited >> index & 1}
        yield from (Stage(name, late.name) for name in sorted(holding - {late.name}))


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
    failure = next(filter(None, (_validate_leaf(leaf, kept=kept) for leaf in leaves)), None)
    if failure is not None:
        return failure
    blocked = find_deadlock(tree)
    if blocked is None:
        return None
    return GroupingFailure(Reason.WAITS_FOR_ITSELF, _deadlock_message(blocked), blocked.group.name)


def _deadlock_message(blocked: Deadlock) -> str:
    members = "child groups" if blocked.group.children else "pods"
    return (
        f"group {blocked.group.name}: needs {blocked.needed} {members} and has {blocked.at_once} "
        f"before {blocked.late} starts, which waits for it"
    )


def _validate_leaf(leaf: Group, *, kept: bool) -> GroupingFailure | None:
    priorities = None if kept else _priorities(leaf)
    return _waits_for_itself(leaf) or _exclusive(leaf) or priorities or _schedulers(leaf)


def _waits_for_itself(leaf: Group) -> GroupingFailure | None:
    members = sum({1 << pod_set.index for pod_set in leaf.pod_sets})
    for pod_set in leaf.pod_sets if leaf.gang else ():
        before = pod_set.waits_for & members
        if before:
            waited = (other.replicated_job for other in leaf.pod_sets if before >> other.index & 1)
            return GroupingFailure(
                Reason.WAITS_FOR_ITSELF,
                f"group {leaf.name}: {pod_set.replicated_job} starts after {', '.join(sorted(waited))}, "
                f"so a gang of {_paths(leaf.pod_sets)} can never be placed together",
                leaf.name,
            )
    return None


def _exclusive(leaf: Group) -> GroupingFailure | None:
    """Refuse a gang whose pods under exclusive placement wait for index 0, which waits for the gang."""
    exclusive = leaf.gang and any(pod_set.exclusive for pod_set in leaf.pod_sets)
    for members in batches_of(leaf).values() if exclusive else ():
        led = {batch.pod_set.path for batch in members if batch.leads}
        held_back = [batch for batch in members if batch.follows and batch.pod_set.path in led]
        pods = sum(batch.pods for batch in members)
        needed = min(leaf.template_min_count, pods)
        if held_back and needed > pods - sum(batch.pods for batch in held_back):
            template = held_back[0].pod_set.path
            return GroupingFailure(
                Reason.EXCLUSIVE_PLACEMENT,
                f"group {leaf.name}: with exclusive placement the pods of {template} wait for index 0, "
                f"so a gang of {needed} can never be placed together",
                leaf.name,
            )
    return None


def _priorities(leaf: Group) -> GroupingFailure | None:
    """Refuse pods of different priority in one PodGroup, none of which the scheduler would place.

    All PodGroups of a template share its preemptionPolicy, which has to be that of their pods.
    """
    if len({pod_set.priority for pod_set in leaf.pod_sets}) == 1:
        return None
    for suffix in leaf.sizes:
        together = leaf.pod_sets_at(suffix)
        if len({pod_set.priority for pod_set in together}) > 1:
            priorities = ", ".join(sorted({str(pod_set.priority) for pod_set in together}))
            message = f"group {leaf.name}: {_paths(together)} have priorityClassName {priorities}"
            return GroupingFailure(Reason.PRIORITIES_DIFFER, message, leaf.name)
    if len({leaf.never_preempts_at(suffix) for suffix in leaf.sizes}) > 1:
        message = f"group {leaf.name}: pods of {_paths(leaf.pod_sets)} differ in preemptionPolicy"
        return GroupingFailure(Reason.PRIORITIES_DIFFER, message, leaf.name)
    return None


def _schedulers(leaf: Group) -> GroupingFailure | None:
    if len({pod_set.template.spec.scheduler_name for pod_set in leaf.pod_sets}) == 1:
        return None
    for suffix in leaf.sizes:
        together = leaf.pod_sets_at(suffix)
        names = {shortened(pod_set.template.spec.scheduler_name) for pod_set in together}
        if len(names) > 1:
            message = f"group {leaf.name}: {_paths(together)} have schedulerName {', '.join(sorted(names))}"
            return GroupingFailure(Reason.SCHEDULERS_DIFFER, message, leaf.name)
    return None


def _paths(pod_sets: tuple[PodSet, ...]) -> str:
    return ", ".join(pod_set.path for pod_set in pod_sets)
