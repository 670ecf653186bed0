"""A tree in which groups of groups that start alike are merged, to simulate its start in few steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from muster.policy.group_labels import SINGLE
from muster.policy.tree.groups import Group

_Members = frozenset[tuple[str, int, int]]
"""The pods of one PodGroup: path of a pod template, pods of it, and how many of them are index 0 of a Job."""


def merged(tree: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return the tree with one group for all equal CompositePodGroups of a group, and their number.

    Each group of groups in it has the minGroupCount of that CompositePodGroup.
    """
    if all(group.shape == SINGLE for root in tree for group in root.composites()):
        return tree
    members = {leaf.name: _members(leaf) for root in tree for leaf in root.leaves()}
    return tuple(group for root in tree for group in _merged(root, members))


def _merged(group: Group, members: Mapping[str, Mapping[str, _Members]]) -> Iterable[Group]:
    if not group.children:
        return (group,)
    equal: dict[object, list[Group]] = {}
    for copy in group.instances.values():
        equal.setdefault(_signature(copy, members), []).append(copy)
    return tuple(
        replace(
            alike[0],
            children=tuple(each for child in alike[0].children for each in _merged(child, members)),
            pinned=max(1, min(group.template_min_count, alike[0].own_child_groups)),
            copies=len(alike),
        )
        for alike in equal.values()
    )


def _signature(group: Group, members: Mapping[str, Mapping[str, _Members]]) -> object:
    """Return a value that is equal for groups that start alike."""
    if not group.children:
        by_suffix = members[group.name]
        return group.name, frozenset(Counter(by_suffix.get(suffix) for suffix in group.sizes).items())
    below = (
        _signature(copy, members)
        for child in group.children
        for copy in (child.instances.values() if child.children else (child,))
    )
    return group.name, frozenset(Counter(below).items())


def _members(leaf: Group) -> dict[str, _Members]:
    by_suffix: dict[str, set[tuple[str, int, int]]] = {}
    for pod_set in leaf.pod_sets:
        for instance, pods in pod_set.expected_members.items():
            if instance.group == leaf.name and pods and pod_set.labels:
                leading = pod_set.labels.jobs_led_in(instance, pod_set.jobs)
                by_suffix.setdefault(instance.suffix, set()).add((pod_set.path, pods, leading))
    return {suffix: frozenset(parts) for suffix, parts in by_suffix.items()}
