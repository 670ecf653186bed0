"""Deadlocks at the start of an owner whose replicatedJobs wait for one another.

A gang over replicatedJobs that wait for one another never starts: later pods do not exist until earlier ones
run (`dependsOn`, startup policy InOrder) or have a node (exclusive placement), and the scheduler places
nothing below minCount or minGroupCount (gangscheduling.go, Kubernetes v1.37.1). The start is simulated here.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.policy.group_labels import GroupInstance
from muster.policy.owners.kind import PodSet
from muster.policy.tree.groups import Group
from muster.policy.tree.instances import merged


class PodBatch(NamedTuple):
    """Pods of one replicatedJob in one PodGroup that are created at the same time.

    Attributes:
        path: the pod template they come from.
        follow: whether exclusive placement holds them back until index 0 of their Job has a node.
        leads: whether index 0 is among them.
        pods: how many.
        pod_set: the index of their replicatedJob.
    """

    path: str
    follow: bool
    leads: bool
    pods: int
    pod_set: int


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
    """Return the first group that can never be placed, or None if all start."""
    pod_sets = {
        pod_set.index: pod_set for root in tree for leaf in root.leaves() for pod_set in leaf.pod_sets
    }
    if not any(pod_set.waits_for or pod_set.exclusive for pod_set in pod_sets.values()):
        return None
    return _Startup(merged(tree), pod_sets).run()


@dataclass(eq=False)
class _Node:
    """A group of groups, or PodGroups of one group that have the same batches and so start alike.

    Attributes:
        group: the group.
        above: the group of groups that it is in.
        needed: pods, or child groups, that must be there before it is placed.
        alike: how many child groups it counts as.
        children: the nodes below it.
        pods: pods that exist, by the index of their replicatedJob; empty for a group of groups.
        there: pods that exist, or child groups that are ready, without the pods of the replicatedJobs that
            have ended. By those that have ended, as bits by index, as far as `there_without` was asked.
        waiting: batches that wait until it is ready, by the replicatedJobs that have ended before them.
    """

    group: Group
    above: _Node | None
    needed: int
    alike: int = 1
    children: list[_Node] = field(default_factory=list)
    pods: Counter[int] = field(default_factory=Counter)
    there: dict[int, int] = field(default_factory=dict)
    waiting: defaultdict[int, list[_Waiting]] = field(default_factory=lambda: defaultdict(list))

    def there_without(self, ended: int) -> int:
        """Return the number of pods, or of ready child groups, without pods of replicatedJobs in `ended`.

        The scheduler does not count the pods of those.
        """
        if ended not in self.there:
            ready = (child for child in self.children if child.there_without(ended) >= child.needed)
            pods = sum(pods for index, pods in self.pods.items() if not ended >> index & 1)
            self.there[ended] = pods + sum(child.alike for child in ready)
        return self.there[ended]

    def add(self, pods: int, index: int) -> Iterator[_Waiting]:
        """Add pods of a replicatedJob; returns the batches that waited for the groups they complete."""
        self.pods[index] += pods
        for ended in self.there:
            if not ended >> index & 1:
                yield from self._grow(pods, ended)

    def _grow(self, more: int, ended: int) -> Iterator[_Waiting]:
        """Count more pods, and then each group above that becomes ready; returns the batches that waited."""
        node: _Node | None = self
        while node is not None and ended in node.there:
            was_ready = node.there[ended] >= node.needed
            node.there[ended] += more
            if was_ready or node.there[ended] < node.needed:
                return
            yield from node.waiting.pop(ended, ())
            more, node = node.alike, node.above


@dataclass(eq=False)
class _Waiting:
    """A batch in the node that its pods are in, and whether its pods exist and are placed."""

    node: _Node
    batch: PodBatch
    exists: bool = False
    placed: bool = False


class _Startup:
    """The start of an owner: pods come, groups are placed, more pods come.

    Each batch comes once, and is looked at again only when the group that it waits for is ready.
    """

    def __init__(self, tree: tuple[Group, ...], pod_sets: dict[int, PodSet]) -> None:
        self._pod_sets = pod_sets
        self._batches: list[_Waiting] = []
        self._held_back: defaultdict[int, list[_Waiting]] = defaultdict(list)
        """Batches by replicatedJob that do not exist; followers also while leaders have no node."""
        self._unplaced: Counter[int] = Counter()
        self._leaders: Counter[int] = Counter()
        self._placeable: deque[_Waiting] = deque()
        for root in tree:
            self._add(root, None)
        for waiting in self._batches:
            self._unplaced[waiting.batch.pod_set] += 1
            self._leaders[waiting.batch.pod_set] += waiting.batch.leads
            self._held_back[waiting.batch.pod_set].append(waiting)
        self._undone = sum(1 << index for index in self._unplaced)
        """The replicatedJobs with pods that are not placed, as bits by index."""
        self._watching: defaultdict[int, list[int]] = defaultdict(list)
        """ReplicatedJobs by the last one, of those they wait for, that is not placed."""

    def run(self) -> Deadlock | None:
        for index in list(self._unplaced):
            self._create(index)
        while self._placeable:
            self._try(self._placeable.popleft())
        blocked = next((waiting for waiting in self._batches if waiting.exists and not waiting.placed), None)
        return None if blocked is None else self._deadlock(blocked)

    def _add(self, group: Group, above: _Node | None) -> None:
        """Add the nodes of a group."""
        if group.children:
            nodes = [_Node(group, above, group.template_min_count if group.gang else 1, group.copies)]
            for child in group.children:
                self._add(child, nodes[0])
        else:
            nodes = []
            for batches, alike in group_compositions(group).items():
                node = _Node(group, above, _pods_needed(group, batches), alike)
                self._batches += (_Waiting(node, batch) for batch in sorted(batches))
                nodes.append(node)
        if above is not None:
            above.children += nodes

    def _create(self, index: int) -> None:
        """Create the pods of a replicatedJob if all that it waits for has been placed."""
        late = self._pod_sets[index].waits_for & self._undone
        if late:
            self._watching[late.bit_length() - 1].append(index)
            return
        batches, self._held_back[index] = self._held_back[index], []
        for waiting in batches:
            if waiting.batch.follow and self._leaders[index]:
                self._held_back[index].append(waiting)
            else:
                self._come(waiting)

    def _come(self, waiting: _Waiting) -> None:
        """Create the pods of a batch; queue it and the batches whose groups have enough members now."""
        waiting.exists = True
        self._placeable.append(waiting)
        self._placeable += waiting.node.add(waiting.batch.pods, waiting.batch.pod_set)

    def _try(self, waiting: _Waiting) -> None:
        """Place a batch, or let it wait for the lowest group above it that has too few members."""
        node, index = self._unready(waiting), waiting.batch.pod_set
        if node is not None:
            node.waiting[self._pod_sets[index].ends_first].append(waiting)
            return
        waiting.placed = True
        self._unplaced[index] -= 1
        self._leaders[index] -= waiting.batch.leads
        if waiting.batch.leads and not self._leaders[index]:
            followers, self._held_back[index] = self._held_back[index], []
            for follower in followers:
                self._come(follower)
        if not self._unplaced[index]:
            self._undone &= ~(1 << index)
            for later in self._watching.pop(index, ()):
                self._create(later)

    def _unready(self, waiting: _Waiting) -> _Node | None:
        """Return the lowest group above a batch that has too few members."""
        node: _Node | None = waiting.node
        ended = self._pod_sets[waiting.batch.pod_set].ends_first
        while node is not None and node.there_without(ended) >= node.needed:
            node = node.above
        return node

    def _deadlock(self, blocked: _Waiting) -> Deadlock:
        node = self._unready(blocked) or blocked.node
        missing = next((waiting for waiting in self._batches if not waiting.exists), blocked)
        at_once = node.there_without(self._pod_sets[blocked.batch.pod_set].ends_first)
        late = self._pod_sets[missing.batch.pod_set].replicated_job
        return Deadlock(node.group, node.needed, at_once, late)


def group_compositions(leaf: Group) -> Counter[frozenset[PodBatch]]:
    """Return the number of PodGroups of each composition that a group of pods has, without empty ones."""
    by_suffix: dict[str, list[PodBatch]] = {}
    for pod_set in leaf.pod_sets:
        for instance, pods in pod_set.expected_members.items():
            if instance.group == leaf.name and pods and instance.suffix in leaf.sizes:
                by_suffix.setdefault(instance.suffix, []).extend(_batches(pod_set, instance, pods))
    return Counter(frozenset(batches) for batches in by_suffix.values())


def _batches(pod_set: PodSet, instance: GroupInstance, pods: int) -> Iterator[PodBatch]:
    """Yield the pods of a pod set in one PodGroup; under exclusive placement leaders before others."""
    leaders = _leaders(pod_set, instance) if pod_set.exclusive else 0
    followers = pods - leaders if pod_set.exclusive else 0
    if pods > followers:
        yield PodBatch(pod_set.path, False, bool(leaders), pods - followers, pod_set.index)
    if followers:
        yield PodBatch(pod_set.path, True, False, followers, pod_set.index)


def _leaders(pod_set: PodSet, instance: GroupInstance) -> int:
    """Return the pods of completion index 0 in a group instance that has pods: one of each Job."""
    labels = pod_set.labels
    if labels is None:
        return 0
    return labels.jobs_led_in(instance, pod_set.jobs)


def _pods_needed(leaf: Group, batches: frozenset[PodBatch]) -> int:
    pods = sum(batch.pods for batch in batches)
    return max(1, min(leaf.template_min_count, pods)) if leaf.gang else 1
