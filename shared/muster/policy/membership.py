"""The labels by which pod templates say what a policy says of membership."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from muster.policy import marks
from muster.policy.marks import Mark
from muster.policy.schema import GroupPolicy, InvalidPolicyError, WorkloadPolicy

LABELS = (marks.GROUP, marks.GROUP_PER, marks.GROUP_SIZE, marks.LEADER_GROUP)
"""All labels that a mark may consist of."""


def labels_for(policy: WorkloadPolicy, steps: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The mark of each replicatedJob: as the policy says, else by the rule of mark-jobs.

    Args:
        policy: groups name the replicatedJobs they take.
        steps: the Trainer's ancestor step of each replicatedJob there is, "" where it has none.

    Raises:
        InvalidPolicyError: a group names a replicatedJob that is not there, or that another group has.
    """
    taken: dict[str, str] = {}
    labels = {name: {marks.GROUP: marks.group_of_replicated_job(name, step)} for name, step in steps.items()}
    for path, group in leaves(policy.groups):
        for index, name in enumerate(group.replicated_jobs):
            place = f"{path}.replicatedJobs[{index}]"
            if name not in steps:
                raise InvalidPolicyError(place, f"there is no {name}; there are {', '.join(steps)}")
            key = f"{name}/{'leader' if group.leader else 'all'}"
            if key in taken:
                raise InvalidPolicyError(place, f"{name} is taken by {taken[key]}")
            taken[key] = place
            labels[name] |= labels_of(group)
    return labels


def labels_of_mark(mark: Mark | None) -> dict[str, str]:
    """The labels that a mark was read from."""
    if mark is None:
        return {}
    labels = {marks.GROUP: mark.group, marks.LEADER_GROUP: mark.leader_group}
    labels |= {marks.GROUP_PER: "job" if mark.per_job else "", marks.GROUP_SIZE: str(mark.size or "")}
    return {label: value for label, value in labels.items() if value}


def leaves(groups: Sequence[GroupPolicy], above: str = "workload") -> Iterator[tuple[str, GroupPolicy]]:
    """Every group of pods in a policy, with its path."""
    for index, group in enumerate(groups):
        path = f"{above}.groups[{index}]"
        if group.groups:
            yield from leaves(group.groups, path)
        else:
            yield path, group


def labels_of(group: GroupPolicy) -> dict[str, str]:
    """What a group of pods puts on the templates of its replicatedJobs."""
    if group.leader:
        return {marks.LEADER_GROUP: group.name}
    labels = {marks.GROUP: group.name}
    if group.per:
        labels[marks.GROUP_PER] = "job"
    if group.size:
        labels[marks.GROUP_SIZE] = str(group.size)
    return labels
