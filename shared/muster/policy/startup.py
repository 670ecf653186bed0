"""Whether an owner's groups can start at all, with replicatedJobs that wait for one another.

What needs all of its parts must not be laid over parts that wait for one another: later pods do not exist
until earlier ones run (`dependsOn`, startup policy InOrder) or have a node (exclusive placement), and the
scheduler places nothing until the quorum is there (gangscheduling.go, Kubernetes v1.37.1). So the start is
played through here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from muster.policy.groups import Group, full_seats
from muster.policy.kinds import PodSet


@dataclass(frozen=True)
class Members:
    """Pods of one replicatedJob in one PodGroup that come into being at the same time.

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


Seat = tuple[str, frozenset[Members]]
"""A group and what one of its PodGroups consists of; PodGroups that are alike stand or fall together."""


@dataclass(frozen=True)
class Stuck:
    """A group that waits for ever.

    Attributes:
        group: the group whose quorum is never there.
        needed: pods, or child groups, that it needs.
        at_once: how many there ever are at once.
        late: the replicatedJob whose pods do not come before the others are placed.
    """

    group: Group
    needed: int
    at_once: int
    late: str


def stuck(tree: tuple[Group, ...]) -> Stuck | None:
    """The first group that can never be placed, or None where all start."""
    for_what = [pod_set for root in tree for leaf in root.leaves() for pod_set in leaf.pod_sets]
    if not any(pod_set.waits_for or pod_set.exclusive for pod_set in for_what):
        return None
    return _Start(tree).play()


class _Start:
    """The start of an owner, in rounds: pods come, groups are placed, more pods come."""

    def __init__(self, tree: tuple[Group, ...]) -> None:
        self._tree = tree
        self._seats = {leaf.name: seats_of(leaf) for root in tree for leaf in root.leaves()}
        self._placed: set[tuple[Seat, Members]] = set()
        self._paths = dict(_paths(tree))

    def play(self) -> Stuck | None:
        while True:
            come = (one for one in self._all() if one not in self._placed and self._exists(one[1]))
            waiting = {one: self._unready(one) for one in come}
            placeable = [one for one, group in waiting.items() if group is None]
            if not placeable:
                break
            self._placed.update(placeable)
        blocked = ((one, group) for one, group in waiting.items() if group is not None)
        return next((self._told(one, group) for one, group in blocked), None)

    def _told(self, blocked: tuple[Seat, Members], group: Group) -> Stuck:
        needed, at_once = self._quorum(group, blocked[0], blocked[1].ends_first)
        missing = [members.replicated_job for _, members in self._all() if not self._exists(members)]
        return Stuck(group, needed, at_once, next(iter(missing), blocked[1].replicated_job))

    def _all(self) -> Iterator[tuple[Seat, Members]]:
        for name, seats in self._seats.items():
            for members_of_seat in seats:
                for members in sorted(members_of_seat, key=lambda one: (one.path, one.follow)):
                    yield (name, members_of_seat), members

    def _exists(self, members: Members) -> bool:
        """Whether all that these pods wait for has been placed."""
        return all(
            other in self._placed
            for other in self._all()
            if other[1].replicated_job in members.waits_for
            or (members.follow and other[1].leads and other[1].path == members.path)
        )

    def _unready(self, one: tuple[Seat, Members]) -> Group | None:
        """The lowest group above these pods whose quorum is missing."""
        seat, members = one
        for group in reversed(self._paths[seat[0]]):
            needed, there = self._quorum(group, seat, members.ends_first)
            if there < needed:
                return group
        return None

    def _quorum(self, group: Group, seat: Seat, over: frozenset[str]) -> tuple[int, int]:
        """What a group needs and what it has: pods of that one PodGroup, or child groups that are ready.

        `over` are replicatedJobs that have ended by then; the scheduler no longer counts their pods.
        """
        if not group.children:
            return _pods_needed(group, seat[1]), self._pods_there(seat, over)
        return group.template_min_count if group.gang else 1, self._ready_children(group, over)

    def _ready_children(self, group: Group, over: frozenset[str]) -> int:
        ready = 0
        for child in group.children:
            if child.children:
                needed = child.template_min_count if child.gang else 1
                ready += self._ready_children(child, over) >= needed
                continue
            for members, alike in self._seats[child.name].items():
                there = self._pods_there((child.name, members), over)
                ready += alike * (there >= _pods_needed(child, members))
        return ready

    def _pods_there(self, seat: Seat, over: frozenset[str]) -> int:
        return sum(
            members.pods
            for members in seat[1]
            if members.replicated_job not in over and self._exists(members)
        )


def seats_of(leaf: Group) -> Counter[frozenset[Members]]:
    """How many PodGroups of each composition a group of pods has; those without pods are left out."""
    found: dict[str, set[Members]] = {}
    for pod_set in leaf.pod_sets:
        for (name, suffix), pods in full_seats(pod_set).items():
            if name == leaf.name and pods:
                found.setdefault(suffix, set()).update(_members(pod_set, (name, suffix), pods))
    return Counter(frozenset(members) for members in found.values())


def _members(pod_set: PodSet, place: tuple[str, str], pods: int) -> Iterator[Members]:
    """The pods of a pod set in one PodGroup: under exclusive placement leaders first, then the others."""
    leaders = _leaders(pod_set, place) if pod_set.exclusive else 0
    followers = pods - leaders if pod_set.exclusive else 0
    said = (pod_set.path, pod_set.replicated_job, pod_set.waits_for, pod_set.ends_first)
    if pods > followers:
        yield Members(*said, follow=False, leads=bool(leaders), pods=pods - followers)
    if followers:
        yield Members(*said, follow=True, leads=False, pods=followers)


def _leaders(pod_set: PodSet, place: tuple[str, str]) -> int:
    """How many index 0 there are in a place that has pods: one of each Job."""
    mark = pod_set.mark
    if mark is None:
        return 0
    if mark.per_job and not mark.leader_group:
        return 1
    return pod_set.jobs if place == mark.place(0, 0) else 0


def _pods_needed(leaf: Group, members: frozenset[Members]) -> int:
    pods = sum(one.pods for one in members)
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
            yield group.name, here
