"""Deadlocks at the start of an owner whose replicatedJobs wait for one another.

A gang over replicatedJobs that wait for one another never starts: later pods do not exist until earlier ones
run (`dependsOn`, startup policy InOrder) or have a node (exclusive placement), and the scheduler places
nothing below minCount or minGroupCount (gangscheduling.go, Kubernetes v1.37.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.policy.group_labels import GroupInstance
from muster.policy.owners.kind import PodSet
from muster.policy.tree.groups import Group


@dataclass(frozen=True)
class Deadlock:
    """A group that never starts."""

    group: Group
    needed: int
    at_once: int
    late: str


@dataclass(frozen=True)
class PodBatch:
    """Pods of one replicatedJob in one PodGroup that are created at the same time."""

    pod_set: PodSet
    pods: int
    leads: bool = False
    follows: bool = False


@dataclass(frozen=True, eq=False)
class _Node:
    """One PodGroup, with the batches of its pods, or one CompositePodGroup, with the nodes below it."""

    group: Group
    above: _Node | None
    needed: int
    batches: tuple[PodBatch, ...] = ()
    children: list[_Node] = field(default_factory=list)

    def with_all_below(self) -> Iterator[_Node]:
        yield self
        for child in self.children:
            yield from child.with_all_below()


def find_deadlock(tree: tuple[Group, ...]) -> Deadlock | None:
    """Return the first group that can never be placed, or None if all start."""
    pod_sets = (pod_set for root in tree for leaf in root.leaves() for pod_set in leaf.pod_sets)
    if not any(pod_set.waits_for or pod_set.exclusive for pod_set in pod_sets):
        return None
    nodes = [node for root in tree for top in _nodes(root, None) for node in top.with_all_below()]
    unplaced = [(node, batch) for node in nodes for batch in node.batches]
    while True:
        moment = _Moment([batch for _, batch in unplaced])
        left = [
            (node, batch) for node, batch in unplaced if not moment.exists(batch) or moment.short(node, batch)
        ]
        if len(left) == len(unplaced):
            break
        unplaced = left
    for node, batch in unplaced:
        short = moment.short(node, batch) if moment.exists(batch) else None
        if short is not None:
            missing = next((late for _, late in unplaced if not moment.exists(late)), batch)
            at_once = moment.members(short, batch.pod_set.must_complete)
            return Deadlock(short.group, short.needed, at_once, missing.pod_set.replicated_job)
    return None


class _Moment:
    """The pods that exist at a moment of an owner's start, while these batches are without a node."""

    def __init__(self, unplaced: list[PodBatch]) -> None:
        self._undone = sum({1 << batch.pod_set.index for batch in unplaced})
        self._leading = {batch.pod_set.index for batch in unplaced if batch.leads}
        self._members: dict[tuple[_Node, int], int] = {}

    def exists(self, batch: PodBatch) -> bool:
        """Whether all that the pods wait for has been placed."""
        if batch.pod_set.waits_for & self._undone:
            return False
        return not (batch.follows and batch.pod_set.index in self._leading)

    def short(self, node: _Node, batch: PodBatch) -> _Node | None:
        """Return the lowest group, from that of a batch upwards, that has too few members; None for none."""
        at: _Node | None = node
        while at is not None and self.members(at, batch.pod_set.must_complete) >= at.needed:
            at = at.above
        return at

    def members(self, node: _Node, ended: int) -> int:
        """Return the pods, or placeable child groups, of a group."""
        key = (node, ended)
        if key not in self._members:
            pods = sum(
                batch.pods
                for batch in node.batches
                if self.exists(batch) and not ended >> batch.pod_set.index & 1
            )
            ready = sum(self.members(child, ended) >= child.needed for child in node.children)
            self._members[key] = pods + ready
        return self._members[key]


def batches_of(leaf: Group) -> dict[str, list[PodBatch]]:
    """Return the batches of each PodGroup of a group of pods that has any, by instance suffix."""
    by_suffix = {
        suffix: [
            batch
            for pod_set, pods in leaf.parts.get(suffix, ())
            if pods
            for batch in _batches(pod_set, GroupInstance(leaf.name, suffix), pods)
        ]
        for suffix in leaf.sizes
    }
    return {suffix: batches for suffix, batches in by_suffix.items() if batches}


def _batches(pod_set: PodSet, instance: GroupInstance, pods: int) -> Iterator[PodBatch]:
    """Yield the pods of a pod set in one PodGroup; under exclusive placement those of index 0 first."""
    if not (pod_set.exclusive and pod_set.labels):
        yield PodBatch(pod_set, pods)
        return
    leaders = pod_set.labels.jobs_led_in(instance, pod_set.jobs)
    if leaders:
        yield PodBatch(pod_set, leaders, leads=True)
    if pods > leaders:
        yield PodBatch(pod_set, pods - leaders, follows=True)


def _nodes(group: Group, above: _Node | None) -> Iterator[_Node]:
    if not group.children:
        for batches in batches_of(group).values():
            pods = sum(batch.pods for batch in batches)
            needed = max(1, min(group.template_min_count, pods)) if group.gang else 1
            yield _Node(group, above, needed, tuple(batches))
        return
    for copy in group.instances.values():
        asked = max(1, min(group.template_min_count, copy.own_child_groups)) if group.gang else 1
        node = _Node(group, above, asked)
        for child in copy.children:
            node.children.extend(_nodes(child, node))
        yield node
