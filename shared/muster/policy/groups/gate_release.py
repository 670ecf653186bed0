"""Gate release: which new pods keep their gates because their group, or its tree, was placed before.

The scheduler counts pods until they are gone (podgroupstate.go, Kubernetes v1.37.1): beside old pods that
still terminate it places new ones a few at a time, or one group of a gang of groups without the others (seen
on the real scheduler). And minCount or minGroupCount may have been lowered since. Before the first placement
neither can happen, and the scheduler itself places all or nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from muster.objects.scheduling import AnyGroup, CompositePodGroup, PodGroup
from muster.policy.group_labels import is_musters
from muster.policy.groups.wanted_groups import follows, is_of_wrong_size, wanted_counts
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnerGroups, ResolvedOwner
from muster.policy.tree.members import LiveMembers
from muster.policy.tree.policy_tree import LEVELS


def held_groups(groups: Iterable[PodGroup], tree: OwnerGroups | None) -> dict[str, NoOp]:
    """Return the groups whose pods keep their gates, by name of PodGroup, with the reason."""
    if tree is None or isinstance(tree.resolved, NoOp) or tree.resolved.failure:
        return {}  # these groups are never resized
    by_root: defaultdict[str, list[PodGroup]] = defaultdict(list)
    for group in groups:
        by_root[root_of(tree.members, group).metadata.name].append(group)
    placed = tuple(group for below in by_root.values() if any(map(was_placed, below)) for group in below)
    if not placed:
        return {}
    check = _GateCheck(placed, tree.resolved, tree.members)
    reasons = ((group.metadata.name, check.reason_to_hold(group)) for group in placed)
    return {name: reason for name, reason in reasons if reason is not None}


def was_placed(group: PodGroup) -> bool:
    """Whether a gang, or a group in a tree, was placed before."""
    return group.placed and (group.spec.scheduling_policy.gang is not None or group.spec.parent != "")


def placed_together(members: LiveMembers, group: AnyGroup) -> tuple[PodGroup, ...]:
    """Return the PodGroups below the same root as a group, or that group alone."""
    root = root_of(members, group).metadata.name
    return tuple(other for other in members.groups if root_of(members, other).metadata.name == root)


def root_of(members: LiveMembers, group: AnyGroup) -> AnyGroup:
    """Return the highest existing CompositePodGroup above a group; the group itself if there is none."""
    return [group, *_above(members, group)][-1]


class _GateCheck:
    """Groups that are placed together, with the pods that each can count on."""

    def __init__(self, groups: tuple[PodGroup, ...], resolved: ResolvedOwner, members: LiveMembers) -> None:
        staying = {pod.metadata.uid for pod in members.staying}
        self._members = members
        self._children: defaultdict[str, list[AnyGroup]] = defaultdict(list)
        existing: list[AnyGroup] = [*groups, *members.composites]
        for group in existing:
            if self._is_child(group):
                self._children[group.spec.parent].append(group)
        self._follows = follows(resolved)
        self._wanted = Counter(wanted_counts(resolved, members))
        self._staying = Counter(pod.pod_group_name for pod in members.staying)
        self._leaving = {
            pod.pod_group_name for pod in members.pods if not pod.finished and pod.metadata.uid not in staying
        }
        self._reason_of_composite = {
            name: self._reason_at(composite) for name, composite in members.composite_named.items()
        }

    def _is_child(self, group: AnyGroup) -> bool:
        """Whether a group counts for its parent; not in a ring or in a tree deeper than the scheduler's.

        The API server takes whatever parent a user names.
        """
        return len(list(_above(self._members, group))) < LEVELS

    def reason_to_hold(self, group: PodGroup) -> NoOp | None:
        """Why the pods of a group keep their gates: for the group itself, or for a group above it."""
        above = list(_above(self._members, group))
        highest = above[-1] if above else group
        missing = highest.spec.parent
        known = missing == "" or missing in self._members.composite_named
        if not known and self._follows and is_musters(highest.metadata.labels):
            return NoOp(Reason.WAITING_FOR_POD_GROUP, f"CompositePodGroup {missing} does not exist yet")
        reasons = (self._reason_of_composite[composite.metadata.name] for composite in above)
        return self._reason_at(group) or next(filter(None, reasons), None)

    def _reason_at(self, group: AnyGroup) -> NoOp | None:
        members = "groups have their pods" if isinstance(group, CompositePodGroup) else "pods exist"
        needed, ready = group.spec.scheduling_policy.needs, self._ready(group)
        if self._is_wrong(group):
            wanted = self._wanted[group.metadata.name]
            message = f"{group.ref} has {group.minimum_field} {needed}, its Jobs need {wanted}"
            return NoOp(Reason.WAITING_FOR_POD_GROUP, message)
        if ready < needed and self._may_be_miscounted(group):
            return NoOp(Reason.WAITING_FOR_PODS, f"{group.ref}: {ready} of {needed} {members}")
        return None

    def _may_be_miscounted(self, group: AnyGroup) -> bool:
        """Whether the scheduler may count old pods in place of missing ones.

        In a tree one gated pod holds back all others, those of complete groups too. So there a group that is
        short of pods keeps its gates no longer than old pods of it exist.
        """
        if isinstance(group, PodGroup):
            return group.spec.parent == "" or group.metadata.name in self._leaving
        return any(map(self._may_be_miscounted, self._children[group.metadata.name]))

    def _is_wrong(self, group: AnyGroup) -> bool:
        return self._follows and is_of_wrong_size(group, self._wanted[group.metadata.name])

    def _ready(self, group: AnyGroup) -> int:
        """Return the number of pods that are to run, or of child groups that have the pods they need."""
        if isinstance(group, PodGroup):
            return self._staying[group.metadata.name]
        return sum(
            self._ready(child) >= max(1, child.spec.scheduling_policy.needs) and not self._is_wrong(child)
            for child in self._children[group.metadata.name]
        )


def _above(members: LiveMembers, group: AnyGroup) -> Iterator[CompositePodGroup]:
    """Yield the existing CompositePodGroups above a group, from below, up to the levels of the API.

    A user may create chains of any length, and rings, of which the scheduler places none.
    """
    above = members.composite_named.get(group.spec.parent)
    for _ in range(LEVELS):
        if above is None:
            return
        yield above
        above = members.composite_named.get(above.spec.parent)
