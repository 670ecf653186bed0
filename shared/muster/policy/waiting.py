"""Which new pods keep their gates because their group, or one beside it in its tree, was placed before.

The scheduler counts pods until they are gone (podgroupstate.go, Kubernetes v1.37.1): beside old ones that
still terminate it places new ones a few at a time, or one group of a gang of groups without the others, seen
on the real scheduler. And minCount or minGroupCount may have been lowered since. Before the first placement
nothing of this is so, and the scheduler itself sees to it that all or nothing is placed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from muster.objects.scheduling import CompositePodGroup, PodGroup
from muster.policy import bodies
from muster.policy.groups import that_stay
from muster.policy.model import Nothing, Observed
from muster.policy.ownership import Considered, consider
from muster.policy.quorums import is_of_wrong_size, wanted_quorums
from muster.policy.reasons import Reason
from muster.policy.resize import follows, wanted_sizes

AnyGroup = PodGroup | CompositePodGroup


def waits(observed: Observed) -> dict[str, Nothing]:
    """The groups whose pods keep their gates, and why, by name of PodGroup.

    Args:
        observed: the groups that are placed together, and all else of their owner.
    """
    if not any(map(was_placed, observed.groups)):
        return {}
    considered = consider(observed)
    if isinstance(considered, Nothing) or considered.flaw:
        return {}  # nobody resizes these groups: nothing to wait for
    together = _Together(observed, considered)
    whys = ((group.metadata.name, together.why(group)) for group in observed.groups)
    return {name: why for name, why in whys if why is not None}


def was_placed(group: PodGroup) -> bool:
    """Whether a group of which a part alone would be of no use was placed before."""
    return group.placed and (group.spec.scheduling_policy.gang is not None or _parent(group) != "")


def in_tree(group: PodGroup) -> bool:
    """Whether a group is placed together with others."""
    return _parent(group) != ""


def placed_together(observed: Observed, group: AnyGroup) -> tuple[PodGroup, ...]:
    """The PodGroups below the same root as a group, or that group alone."""
    composites = _by_name(observed)
    root = _root_of(composites, group).metadata.name
    return tuple(one for one in observed.groups if _root_of(composites, one).metadata.name == root)


def root_of(observed: Observed, group: AnyGroup) -> AnyGroup:
    """The highest CompositePodGroup over a group that exists; the group itself where there is none."""
    return _root_of(_by_name(observed), group)


class _Together:
    """Groups that are placed together, with the pods that each can count on."""

    def __init__(self, observed: Observed, considered: Considered) -> None:
        staying = that_stay(observed.jobs, observed.pods)
        leaving = {pod.metadata.uid for pod in observed.pods if not pod.finished}
        leaving -= {pod.metadata.uid for pod in staying}
        self._composites = _by_name(observed)
        self._children: defaultdict[str, list[AnyGroup]] = defaultdict(list)
        groups: list[AnyGroup] = [*observed.groups, *observed.composites]
        for group in groups:
            self._children[_parent(group)].append(group)
        self._follows = follows(observed, considered)
        self._sizes = wanted_sizes(observed, considered)
        self._quorums = wanted_quorums(observed, considered)
        self._staying = Counter(pod.pod_group_name for pod in staying)
        self._left = {pod.pod_group_name for pod in observed.pods if pod.metadata.uid in leaving}
        self._why_composite = {name: self._why_at(one) for name, one in self._composites.items()}

    def why(self, group: PodGroup) -> Nothing | None:
        """Why the pods of a group have to wait: for its own sake, or for that of a group above it."""
        above = list(_above(self._composites, group))
        highest = above[-1] if above else group
        missing = _parent(highest)
        known = missing == "" or missing in self._composites
        if not known and self._follows and bodies.is_musters(highest.metadata.labels):
            return Nothing(Reason.AWAITING_POD_GROUP, f"CompositePodGroup {missing} does not exist yet")
        whys = (self._why_composite[one.metadata.name] for one in above)
        return self._why_at(group) or next(filter(None, whys), None)

    def _why_at(self, group: AnyGroup) -> Nothing | None:
        counts, parts = ("minCount", "pods exist")
        if isinstance(group, CompositePodGroup):
            counts, parts = ("minGroupCount", "groups have their pods")
        needs, there = group.spec.scheduling_policy.needs, self._there(group)
        if self._is_wrong(group):
            said = f"{group.ref} has {counts} {needs}, its Jobs need {self._wanted(group)}"
            return Nothing(Reason.AWAITING_RESIZE, said)
        if there < needs and self._counted_wrongly(group):
            return Nothing(Reason.AWAITING_MEMBERS, f"{group.ref}: {there} of {needs} {parts}")
        return None

    def _counted_wrongly(self, group: AnyGroup) -> bool:
        """Whether the scheduler may take old pods for those that are missing.

        In a tree one gated pod holds back all others, those of groups that are complete too. So there a group
        that is short of pods keeps its gates no longer than old pods of it are there.
        """
        if isinstance(group, PodGroup):
            return not in_tree(group) or group.metadata.name in self._left
        return any(map(self._counted_wrongly, self._children[group.metadata.name]))

    def _is_wrong(self, group: AnyGroup) -> bool:
        return self._follows and is_of_wrong_size(group, self._wanted(group))

    def _wanted(self, group: AnyGroup) -> int:
        wanted = self._sizes if isinstance(group, PodGroup) else self._quorums
        return wanted.get(group.metadata.name, 0)

    def _there(self, group: AnyGroup) -> int:
        """The pods of a group that are to run, or the groups of a composite that have those they need."""
        if isinstance(group, PodGroup):
            return self._staying[group.metadata.name]
        return sum(
            self._there(child) >= max(1, child.spec.scheduling_policy.needs) and not self._is_wrong(child)
            for child in self._children[group.metadata.name]
        )


def _by_name(observed: Observed) -> dict[str, CompositePodGroup]:
    return {one.metadata.name: one for one in observed.composites}


def _root_of(composites: Mapping[str, CompositePodGroup], group: AnyGroup) -> AnyGroup:
    return [group, *_above(composites, group)][-1]


def _above(composites: Mapping[str, CompositePodGroup], group: AnyGroup) -> Iterator[CompositePodGroup]:
    """The CompositePodGroups over a group that exist, from below; each once, though they form a ring."""
    seen: set[str] = set()
    above = composites.get(_parent(group))
    while above is not None and above.metadata.name not in seen:
        seen.add(above.metadata.name)
        yield above
        above = composites.get(_parent(above))


def _parent(group: AnyGroup) -> str:
    return group.spec.parent_composite_pod_group_name
