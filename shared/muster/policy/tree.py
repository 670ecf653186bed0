"""The tree of groups a policy asks for, checked against the pods there will be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.policy import marks
from muster.policy.groups import GivenUp, Group, tree_of
from muster.policy.kinds import Gang, PodSet
from muster.policy.reasons import Reason
from muster.policy.schema import GroupPolicy, InvalidPolicyError, WorkloadPolicy
from muster.policy.startup import stuck

LEVELS = 4
"""Depth of a template hierarchy, leaves included (scheduling/v1alpha3/types.go, Kubernetes v1.37.1)."""

_SETTINGS = {"scheduling_constraints", "disruption_mode", "preemption_policy", "resource_claims"}


def tree_for(
    gang: Gang, policy: WorkloadPolicy, where: str, *, kept: bool = False
) -> tuple[Group, ...] | GivenUp:
    """The groups of an owner under a policy.

    Membership comes from the marks on the pod templates; what a policy says of it has to agree with them.

    Args:
        gang: the owner.
        policy: what is asked for; without groups every mark is a group by the default rule.
        where: the home of the policy, for messages.
        kept: whether its groups exist already: then counts may be above what is left after scaling down.

    Returns:
        The tree, or why the policy cannot be had, with the path of the field.
    """
    marked = tree_of(gang)
    if not policy.groups:
        return marked
    try:
        return _Reader(marked, kept=kept).read(policy.groups)
    except InvalidPolicyError as error:
        return GivenUp(Reason.INVALID_POLICY, f"{where}: {error}")


def path_of(name: str, groups: Sequence[GroupPolicy], above: str = "workload") -> str:
    """Where a policy speaks of a group; "" where it does not."""
    for index, group in enumerate(groups):
        path = f"{above}.groups[{index}]"
        found = path if group.name == name else path_of(name, group.groups, path)
        if found:
            return found
    return ""


class _Reader:
    """Walks a policy's groups beside the groups that the marks make."""

    def __init__(self, marked: tuple[Group, ...], *, kept: bool) -> None:
        self._kept = kept
        self._marked = {group.name: group for group in marked}
        self._seen: dict[str, str] = {}

    def read(self, groups: Sequence[GroupPolicy]) -> tuple[Group, ...]:
        roots = [self._group(group, f"workload.groups[{index}]", 1) for index, group in enumerate(groups)]
        rest = [group for name, group in self._marked.items() if name not in self._seen]
        if not self._kept:
            self._check_start((*roots, *rest))
        composite = any(root.children for root in roots)
        if composite and (rest or not all(root.children for root in roots)):
            loose = [root.name for root in roots if not root.children] + [group.name for group in rest]
            raise InvalidPolicyError(
                "workload.groups", f"{', '.join(loose)} stand beside a group with groups; put them into one"
            )
        return (*roots, *rest)

    def _check_start(self, tree: tuple[Group, ...]) -> None:
        """A quorum of child groups must be there before what waits for them; for leaves see flaws.py."""
        blocked = stuck(tree)
        if blocked is not None and blocked.group.children:
            raise InvalidPolicyError(
                f"{self._seen[blocked.group.name]}.schedulingPolicy",
                f"{blocked.needed} child groups never wait together: only {blocked.at_once} can be there "
                f"before {blocked.late} starts, which waits for them; "
                f"make it basic, or minGroupCount {max(1, blocked.at_once)}",
            )

    def _group(self, policy: GroupPolicy, path: str, level: int) -> Group:
        if policy.name in self._seen:
            raise InvalidPolicyError(f"{path}.name", f"{policy.name} is taken by {self._seen[policy.name]}")
        self._seen[policy.name] = path
        if level > LEVELS:
            raise InvalidPolicyError(path, f"is on level {level}, but a Workload has {LEVELS}")
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
        marked = self._marked.get(policy.name)
        if marked is None:
            known = ", ".join(sorted(self._marked)) or "none"
            raise InvalidPolicyError(
                f"{path}.name",
                f"no pod template has the label {marks.GROUP}: {policy.name}; marks found: {known}",
            )
        _check_membership(policy, marked, path)
        gang, asked = _policy(policy, default_gang=marked.gang)
        largest = max([0, *marked.sizes.values()])
        if asked is not None and asked > max(1, largest) and not self._kept:
            raise InvalidPolicyError(
                f"{path}.schedulingPolicy.gang.minCount",
                f"{asked} is more than the {largest} pods there will be",
            )
        group = Group(policy.name, gang, marked.pod_sets, marked.sizes, (), asked, _settings(policy))
        if not self._kept:
            _check_preemption(group, path)
        return group


def _policy(policy: GroupPolicy, *, default_gang: bool) -> tuple[bool, int | None]:
    """Whether it is a gang, and the count that is asked for."""
    choice = policy.scheduling_policy
    if choice is None:
        return default_gang, None
    if choice.gang is None:
        return False, None
    return True, choice.gang.min_group_count if policy.groups else choice.gang.min_count


def _settings(policy: GroupPolicy) -> dict[str, Any]:
    given = policy.model_dump(by_alias=True, exclude_none=True, include=_SETTINGS)
    return {name: value for name, value in given.items() if value != []}


def _check_membership(policy: GroupPolicy, marked: Group, path: str) -> None:
    """What a policy says of membership must be what the labels on the pod templates say."""
    labelled = {pod_set.replicated_job for pod_set in marked.pod_sets}
    if policy.replicated_jobs and set(policy.replicated_jobs) != labelled:
        found = ", ".join(sorted(labelled - {""})) or "the Job's only template"
        raise InvalidPolicyError(
            f"{path}.replicatedJobs", f"the label {marks.GROUP}: {policy.name} is on {found} instead"
        )
    for pod_set in marked.pod_sets:
        _check_shape(policy, pod_set, path)


def _check_shape(policy: GroupPolicy, pod_set: PodSet, path: str) -> None:
    """`per`, `size` and `leader`, as far as the policy says them, against one template's labels."""
    mark = pod_set.mark
    if mark is None:
        return
    leads = mark.leader_group == policy.name
    shapes = {
        "per": (marks.GROUP_PER, "job" if policy.per else "", "job" if mark.per_job and not leads else ""),
        "size": (marks.GROUP_SIZE, str(policy.size or ""), "" if leads else str(mark.size or "")),
        "leader": (marks.LEADER_GROUP, policy.name if policy.leader else "", policy.name if leads else ""),
    }
    for field, (label, asked, there) in shapes.items():
        if field not in policy.model_fields_set or asked == there:
            continue
        needs = f"needs the label {label}: {asked}" if asked else f"has the label {label}: {there}"
        raise InvalidPolicyError(f"{path}.{field}", f"{pod_set.path} {needs}")


def _check_preemption(group: Group, path: str) -> None:
    """The API server refuses a group of another preemptionPolicy than its class has (admission/priority)."""
    below = [pod_set for leaf in group.leaves() for pod_set in leaf.pod_sets]
    asked = group.settings.get("preemptionPolicy", "")
    found = {one.priority.preemption_policy for one in below} - {"", asked}
    if asked and found:
        raise InvalidPolicyError(
            f"{path}.preemptionPolicy", f"its pods have {', '.join(sorted(found))}, by their PriorityClass"
        )


def _check_composite(group: Group, path: str) -> None:
    """There must be a quorum of children, and the pods below must have one scheduler and one priority."""
    needed = group.pinned or 1
    if needed > max(1, group.instances):
        raise InvalidPolicyError(
            f"{path}.schedulingPolicy.gang.minGroupCount",
            f"{needed} is more than the {group.instances} child groups that have pods",
        )
    below = [pod_set for leaf in group.leaves() for pod_set in leaf.pod_sets]
    schedulers = {pod_set.template.spec.scheduler_name for pod_set in below}
    if len(schedulers) > 1:
        found = ", ".join(sorted(schedulers))
        raise InvalidPolicyError(path, f"pods below one group need one schedulerName; found: {found}")
    if len({pod_set.priority for pod_set in below}) > 1:
        found = ", ".join(sorted({str(pod_set.priority) for pod_set in below}))
        raise InvalidPolicyError(
            path,
            f"pods below one group need one priority, that of the root; found: {found}",
        )
