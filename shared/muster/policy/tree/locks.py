"""Locked fields that need the groups of an owner: disruptionMode and `minCount: All`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muster.policy.sources.locks import Locks
from muster.policy.sources.schema import GroupPolicy, InvalidPolicyError
from muster.policy.tree.groups import Group
from muster.policy.tree.policy_tree import path_of


def with_locks(tree: tuple[Group, ...], locks: Locks) -> tuple[Group, ...]:
    """Return the tree with the locked disruptionMode, and without smaller counts, on every gang.

    A basic group keeps its mode: its pods are placed one by one, and upstream refuses `all` for such a group
    of a Job (pkg/apis/batch/validation, v1.37.1).
    """
    return tuple(_with_locks(group, locks) for group in tree)


def below_size(
    tree: tuple[Group, ...], labelled: tuple[Group, ...], groups: Sequence[GroupPolicy], locks: Locks
) -> InvalidPolicyError | None:
    """Return the error of a policy that lets a gang start without all its members under `minCount: All`.

    A basic group of groups is allowed: a gang over stages that wait for each other is impossible.

    Args:
        tree: the groups of the owner by its policy.
        labelled: its groups by its labels alone.
        groups: those of the policy, for paths.
        locks: the locked fields.
    """
    if locks.fields.min_count is None:
        return None
    gangs = {group.name for group in labelled if group.gang}
    for group in (group for root in tree for group in root.with_all_below()):
        path = f"{path_of(group.name, groups)}.schedulingPolicy"
        if not group.gang and not group.children and group.name in gangs:
            return locks.refused(f"{path}.basic", "a gang of all pods")
        members = group.child_groups if group.children else max([0, *group.sizes.values()])
        if group.gang and group.pinned is not None and group.pinned < members:
            count = "minGroupCount" if group.children else "minCount"
            return locks.refused(f"{path}.gang.{count}", f"all {members}")
    return None


def _with_locks(group: Group, locks: Locks) -> Group:
    changed = replace(group, children=with_locks(group.children, locks))
    if not group.gang:
        return changed
    mode = locks.fields.disruption_mode
    if mode is not None:
        value = mode.model_dump(by_alias=True, exclude_none=True)
        changed = replace(changed, settings={**group.settings, "disruptionMode": value})
    return replace(changed, pinned=None) if locks.fields.min_count else changed
