"""The tree of groups of an owner, and the number of pods in each group when all run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from muster.objects.scheduling import MOST_MEMBERS
from muster.policy.group_labels import SINGLE, Shape
from muster.policy.owners.kind import NEVER, OwnerPodSets, PodSet
from muster.policy.tree.members import expected_members


@dataclass(frozen=True)
class Group:
    """One node of the tree: a leaf becomes a template and its PodGroups, a node with children a composite.

    Attributes:
        name: as in the group labels; unique in the tree.
        gang: whether all its pods, or all its children, are placed together; else basic.
        pod_sets: the pod templates whose pods are in it; empty for a composite.
        children: the groups below it.
        pinned: the minCount or minGroupCount that a policy sets; None means all.
        settings: the fields that a policy sets on template and group, as the API spells them.
        shape: what its groups are counted by; of a leaf in which pods of several shapes meet, the default.
        parts: the pod templates in each of its PodGroups and their pods, by instance suffix; of a leaf.
        other_template: the name of its template in the user's own Workload if it differs; "" if not.
    """

    name: str
    gang: bool
    pod_sets: tuple[PodSet, ...]
    children: tuple[Group, ...] = ()
    pinned: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    shape: Shape = SINGLE
    parts: Mapping[str, tuple[tuple[PodSet, int], ...]] = field(default_factory=dict)
    other_template: str = ""

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The pods of each of its PodGroups, by instance suffix; empty for a composite."""
        return {suffix: sum(pods for _, pods in parts) for suffix, parts in self.parts.items()}

    @property
    def template_name(self) -> str:
        """The name of its template in the Workload."""
        return self.other_template or self.name

    @property
    def template_min_count(self) -> int:
        """The minCount of its template, or minGroupCount: as pinned, else all; from 1 to MOST_MEMBERS."""
        if self.pinned is not None:
            return self.pinned
        members = self.child_groups if self.children else max(self.sizes.values(), default=0)
        return max(1, min(members, MOST_MEMBERS))

    @property
    def disruption_mode(self) -> Mapping[str, Any] | None:
        """The disruptionMode of its template: the policy's, else `all` for a gang; None if unset."""
        mode: Mapping[str, Any] | None = self.settings.get("disruptionMode")
        return {"all": {}} if mode is None and self.gang else mode

    @property
    def has_pods(self) -> bool:
        """Whether any of its PodGroups, or of those below it, has pods; one without would never be ready."""
        return any(pods > 0 for leaf in self.leaves() for pods in leaf.sizes.values())

    @property
    def child_groups(self) -> int:
        """The most groups with pods that one of its CompositePodGroups has as children."""
        return max((copy.own_child_groups for copy in self.instances.values()), default=0)

    @property
    def own_child_groups(self) -> int:
        """The child groups with pods of all its CompositePodGroups."""
        return sum(
            sum(copy.has_pods for copy in child.instances.values())
            if child.children
            else sum(pods > 0 for pods in child.sizes.values())
            for child in self.children
        )

    @cached_property
    def instances(self) -> Mapping[str, Group]:
        """Each of its CompositePodGroups by instance suffix: the group with the PodGroups below that one."""
        if self.shape == SINGLE:
            return {"": self}
        below: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for leaf in self.leaves():
            for suffix in leaf.parts:
                below[self.shape.suffix_above(leaf.shape, suffix)].add((leaf.name, suffix))
        return {above: self.with_only(instances) for above, instances in below.items()}

    def with_only(self, instances: Collection[tuple[str, str]]) -> Group:
        """Return the group with these PodGroups only, by leaf and instance suffix."""
        parts = {suffix: pods for suffix, pods in self.parts.items() if (self.name, suffix) in instances}
        children = tuple(child.with_only(instances) for child in self.children)
        return replace(self, parts=parts, children=children)

    @property
    def priority_class_name(self) -> str:
        """The priority class of its pods; if they have several, all of the same value."""
        return next(self.leaves()).pod_sets[0].priority.name

    @property
    def never_preempts(self) -> bool:
        """Whether the priority class of its pods says `preemptionPolicy: Never`, as far as it was read."""
        return all(leaf.never_preempts_at(suffix) for leaf in self.leaves() for suffix in leaf.sizes or ("",))

    def never_preempts_at(self, suffix: str) -> bool:
        """Whether the priority class of the pods in the PodGroup `suffix` says `preemptionPolicy: Never`."""
        return all(pods.priority.preemption_policy == NEVER for pods in self.pod_sets_at(suffix))

    def pod_sets_at(self, suffix: str) -> tuple[PodSet, ...]:
        """Return the pod templates whose pods are in one of its PodGroups; all of them if it has no pods."""
        return tuple(pod_set for pod_set, pods in self.parts.get(suffix, ()) if pods > 0) or self.pod_sets

    def priority_class_at(self, suffix: str) -> str:
        """Return the priority class of the pods in one of its PodGroups; the scheduler compares both."""
        return self.pod_sets_at(suffix)[0].priority.name

    def with_all_below(self) -> Iterator[Group]:
        """Yield the group and those below it, parents before children."""
        yield self
        for child in self.children:
            yield from child.with_all_below()

    def leaves(self) -> Iterator[Group]:
        """Yield the groups of pods."""
        return (group for group in self.with_all_below() if not group.children)


def default_tree(pod_sets: OwnerPodSets) -> tuple[Group, ...]:
    """Return a leaf for each group that the labels name: a gang of all its pods, or basic (initializers)."""
    members: dict[str, list[PodSet]] = {}
    parts: dict[str, dict[str, tuple[tuple[PodSet, int], ...]]] = {}
    shapes: dict[str, set[Shape]] = {}
    for pod_set in pod_sets.pod_sets:
        for name in pod_set.labels.groups if pod_set.labels else ():
            # A group without pods (numNodes 0) is in the tree too: templates cannot be added later.
            members.setdefault(name, []).append(pod_set)
            parts.setdefault(name, {})
            shapes.setdefault(name, set()).update(pod_set.labels.shapes_of(name) if pod_set.labels else ())
        for (name, suffix), pods in expected_members(pod_set).items():
            parts[name][suffix] = (*parts[name].get(suffix, ()), (pod_set, pods))
    return tuple(
        Group(
            name,
            not all(pod_set.initializer for pod_set in sets),
            tuple(sets),
            shape=shapes[name].pop() if len(shapes[name]) == 1 else SINGLE,
            parts=parts[name],
        )
        for name, sets in members.items()
    )
