"""The group labels that a policy asks for on the pod templates of a runtime."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from muster.policy import group_labels
from muster.policy.group_labels import GroupLabels, Shape
from muster.policy.owners.jobset import JobSetSpec, default_groups
from muster.policy.sources.schema import GroupPolicy, InvalidPolicyError, WorkloadPolicy

LABELS = (
    group_labels.GROUP,
    group_labels.GROUP_PER,
    group_labels.GROUP_SIZE,
    group_labels.LEADER_GROUP,
    group_labels.LEADER_GROUP_PER,
)
"""All group labels."""


def labels_for(
    policy: WorkloadPolicy, spec: JobSetSpec, by_hand: Mapping[str, Collection[str]]
) -> dict[str, dict[str, str]]:
    """Return the group labels of each replicatedJob: by the policy, else the default of those without one.

    `by_hand` are the labels that stay on each template.
    """
    taken: dict[str, str] = {}
    labels: dict[str, dict[str, str]] = {name: {} for name in by_hand}
    for path, group in leaves(policy.groups):
        for index, name in enumerate(group.replicated_jobs):
            entry = f"{path}.replicatedJobs[{index}]"
            if name not in labels:
                raise InvalidPolicyError(
                    entry, f"replicatedJob {name} does not exist; existing: {', '.join(labels)}"
                )
            key = f"{name}/{'leader' if group.leader else 'all'}"
            if key in taken:
                raise InvalidPolicyError(entry, f"{name} is already used by {taken[key]}")
            taken[key] = entry
            labels[name] |= labels_of(group)
    all_labels = {name: {*by_hand[name], *asked} for name, asked in labels.items()}
    for name, default in default_groups(spec, all_labels).items():
        labels[name][group_labels.GROUP] = default
    return labels


def labels_of_template(read: GroupLabels | None) -> dict[str, str]:
    """Return the labels that group labels were read from."""
    if read is None:
        return {}
    labels = {group_labels.GROUP: read.group, group_labels.LEADER_GROUP: read.leader_group}
    labels |= {
        group_labels.GROUP_PER: read.shape.per,
        group_labels.GROUP_SIZE: str(read.shape.size or ""),
        group_labels.LEADER_GROUP_PER: read.leader_shape.per,
    }
    return {label: value for label, value in labels.items() if value}


def leaves(
    groups: Sequence[GroupPolicy], above: str = "workload", *, per_job: bool = False
) -> Iterator[tuple[str, GroupPolicy]]:
    """Yield path and group of each group of pods in a policy; `per: Job` is inherited from groups above."""
    for index, group in enumerate(groups):
        path = f"{above}.groups[{index}]"
        each_job = per_job or group.per is not None
        if group.groups:
            yield from leaves(group.groups, path, per_job=each_job)
        else:
            yield path, group.model_copy(update={"per": "Job"}) if each_job else group


def labels_of(group: GroupPolicy) -> dict[str, str]:
    """Return the labels that a group of pods puts on the templates of its replicatedJobs."""
    shape = Shape(group.per is not None, group.size or 0)
    if group.leader:
        return labels_of_template(GroupLabels("", leader_group=group.name, leader_shape=shape))
    return labels_of_template(GroupLabels(group.name, shape))
