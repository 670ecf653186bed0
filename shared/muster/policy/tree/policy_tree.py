"""The tree of groups under a policy, checked against the group labels and the expected pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.policy import group_labels
from muster.policy.model import GroupingFailure
from muster.policy.owners.kind import OwnerPodSets, PodSet
from muster.policy.reasons import Reason
from muster.policy.sources.schema import GroupPolicy, InvalidPolicyError, WorkloadPolicy
from muster.policy.tree.deadlock import find_deadlock
from muster.policy.tree.groups import Group, default_tree

LEVELS = 4
"""Depth of a template hierarchy, leaves included (scheduling/v1alpha3/types.go, Kubernetes v1.37.1)."""

_SETTINGS = {"scheduling_constraints", "disruption_mode", "preemption_policy", "resource_claims"}


def policy_tree(
    owner: OwnerPodSets, policy: WorkloadPolicy, where: str, *, kept: bool = False
) -> tuple[Group, ...] | GroupingFailure:
    """The groups of an owner under a policy.

    Membership comes from the labels on the pod templates; a policy that names members has to agree with them.

    Args:
        owner: the owner's pod sets.
        policy: a policy with groups; a group that it does not name follows the default rule.
        where: the source of the policy, for messages.
        kept: whether its groups exist already: after scaling down, counts may then exceed the pods.

    Returns:
        The tree, or why it is impossible, with the path of the field.
    """
    try:
        return _TreeBuilder(default_tree(owner), kept=kept).build(policy.groups)
    except InvalidPolicyError as error:
        return GroupingFailure(Reason.INVALID_POLICY, f"{where}: {error}")


def path_of(name: str, groups: Sequence[GroupPolicy], above: str = "workload") -> str:
    """The field path of a group in a policy; "" if the policy does not name it."""
    for index, group in enumerate(groups):
        path = f"{above}.groups[{index}]"
        match = path if group.name == name else path_of(name, group.groups, path)
        if match:
            return match
    return ""


class _TreeBuilder:
    """Builds the groups of a policy from the groups that the labels name."""

    def __init__(self, labelled: tuple[Group, ...], *, kept: bool) -> None:
        self._kept = kept
        self._labelled = {group.name: group for group in labelled}
        self._path_by_name: dict[str, str] = {}

    def build(self, groups: Sequence[GroupPolicy]) -> tuple[Group, ...]:
        roots = [self._group(group, f"workload.groups[{index}]", 1) for index, group in enumerate(groups)]
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

    def _group(self, policy: GroupPolicy, path: str, level: int) -> Group:
        if policy.name in self._path_by_name:
            raise InvalidPolicyError(
                f"{path}.name", f"{policy.name} is already used by {self._path_by_name[policy.name]}"
            )
        self._path_by_name[policy.name] = path
        if level > LEVELS:
            raise InvalidPolicyError(path, f"is on level {level} of at most {LEVELS}")
        return self._composite(policy, path, level) if policy.groups else self._leaf(policy, path)

    def _composite(self, policy: GroupPolicy, path: str, level: int) -> Group:
        settings = _settings(policy)
        empty = len(policy.groups) == 1 and not settings and policy.scheduling_policy is None
        children = tuple(
            self._group(child, f"{path}.groups[{index}]", level if empty else level + 1)
            for index, child in enumerate(policy.groups)
        )
        if empty:
            return children[0]
        gang, asked = _policy(policy, default_gang=True)
        group = Group(policy.name, gang, (), {}, children, asked, settings)
        if not self._kept:
            _check_composite(group, path)
            _check_preemption(group, path)
        return group

    def _leaf(self, policy: GroupPolicy, path: str) -> Group:
        labelled = self._labelled.get(policy.name)
        if labelled is None:
            known = ", ".join(sorted(self._labelled)) or "none"
            raise InvalidPolicyError(
                f"{path}.name",
                f"no pod template has the label {group_labels.GROUP}: {policy.name}; labels found: {known}",
            )
        _check_membership(policy, labelled, path)
        gang, asked = _policy(policy, default_gang=labelled.gang)
        largest = max([0, *labelled.sizes.values()])
        if asked is not None and asked > max(1, largest) and not self._kept:
            raise InvalidPolicyError(
                f"{path}.schedulingPolicy.gang.minCount",
                f"{asked} is more than the group's {largest} pods",
            )
        group = Group(policy.name, gang, labelled.pod_sets, labelled.sizes, (), asked, _settings(policy))
        if not self._kept:
            _check_preemption(group, path)
        return group


def _policy(policy: GroupPolicy, *, default_gang: bool) -> tuple[bool, int | None]:
    """Whether the group is a gang, and the count that the policy sets."""
    choice = policy.scheduling_policy
    if choice is None:
        return default_gang, None
    if choice.gang is None:
        return False, None
    return True, choice.gang.min_group_count if policy.groups else choice.gang.min_count


def _settings(policy: GroupPolicy) -> dict[str, Any]:
    fields = policy.model_dump(by_alias=True, exclude_none=True, include=_SETTINGS)
    return {name: value for name, value in fields.items() if value != []}


def _check_membership(policy: GroupPolicy, group: Group, path: str) -> None:
    """Refuse members other than those that the labels on the pod templates name."""
    labelled = {pod_set.replicated_job for pod_set in group.pod_sets}
    if policy.replicated_jobs and set(policy.replicated_jobs) != labelled:
        actual = ", ".join(sorted(labelled - {""})) or "the Job's only template"
        raise InvalidPolicyError(
            f"{path}.replicatedJobs", f"the label {group_labels.GROUP}: {policy.name} is on {actual} instead"
        )
    for pod_set in group.pod_sets:
        _check_shape(policy, pod_set, path)


def _check_shape(policy: GroupPolicy, pod_set: PodSet, path: str) -> None:
    """Refuse `per`, `size` and `leader` that differ from one template's labels."""
    labels = pod_set.labels
    if labels is None:
        return
    leads = labels.leader_group == policy.name
    shapes = {
        "per": (
            group_labels.GROUP_PER,
            "job" if policy.per else "",
            "job" if labels.per_job and not leads else "",
        ),
        "size": (group_labels.GROUP_SIZE, str(policy.size or ""), "" if leads else str(labels.size or "")),
        "leader": (
            group_labels.LEADER_GROUP,
            policy.name if policy.leader else "",
            policy.name if leads else "",
        ),
    }
    for field, (label, asked, actual) in shapes.items():
        if field not in policy.model_fields_set or asked == actual:
            continue
        needs = f"needs the label {label}: {asked}" if asked else f"has the label {label}: {actual}"
        raise InvalidPolicyError(f"{path}.{field}", f"{pod_set.path} {needs}")


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
    if needed > max(1, group.instances):
        raise InvalidPolicyError(
            f"{path}.schedulingPolicy.gang.minGroupCount",
            f"{needed} is more than the {group.instances} child groups that have pods",
        )
    below = [pod_set for leaf in group.leaves() for pod_set in leaf.pod_sets]
    schedulers = {pod_set.template.spec.scheduler_name for pod_set in below}
    if len(schedulers) > 1:
        names = ", ".join(sorted(schedulers))
        raise InvalidPolicyError(path, f"pods of one group must have the same schedulerName, not {names}")
    if len({pod_set.priority for pod_set in below}) > 1:
        priorities = ", ".join(sorted({str(pod_set.priority) for pod_set in below}))
        raise InvalidPolicyError(
            path,
            f"pods of one group must have the same priority, not {priorities}",
        )
