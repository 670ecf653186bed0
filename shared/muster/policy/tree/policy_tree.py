"""The tree of groups under a policy, checked against the group labels and the expected pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.objects.scheduling import SETTINGS
from muster.objects.text import counted
from muster.policy import group_labels
from muster.policy.group_labels import SINGLE, Shape
from muster.policy.model import GroupingFailure
from muster.policy.owners.kind import OwnerPodSets, PodSet
from muster.policy.reasons import Reason
from muster.policy.sources.schema import (
    GroupPolicy,
    InvalidPolicyError,
    paths_and_groups,
    shortened,
    together,
)
from muster.policy.sources.source import EffectivePolicy, Locks
from muster.policy.tree.groups import Group, default_tree
from muster.policy.tree.validation import find_deadlock

LEVELS = 4
"""Depth of a template hierarchy, leaves included (scheduling/v1alpha3/types.go, Kubernetes v1.37.1)."""


def policy_tree(owner: OwnerPodSets, policy: EffectivePolicy) -> tuple[Group, ...] | GroupingFailure:
    """Return the groups of an owner under a policy, or why they are impossible, with the path of the field.

    Membership comes from the labels on the pod templates; a policy that names members has to agree with them.
    """
    groups, labelled = policy.workload.groups, default_tree(owner)
    try:
        tree = _TreeBuilder(labelled, kept=policy.kept).build(groups) if groups else labelled
        if policy.locks is not None and not policy.kept:
            _check_locked_size(tree, labelled, groups, policy.locks)
    except InvalidPolicyError as error:
        return GroupingFailure(Reason.INVALID_POLICY, f"{policy.where}: {error}")
    return tree if policy.locks is None else _with_locks(tree, policy.locks)


def path_of(name: str, groups: Sequence[GroupPolicy]) -> str:
    """Return the field path of a group in a policy; "" if the policy does not name it."""
    return next((path for path, group in paths_and_groups(groups) if group.name == name), "")


@dataclass(frozen=True)
class _Position:
    """The position of a group in a policy, with the paths of the fields that count the groups above it."""

    path: str
    level: int = 1
    shape: Shape = SINGLE
    per_path: str = ""
    size_path: str = ""

    def of_child(self, index: int) -> _Position:
        """Return the same level and shape at the path of a child group."""
        return replace(self, path=f"{self.path}.groups[{index}]")

    def inside(self, policy: GroupPolicy) -> _Position:
        """Return the position inside a group of groups, which is counted by what those above it are, too."""
        if policy.size and self.shape.size % policy.size:
            raise InvalidPolicyError(
                f"{self.path}.size", f"must be a divisor of {self.shape.size}, the value of {self.size_path}"
            )
        return _Position(
            self.path,
            self.level + 1,
            Shape(self.shape.per_job or policy.per is not None, policy.size or self.shape.size),
            f"{self.path}.per" if policy.per and not self.per_path else self.per_path,
            f"{self.path}.size" if policy.size else self.size_path,
        )


class _TreeBuilder:
    """Builds the groups of a policy from the groups that the labels name."""

    def __init__(self, labelled: tuple[Group, ...], *, kept: bool) -> None:
        self._kept = kept
        self._labelled = {group.name: group for group in labelled}
        self._path_by_name: dict[str, str] = {}

    def build(self, groups: Sequence[GroupPolicy]) -> tuple[Group, ...]:
        top = _Position("workload")
        roots = self._groups(groups, top)
        unnamed = [group for name, group in self._labelled.items() if name not in self._path_by_name]
        if not self._kept:
            self._check_start((*roots, *unnamed))
        composite = any(root.children for root in roots)
        if composite and (unnamed or not all(root.children for root in roots)):
            beside = [root.name for root in roots if not root.children] + [group.name for group in unnamed]
            raise InvalidPolicyError(
                "workload.groups", f"{', '.join(beside)} are beside a group of groups; put them into one"
            )
        return (*roots, *unnamed)

    def _check_start(self, tree: tuple[Group, ...]) -> None:
        """Refuse a minGroupCount that waits for pods which wait for it; for leaves see validation.py."""
        blocked = find_deadlock(tree)
        if blocked is not None and blocked.group.children:
            raise InvalidPolicyError(
                f"{self._path_by_name[blocked.group.name]}.schedulingPolicy",
                f"{blocked.needed} child groups never wait together: only {blocked.at_once} can exist "
                f"before {blocked.late} starts, which waits for them; "
                f"make it basic, or set minGroupCount {max(1, blocked.at_once)}",
            )

    def _groups(self, policies: Sequence[GroupPolicy], above: _Position) -> tuple[Group, ...]:
        """Return the groups of policies; the faults of all of them are told at once."""
        groups, faults = [], []
        for index, policy in enumerate(policies):
            try:
                groups.append(self._group(policy, above.of_child(index)))
            except InvalidPolicyError as fault:
                faults.append(str(fault))
        if faults:
            raise InvalidPolicyError("", together(faults))
        return tuple(groups)

    def _group(self, policy: GroupPolicy, position: _Position) -> Group:
        path = position.path
        if policy.name in self._path_by_name:
            raise InvalidPolicyError(
                f"{path}.name", f"{policy.name} is already used by {self._path_by_name[policy.name]}"
            )
        self._path_by_name[policy.name] = path
        if position.level > LEVELS:
            raise InvalidPolicyError(path, f"is on level {position.level} of at most {LEVELS}")
        group = self._composite(policy, position) if policy.groups else self._leaf(policy, position)
        if not self._kept:
            _check_preemption(group, path)
        return group

    def _composite(self, policy: GroupPolicy, position: _Position) -> Group:
        settings, path = _settings(policy), position.path
        empty = not settings and _is_same_as_its_child(policy)
        here = position if empty else position.inside(policy)
        children = self._groups(policy.groups, here)
        if empty:
            return children[0]
        gang, asked = _policy(policy, default_gang=True)
        group = Group(policy.name, gang, (), children, asked, settings, here.shape)
        if not self._kept:
            _check_composite(group, path)
        return group

    def _leaf(self, policy: GroupPolicy, position: _Position) -> Group:
        path = position.path
        labelled = self._labelled.get(policy.name)
        if labelled is None:
            known = ", ".join(sorted(self._labelled)) or "none"
            raise InvalidPolicyError(
                f"{path}.name",
                f"no pod template has the label {group_labels.GROUP}: {policy.name}; labels found: {known}",
            )
        _check_membership(policy, labelled, path)
        _check_position(labelled, position)
        gang, asked = _policy(policy, default_gang=labelled.gang)
        largest = max([0, *labelled.sizes.values()])
        if asked is not None and asked > max(1, largest) and not self._kept:
            raise InvalidPolicyError(
                f"{path}.schedulingPolicy.gang.minCount",
                f"{asked} is more than the group's {counted(largest, 'pod')}",
            )
        return replace(labelled, gang=gang, pinned=asked, settings=_settings(policy))


def _policy(policy: GroupPolicy, *, default_gang: bool) -> tuple[bool, int | None]:
    """Whether the group is a gang, and the count that the policy sets."""
    choice = policy.scheduling_policy
    if choice is None:
        return default_gang, None
    if choice.gang is None:
        return False, None
    return True, choice.gang.min_group_count if policy.groups else choice.gang.min_count


def _is_same_as_its_child(policy: GroupPolicy) -> bool:
    """Whether a group of groups without settings adds nothing to its only child."""
    if len(policy.groups) > 1 or policy.scheduling_policy or policy.per or policy.size:
        return False
    (child,) = policy.groups
    return not (child.groups and (child.per or child.size))


def _settings(policy: GroupPolicy) -> dict[str, Any]:
    fields = policy.model_dump(by_alias=True, exclude_none=True, include=SETTINGS)
    return {name: value for name, value in fields.items() if value != []}


def _check_membership(policy: GroupPolicy, group: Group, path: str) -> None:
    labelled = {pod_set.replicated_job for pod_set in group.pod_sets}
    if policy.replicated_jobs and set(policy.replicated_jobs) != labelled:
        actual = ", ".join(sorted(labelled - {""})) or "the Job's only template"
        raise InvalidPolicyError(
            f"{path}.replicatedJobs", f"the label {group_labels.GROUP}: {policy.name} is on {actual} instead"
        )
    for pod_set in group.pod_sets:
        _check_labels(policy, pod_set, path)


def _check_preemption(group: Group, path: str) -> None:
    """Refuse a preemptionPolicy that differs from the pods' class, as plugin/pkg/admission/priority does."""
    below = [pod_set for leaf in group.leaves() for pod_set in leaf.pod_sets]
    asked = group.settings.get("preemptionPolicy", "")
    others = {pod_set.priority.preemption_policy for pod_set in below} - {"", asked}
    if asked and others:
        raise InvalidPolicyError(
            f"{path}.preemptionPolicy", f"the PriorityClass of its pods has {', '.join(sorted(others))}"
        )


def _check_composite(group: Group, path: str) -> None:
    """Refuse a minGroupCount above the child groups, and pods of several schedulers or priorities."""
    needed = group.pinned or 1
    if needed > max(1, group.child_groups):
        raise InvalidPolicyError(
            f"{path}.schedulingPolicy.gang.minGroupCount",
            f"{needed} is more than the {counted(group.child_groups, 'child group')} with pods",
        )
    below = [pod_set for leaf in group.leaves() for pod_set in leaf.pod_sets]
    schedulers = {pod_set.template.spec.scheduler_name for pod_set in below}
    if len(schedulers) > 1:
        names = ", ".join(sorted(shortened(name) for name in schedulers))
        raise InvalidPolicyError(path, f"pods of one group must have the same schedulerName, not {names}")
    if len({pod_set.priority for pod_set in below}) > 1:
        priorities = ", ".join(sorted({str(pod_set.priority) for pod_set in below}))
        raise InvalidPolicyError(path, f"pods of one group must have the same priority, not {priorities}")


def _check_locked_size(
    tree: tuple[Group, ...], labelled: tuple[Group, ...], groups: Sequence[GroupPolicy], locks: Locks
) -> None:
    """Refuse a policy that lets a gang start without all its members under `minCount: All`."""
    if locks.fields.min_count is None:
        return
    gangs = {group.name for group in labelled if group.gang}
    for group in (group for root in tree for group in root.with_all_below()):
        path = f"{path_of(group.name, groups)}.schedulingPolicy"
        if not group.gang and not group.children and group.name in gangs:
            raise locks.refused(f"{path}.basic", "a gang of all pods")
        members = group.child_groups if group.children else max([0, *group.sizes.values()])
        if group.gang and group.pinned is not None and group.pinned < members:
            count = "minGroupCount" if group.children else "minCount"
            raise locks.refused(f"{path}.gang.{count}", f"all {members}")


def _with_locks(tree: tuple[Group, ...], locks: Locks) -> tuple[Group, ...]:
    """Return the tree with the locked disruptionMode, and without smaller counts, on every gang."""
    mode, changed = locks.fields.disruption_mode, []
    for group in tree:
        settings, pinned = group.settings, group.pinned
        if group.gang and mode is not None:
            settings = {**settings, "disruptionMode": mode.model_dump(by_alias=True, exclude_none=True)}
        if group.gang and locks.fields.min_count:
            pinned = None
        children = _with_locks(group.children, locks)
        changed.append(replace(group, children=children, settings=settings, pinned=pinned))
    return tuple(changed)


def _check_labels(policy: GroupPolicy, pod_set: PodSet, path: str) -> None:
    """Refuse `per`, `size` and `leader` that differ from one template's labels."""
    labels = pod_set.labels
    if labels is None:
        return
    leads = labels.leader_group == policy.name
    shape = labels.leader_shape if leads else labels.shape
    fields = {
        "per": (
            group_labels.LEADER_GROUP_PER if leads or policy.leader else group_labels.GROUP_PER,
            Shape(policy.per is not None, policy.size or 0).per,
            shape.per,
        ),
        "size": (group_labels.GROUP_SIZE, str(policy.size or ""), str(shape.size or "")),
        "leader": (
            group_labels.LEADER_GROUP,
            policy.name if policy.leader else "",
            policy.name if leads else "",
        ),
    }
    faults = []
    for field, (label, asked, actual) in fields.items():
        if field not in policy.model_fields_set or asked == actual:
            continue
        needs = f"needs the label {label}: {asked}" if asked else f"has the label {label}: {actual}"
        if field == "size" and asked and shape == Shape(per_job=True):
            needs = (
                f"has the label {group_labels.GROUP_PER}: {group_labels.PER_JOB}, beside which no size counts"
            )
        faults.append(f"{path}.{field}: {pod_set.path} {needs}")
    if faults:
        raise InvalidPolicyError("", together(faults))


def _check_position(leaf: Group, position: _Position) -> None:
    """Refuse a group of pods whose PodGroups are not each in one of the groups above it."""
    for path, leads, shape in _shapes(leaf):
        if position.shape.per_job and not shape.per_job:
            per = group_labels.LEADER_GROUP_PER if leads else group_labels.GROUP_PER
            needed = Shape(per_job=True, size=shape.size).per
            raise InvalidPolicyError(
                f"{position.path}.per",
                f"{path} needs the label {per}: {needed}, because of {position.per_path}",
            )
        if position.shape.size and leads:
            raise InvalidPolicyError(
                position.path, f"a leader is in no block; put it above {position.size_path}"
            )
        if position.shape.size and (shape.size == 0 or position.shape.size % shape.size):
            raise InvalidPolicyError(
                f"{position.path}.size",
                f"{path} needs the label {group_labels.GROUP_SIZE} with a divisor of {position.shape.size}, "
                f"the value of {position.size_path}",
            )


def _shapes(leaf: Group) -> Iterator[tuple[str, bool, Shape]]:
    for pod_set in leaf.pod_sets:
        labels = pod_set.labels
        if labels is not None and labels.leader_group == leaf.name:
            yield pod_set.path, True, labels.leader_shape
        if labels is not None and labels.group == leaf.name:
            yield pod_set.path, False, labels.shape
