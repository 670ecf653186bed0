"""Labels of groups: which group a pod belongs to, and which objects Muster made, for which owner.

The admission policies in eventing/admission compute the same names; tests/contract compares both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"
OWNER_UID = "muster.dev/owner-uid"
"""Label of everything that Muster creates for an owner: the owner's UID."""

GROUP = "muster.dev/group"
GROUP_PER = "muster.dev/group-per"
GROUP_SIZE = "muster.dev/group-size"
LEADER_GROUP = "muster.dev/leader-group"
LEADER_GROUP_PER = "muster.dev/leader-group-per"
PER_JOB = "job"
"""Value of GROUP_PER and LEADER_GROUP_PER: one PodGroup for each Job."""

PER_BLOCK_OF_JOB = "job-block"
"""Value of GROUP_PER beside GROUP_SIZE: one PodGroup for each block of each Job."""

MIN_COUNT = "muster.dev/min-count"
"""Label of pods of any controller: so many start together, in a PodGroup that gather_pods makes."""

ALL = "all"
"""Value of MIN_COUNT: as many as their controller has."""

GANG = "muster.dev/gang"
"""Label of pods with MIN_COUNT, and of their PodGroup: its name. A person may name a gang by it."""

GANG_BY = "muster.dev/gang-by"
"""Annotation of pods with MIN_COUNT: the key of the label whose value names their gang."""

GATE_SWITCH = "muster.dev/gate"
"""Annotation of a pod template: `off` for no gate on its pods, `all` for one on each."""

GATE = "muster.dev/pod-group"
"""The scheduling gate of stamped pods until their PodGroup exists."""

GATED = "muster.dev/gated"
"""Label of pods with that gate: their source selects by it."""

OPTED_OUT = "none"
NAMESPACE_SWITCH = "muster.dev/gang-jobs"
"""Label of a namespace; `enabled` lets mark-jobs and mark-jobsets act in it."""

JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
JOB_NAME = "batch.kubernetes.io/job-name"
JOB_UID = "batch.kubernetes.io/controller-uid"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
UPSTREAM_TEMPLATE = "scheduling.k8s.io/group-template-name"
"""Annotation of pods that the Job controller groups (pkg/apis/scheduling, Kubernetes v1.37.1)."""

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(?:[.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*+")
_UID_HEAD = re.compile(r"[0-9a-f]{8}")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SIZE = re.compile(r"[1-9][0-9]{0,5}")
_INDEX = re.compile(r"[0-9]{1,9}")
UID_CHARACTERS = 8


class Shape(NamedTuple):
    """The rule for how many PodGroups or CompositePodGroups a group has; the default is one for all pods.

    Attributes:
        per_job: one for each Job of a replicatedJob.
        size: one for each block of that many completion indexes, of each Job if per_job; 0 means no blocks.
    """

    per_job: bool = False
    size: int = 0

    @property
    def per(self) -> str:
        """The value of GROUP_PER or LEADER_GROUP_PER; "" for no label."""
        if not self.per_job:
            return ""
        return PER_BLOCK_OF_JOB if self.size else PER_JOB

    def suffix(self, job_index: int | str, completion_index: int) -> str:
        """Return the instance suffix of one pod: `-<job index>`, `-<block>`, `-<job index>-<block>` or ""."""
        job = f"-{job_index}" if self.per_job else ""
        return f"{job}-{completion_index // self.size}" if self.size else job

    def suffix_above(self, below: Shape, suffix: str) -> str:
        """Return the instance of this shape that contains an instance of another shape."""
        job_index, block = _numbers(below, suffix)
        return self.suffix(job_index, block * below.size)


SINGLE = Shape()
"""One PodGroup for all pods of a group."""


class GroupInstance(NamedTuple):
    """One PodGroup of a group, by the suffix in its name: `-<job index>`, `-<block>`, both, or ""."""

    group: str
    suffix: str


def pod_group_name(owner: str, group: str, uid: str, suffix: str = "") -> str:
    """Return the name of a PodGroup, `<owner>-<group>-<uid8><suffix>`: a format that must not change."""
    return f"{owner}-{group}-{uid[:UID_CHARACTERS]}{suffix}"


@dataclass(frozen=True)
class GroupLabels:
    """The group labels of a pod template."""

    group: str
    shape: Shape = SINGLE
    leader_group: str = ""
    leader_shape: Shape = SINGLE

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that pods with these labels may be in."""
        return tuple(dict.fromkeys(filter(None, (self.leader_group, self.group))))

    @property
    def by_job(self) -> bool:
        """Whether the Jobs of a replicatedJob have PodGroups of their own."""
        return self.shape.per_job or self.leader_shape.per_job

    def shapes_of(self, group: str) -> tuple[Shape, ...]:
        """Return the shapes under which pods with these labels join a group: as leaders, others, or both."""
        leads = (self.leader_shape,) if self.leader_group == group else ()
        return (*leads, self.shape) if self.group == group else leads

    def instance(self, job_index: int | str, completion_index: int) -> GroupInstance:
        """Return the group instance of one pod."""
        if self.leader_group and completion_index == 0:
            return GroupInstance(self.leader_group, self.leader_shape.suffix(job_index, 0))
        return GroupInstance(self.group, self.shape.suffix(job_index, completion_index))


def read_group_labels(labels: Mapping[str, str]) -> GroupLabels | None:
    """Return the group labels of a pod template; None if absent, invalid, `none`, or beside MIN_COUNT."""
    group = labels.get(GROUP, "")
    leader = labels.get(LEADER_GROUP, "")
    if group == OPTED_OUT or MIN_COUNT in labels or not _DNS_LABEL.fullmatch(group):
        return None
    if LEADER_GROUP in labels and not _DNS_LABEL.fullmatch(leader):
        return None
    leader_shape = Shape(per_job=bool(leader) and labels.get(LEADER_GROUP_PER) == PER_JOB)
    return GroupLabels(group, _shape(labels), leader, leader_shape)


def stamped_name(labels: Mapping[str, str]) -> str:
    """Return the PodGroup that stamp-pods sets on a pod with these labels; "" if it skips the pod."""
    group_labels, owner = read_group_labels(labels), _naming_owner(labels)
    if group_labels is None or owner is None:
        return ""
    group, suffix = group_labels.instance(_index_text(labels, JOB_INDEX), completion_index(labels))
    return pod_group_name(owner[0], group, owner[1], suffix)


def completion_index(labels: Mapping[str, str]) -> int:
    """Return the completion index of a pod; 0 if it has none or an invalid one."""
    return int(_index_text(labels, COMPLETION_INDEX))


def job_index(labels: Mapping[str, str]) -> int:
    """Return the job index in the labels of a Job or pod; 0 if it is missing or invalid."""
    return int(_index_text(labels, JOB_INDEX))


def is_musters(labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels was made by Muster."""
    return labels.get(MANAGED_BY) == MUSTER and OWNER_UID in labels


def is_gathered(labels: Mapping[str, str]) -> bool:
    """Whether a PodGroup with these labels was made by gather_pods."""
    return labels.get(MANAGED_BY) == MUSTER and GANG in labels


def belongs_to(labels: Mapping[str, str], owner_uid: str) -> bool:
    """Whether Muster made an object with these labels for the owner of that UID."""
    return is_musters(labels) and labels.get(OWNER_UID) == owner_uid


def _shape(labels: Mapping[str, str]) -> Shape:
    """Return the shape by GROUP_PER and GROUP_SIZE; `job` does without a size, `job-block` needs one."""
    per, size = labels.get(GROUP_PER), labels.get(GROUP_SIZE, "")
    if per == PER_JOB:
        return Shape(per_job=True)
    return Shape(per == PER_BLOCK_OF_JOB, int(size)) if _SIZE.fullmatch(size) else SINGLE


def _numbers(shape: Shape, suffix: str) -> tuple[int, int]:
    """Return the job index and the block in an instance suffix of a shape; 0 for what is not in it."""
    numbers = [int(number) for number in suffix.split("-")[1:] if number.isdigit()]
    expected = shape.per_job + bool(shape.size)
    if len(numbers) != expected:
        return 0, 0
    return numbers[0] if shape.per_job else 0, numbers[-1] if shape.size else 0


def _naming_owner(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Return name and UID of the JobSet or Job in the name of a pod's group; None if a label is invalid."""
    name, uid = (JOBSET_NAME, JOBSET_UID) if JOBSET_UID in labels else (JOB_NAME, JOB_UID)
    if not _SUBDOMAIN.fullmatch(labels.get(name, "")) or not _UID_HEAD.match(labels.get(uid, "")):
        return None
    return labels[name], labels[uid]


def _index_text(labels: Mapping[str, str], key: str) -> str:
    text = labels.get(key, "")
    return text if _INDEX.fullmatch(text) else "0"
