"""The PodGroups and CompositePodGroups that an owner should have, by the templates of its Workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS
from muster.objects.scheduling import (
    CompositePodGroup,
    CompositePodGroupTemplate,
    PodGroup,
    PodGroupTemplate,
    Workload,
)
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.groups import Group
from muster.policy.tree.members import LiveMembers

GroupKey = tuple[str, str]
"""Kind and name: a PodGroup and a CompositePodGroup may have the same name."""

ExistingGroups = Mapping[GroupKey, PodGroup | CompositePodGroup]
"""The groups of an owner that exist."""


@dataclass(frozen=True)
class WantedGroup:
    """A group that an owner should have.

    Attributes:
        name: its name.
        template: its template.
        parent: the name of the CompositePodGroup above it; "" at the top.
        pod_groups: the group and instance suffix of itself, or of each PodGroup below it.
        priority_class: of its pods; the scheduler compares both.
    """

    name: str
    template: PodGroupTemplate
    parent: str
    pod_groups: tuple[tuple[Group, str], ...]
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
        return sum(leaf.sizes[suffix] for leaf, suffix in self.pod_groups)

    def is_below_parent(self, existing: PodGroup | CompositePodGroup) -> bool:
        """Whether the group of its name has the parent that it should have, which never changes."""
        return existing.spec.parent_composite_pod_group_name == self.parent


def wanted_groups(resolved: ResolvedOwner, workload: Workload) -> Iterator[WantedGroup]:
    """Yield the groups that the templates of an owner's Workload make, parents before children."""
    leaves = {leaf.template_name: leaf for leaf in resolved.leaves()}
    name_of = resolved.pod_sets.pod_group_name
    for template, above in workload.hierarchy():
        if isinstance(template, CompositePodGroupTemplate):
            below = [leaves[name] for name in template.leaves() if name in leaves]
            priority_class = below[0].priority_class_name if below else template.priority_class_name
            for suffix, copy in _instances(resolved, template.name).items():
                parent = resolved.name_above(above, template.name, suffix)
                pod_groups = _pod_groups_below(below, copy)
                yield WantedGroup(
                    name_of(template.name, suffix), template, parent, pod_groups, priority_class
                )
        elif template.name in leaves:  # else of the user's own Workload, and no pod is stamped for it
            leaf = leaves[template.name]
            for suffix in leaf.sizes:
                parent = resolved.name_above(above, leaf.name, suffix)
                priority_class = leaf.priority_class_at(suffix)
                yield WantedGroup(
                    name_of(leaf.name, suffix), template, parent, ((leaf, suffix),), priority_class
                )


def child_groups(wanted: tuple[WantedGroup, ...], existing: ExistingGroups) -> Counter[str]:
    """Return the number of child groups with pods by the name of their CompositePodGroup.

    One that exists below another parent, or below none, such as a fallback PodGroup, does not count.
    """
    counts: Counter[str] = Counter()
    for group in reversed(wanted):
        filled = counts[group.name] if group.composite else group.pods
        if filled and (group.key not in existing or group.is_below_parent(existing[group.key])):
            counts[group.parent] += 1
    return counts


def existing_groups(members: LiveMembers) -> ExistingGroups:
    """Return the PodGroups and CompositePodGroups of an owner."""
    groups: tuple[PodGroup | CompositePodGroup, ...] = (*members.composites, *members.groups)
    return {(group.kind, group.metadata.name): group for group in groups}


def _instances(resolved: ResolvedOwner, name: str) -> Mapping[str, Group | None]:
    """Return the instances of a composite group by suffix; {"": None} if only a user's own Workload has it.

    Muster's Workload has no other groups, unless somebody added them: these have no instances. Neither has
    one that is composite there and not in the tree, since nobody would read its CompositePodGroup.
    """
    group = resolved.groups.get(name)
    if group is not None:
        return group.instances if group.children else {}
    return {} if resolved.own is None else {"": None}


def _pod_groups_below(leaves: list[Group], copy: Group | None) -> tuple[tuple[Group, str], ...]:
    """Return the PodGroups below a CompositePodGroup; all of the leaves' if that is None."""
    sizes = {leaf.name: leaf.sizes for leaf in (leaves if copy is None else copy.leaves())}
    return tuple((leaf, suffix) for leaf in leaves for suffix in sizes.get(leaf.name, ()))
