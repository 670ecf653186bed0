"""Shapes of a policy's groups, validated against the group labels and the groups above."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from muster.policy import group_labels
from muster.policy.group_labels import SINGLE, Shape
from muster.policy.owners.kind import PodSet
from muster.policy.sources.schema import GroupPolicy, InvalidPolicyError
from muster.policy.tree.groups import Group


@dataclass(frozen=True)
class Position:
    """The position of a group in a policy, with the paths of the fields that count the groups above it."""

    path: str
    level: int = 1
    shape: Shape = SINGLE
    per_path: str = ""
    size_path: str = ""

    def of_child(self, index: int) -> Position:
        """Return the same level and shape at the path of a child group."""
        return replace(self, path=f"{self.path}.groups[{index}]")

    def inside(self, policy: GroupPolicy) -> Position:
        """Return the position inside a group of groups, which is counted by what those above it are, too."""
        if policy.size and self.shape.size % policy.size:
            raise InvalidPolicyError(
                f"{self.path}.size", f"must be a divisor of {self.shape.size}, the value of {self.size_path}"
            )
        return Position(
            self.path,
            self.level + 1,
            Shape(self.shape.per_job or policy.per is not None, policy.size or self.shape.size),
            f"{self.path}.per" if policy.per and not self.per_path else self.per_path,
            f"{self.path}.size" if policy.size else self.size_path,
        )


def check_labels(policy: GroupPolicy, pod_set: PodSet, path: str) -> None:
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
    for field, (label, asked, actual) in fields.items():
        if field not in policy.model_fields_set or asked == actual:
            continue
        if field == "size" and asked and shape == Shape(per_job=True):
            has = f"{group_labels.GROUP_PER}: {group_labels.PER_JOB}"
            raise InvalidPolicyError(
                f"{path}.size", f"{pod_set.path} has the label {has}, beside which no size counts"
            )
        needs = f"needs the label {label}: {asked}" if asked else f"has the label {label}: {actual}"
        raise InvalidPolicyError(f"{path}.{field}", f"{pod_set.path} {needs}")


def check_position(leaf: Group, position: Position) -> None:
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
