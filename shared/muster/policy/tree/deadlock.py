"""Deadlocks at the start of an owner whose replicatedJobs wait for one another.

A gang over replicatedJobs that wait for one another never starts: later pods do not exist until earlier ones
run (`dependsOn`, startup policy InOrder) or have a node (exclusive placement), and the scheduler places
nothing below minCount or minGroupCount (gangscheduling.go, Kubernetes v1.37.1). The start is simulated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from muster.policy.group_labels import GroupInstance
from muster.policy.owners.kind import PodSet
from muster.policy.tree.groups import Group, expected_members
from muster.policy.tree.instances import merged


@dataclass(frozen=True)
class PodBatch:
    """Pods of one replicatedJob in one PodGroup that are created at the same time.

    Attributes:
        path: the pod template they come from.
        replicated_job: its replicatedJob.
        waits_for: replicatedJobs that must be ready or complete before.
        ends_first: those of them that have ended by then.
        follow: whether exclusive placement holds them back until index 0 of their Job has a node.
        leads: whether index 0 is among them.
        pods: how many.
    """

    path: str
    replicated_job: str
    waits_for: frozenset[str]
    ends_first: frozenset[str]
    follow: bool
    leads: bool
    pods: int


Composition = tuple[str, frozenset[PodBatch]]
"""A group and the batches of one of its PodGroups; PodGroups of equal batches start alike."""


_Batch = tuple[Composition, PodBatch]


@dataclass(frozen=True)
class Deadlock:
    """A group that never starts.

    Attributes:
        group: the group whose minCount or minGroupCount is never reached.
        needed: pods, or child groups, that it needs.
        at_once: the most that exist at once.
        late: the replicatedJob whose pods do not come before the others are placed.
    """

    group: Group
    needed: int
    at_once: int
    late: str


def find_deadlock(tree: tuple[Group, ...]) -> Deadlock | None:
    """The first group that can never be placed, or None if all start."""
    pod_sets = [pod_set for root in tree for leaf in root.leaves() for pod_set in leaf.pod_sets]
    if not any(pod_set.waits_for or pod_set.exclusive for pod_set in pod_sets):
        return None
    return _Start(merged(tree)).run()


class _Start:
    """The start of an owner, in rounds: pods come, groups are placed, more pods come."""

    def __init__(self, tree: tuple[Group, ...]) -> None:
        self._tree = tree
        self._compositions = {_key(leaf): group_compositions(leaf) for root in tree for leaf in root.leaves()}
        self._placed: set[_Batch] = set()
        self._paths = dict(_paths(tree))

    def run(self) -> Deadlock | None:
        while True:
            created = (batch for batch in self._all() if batch not in self._placed and self._exists(batch[1]))
            waiting = {batch: self._unready(batch) for batch in created}
            placeable = [batch for batch, group in waiting.items() if group is None]
            if not placeable:
                break
            self._placed.update(placeable)
        blocked = ((batch, group) for batch, group in waiting.items() if group is not None)
        return next((self._deadlock(batch, group) for batch, group in blocked), None)

    def _deadlock(self, blocked: _Batch, group: Group) -> Deadlock:
        needed, at_once = self._needed_and_ready(group, blocked[0], blocked[1].ends_first)
        missing = [batch.replicated_job for _, batch in self._all() if not self._exists(batch)]
        return Deadlock(group, needed, at_once, next(iter(missing), blocked[1].replicated_job))

    def _all(self) -> Iterator[_Batch]:
        for name, compositions in self._compositions.items():
            for batches in compositions:
                for batch in sorted(batches, key=lambda batch: (batch.path, batch.follow)):
                    yield (name, batches), batch

    def _exists(self, batch: PodBatch) -> bool:
        """Whether all that these pods wait for has been placed."""
        return all(
            other in self._placed
            for other in self._all()
            if other[1].replicated_job in batch.waits_for
            or (batch.follow and other[1].leads and other[1].path == batch.path)
        )

    def _unready(self, placing: _Batch) -> Group | None:
        """The lowest group above these pods that has too few members."""
        composition, batch = placing
        for group in reversed(self._paths[composition[0]]):
            needed, ready = self._needed_and_ready(group, composition, batch.ends_first)
            if ready < needed:
                return group
        return None

    def _needed_and_ready(
        self, group: Group, composition: Composition, ended: frozenset[str]
    ) -> tuple[int, int]:
        """The members that a group needs and has: pods of that one PodGroup, or ready child groups.

        `ended` are replicatedJobs that have ended by then; the scheduler no longer counts their pods.
        """
        if not group.children:
            return _pods_needed(group, composition[1]), self._pods_existing(composition, ended)
        return group.template_min_count if group.gang else 1, self._ready_children(group, ended)

    def _ready_children(self, group: Group, ended: frozenset[str]) -> int:
        ready = 0
        for child in group.children:
            if child.children:
                needed = child.template_min_count if child.gang else 1
                ready += child.copies * (self._ready_children(child, ended) >= needed)
                continue
            for batches, instances in self._compositions[_key(child)].items():
                pods = self._pods_existing((_key(child), batches), ended)
                ready += instances * (pods >= _pods_needed(child, batches))
        return ready

    def _pods_existing(self, composition: Composition, ended: frozenset[str]) -> int:
        return sum(
            batch.pods
            for batch in composition[1]
            if batch.replicated_job not in ended and self._exists(batch)
        )


def group_compositions(leaf: Group) -> Counter[frozenset[PodBatch]]:
    """The number of PodGroups of each composition that a group of pods has, without empty ones."""
    by_suffix: dict[str, set[PodBatch]] = {}
    for pod_set in leaf.pod_sets:
        for instance, pods in expected_members(pod_set).items():
            if instance.group == leaf.name and pods and instance.suffix in leaf.sizes:
                by_suffix.setdefault(instance.suffix, set()).update(_batches(pod_set, instance, pods))
    return Counter(frozenset(batches) for batches in by_suffix.values())


def _batches(pod_set: PodSet, instance: GroupInstance, pods: int) -> Iterator[PodBatch]:
    """The pods of a pod set in one PodGroup: under exclusive placement leaders first, then the others."""
    leaders = _leaders(pod_set, instance) if pod_set.exclusive else 0
    followers = pods - leaders if pod_set.exclusive else 0
    common = (pod_set.path, pod_set.replicated_job, pod_set.waits_for, pod_set.ends_first)
    if pods > followers:
        yield PodBatch(*common, follow=False, leads=bool(leaders), pods=pods - followers)
    if followers:
        yield PodBatch(*common, follow=True, leads=False, pods=followers)


def _leaders(pod_set: PodSet, instance: GroupInstance) -> int:
    """The pods of completion index 0 in a group instance that has pods: one of each Job."""
    labels = pod_set.labels
    if labels is None:
        return 0
    return labels.jobs_led_in(instance, pod_set.jobs)


def _pods_needed(leaf: Group, batches: frozenset[PodBatch]) -> int:
    pods = sum(batch.pods for batch in batches)
    return max(1, min(leaf.template_min_count, pods)) if leaf.gang else 1


def _paths(
    groups: tuple[Group, ...], above: tuple[Group, ...] = ()
) -> Iterator[tuple[str, tuple[Group, ...]]]:
    """Each group of pods with the groups from the root down to it."""
    for group in groups:
        here = (*above, group)
        if group.children:
            yield from _paths(group.children, here)
        else:
            yield _key(group), here


def _key(leaf: Group) -> str:
    """A name of a group of pods that is unique in a merged tree."""
    return f"{leaf.name}/{next(iter(leaf.sizes), '')}"
