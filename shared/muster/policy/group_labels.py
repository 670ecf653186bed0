"""Group labels: the group that a pod belongs to, computed from the labels it is created with.

The admission policies in eventing/admission write these labels and the names of PodGroups in the API server,
because no event is fast enough for that; the embedded API server runs the same YAML. The planner needs the
same names, so this module computes them too; tests/contract compares both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

GROUP = "muster.dev/group"
GROUP_PER = "muster.dev/group-per"
GROUP_SIZE = "muster.dev/group-size"
LEADER_GROUP = "muster.dev/leader-group"
GATE_SWITCH = "muster.dev/gate"
"""Annotation of a pod template; `off` means no gate, for gangs so large that gates delay them."""

GATE = "muster.dev/pod-group"
"""The scheduling gate of stamped pods until their PodGroup exists."""

OPTED_OUT = "none"
NAMESPACE_SWITCH = "muster.dev/gang-jobs"
"""Label of a namespace; `enabled` lets mark-jobs act in it."""

JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX = "jobset.sigs.k8s.io/job-index"
JOB_NAME = "batch.kubernetes.io/job-name"
JOB_UID = "batch.kubernetes.io/controller-uid"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
UPSTREAM_TEMPLATE = "scheduling.k8s.io/group-template-name"
"""Annotation of pods that the Job controller groups (pkg/apis/scheduling, Kubernetes v1.37.1)."""

EVICTION_RESPONDERS = "evictionResponders"
"""Field of a pod's spec that the API refuses beside schedulingGroup (pkg/apis/core/validation, v1.37.1)."""

_OTHER_SCHEDULERS = ("kai-scheduler", "volcano")
_COSCHEDULING = "scheduling.x-k8s.io/pod-group"
_VOLCANO = "scheduling.k8s.io/group-name"
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_UID_HEAD = re.compile(r"[a-z0-9][-a-z0-9]{6}[a-z0-9]")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SIZE = re.compile(r"[1-9][0-9]{0,5}")
_INDEX = re.compile(r"[0-9]{1,9}")


UID_CHARACTERS = 8


class GroupInstance(NamedTuple):
    """One PodGroup of a group: `("trainer", "-3")`.

    Attributes:
        group: the group's name.
        suffix: the instance suffix in the PodGroup's name: `-<job index>`, `-<block>`, or "".
    """

    group: str
    suffix: str


def pod_group_name(owner: str, group: str, uid: str, suffix: str = "") -> str:
    """The name of a PodGroup, `<owner>-<group>-<uid8><suffix>`, as stamp-pods writes it on pods.

    Existing groups depend on this format, so it must not change.

    Args:
        owner: the name of the JobSet, or of the Job without a JobSet.
        group: the name of the group.
        uid: the UID of the same JobSet or Job; its first 8 characters distinguish rebuilt owners.
        suffix: the instance suffix.
    """
    return f"{owner}-{group}-{uid[:UID_CHARACTERS]}{suffix}"


@dataclass(frozen=True)
class GroupLabels:
    """The group labels of a pod template.

    Attributes:
        group: the group of every pod but a leader.
        per_job: one PodGroup for each Job of a replicatedJob.
        size: one PodGroup for each block of that many completion indexes; 0 means no blocks.
        leader_group: the group of completion index 0; "" if that is in the same group.
    """

    group: str
    per_job: bool = False
    size: int = 0
    leader_group: str = ""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that pods with these labels may be in."""
        return tuple(dict.fromkeys(filter(None, (self.leader_group, self.group))))

    def instance(self, job_index: int | str, completion_index: int) -> GroupInstance:
        """The group instance of one pod."""
        if self.leader_group and completion_index == 0:
            return GroupInstance(self.leader_group, "")
        if self.per_job:
            return GroupInstance(self.group, f"-{job_index}")
        if self.size:
            return GroupInstance(self.group, f"-{completion_index // self.size}")
        return GroupInstance(self.group, "")


def read_group_labels(labels: Mapping[str, str]) -> GroupLabels | None:
    """The group labels of a pod template; None if they are absent, `none`, or no DNS label."""
    group = labels.get(GROUP, "")
    leader = labels.get(LEADER_GROUP, "")
    if group == OPTED_OUT or not _DNS_LABEL.fullmatch(group):
        return None
    if LEADER_GROUP in labels and not _DNS_LABEL.fullmatch(leader):
        return None
    size = labels.get(GROUP_SIZE, "")
    return GroupLabels(
        group,
        per_job=labels.get(GROUP_PER) == "job",
        size=int(size) if _SIZE.fullmatch(size) else 0,
        leader_group=leader,
    )


def stamped_name(labels: Mapping[str, str]) -> str:
    """The PodGroup that stamp-pods sets on a pod with these labels; "" if it skips the pod.

    A pod with another PodGroup was not stamped: that group is the user's own.
    """
    group_labels, owner = read_group_labels(labels), _naming_owner(labels)
    if group_labels is None or owner is None:
        return ""
    group, suffix = group_labels.instance(_index_text(labels, JOB_INDEX), completion_index(labels))
    return pod_group_name(owner[0], group, owner[1], suffix)


def completion_index(labels: Mapping[str, str]) -> int:
    """The completion index of a pod; 0 if it has none or an invalid one."""
    return int(_index_text(labels, COMPLETION_INDEX))


def job_index(labels: Mapping[str, str]) -> int:
    """The index of a Job, or of a pod's Job, in its replicatedJob; 0 if it has none or an invalid one."""
    return int(_index_text(labels, JOB_INDEX))


def group_of_replicated_job(name: str, ancestor_step: str) -> str:
    """The default group of a replicatedJob: its name, but `trainer` for the Trainer's `node`.

    An MPI runtime's `node` has no ancestor step and keeps its name beside the `launcher`.
    """
    return "trainer" if name == "node" and ancestor_step == "trainer" else name


def of_another_scheduler(
    labels: Mapping[str, str], annotations: Mapping[str, str], scheduler_name: str
) -> bool:
    """Whether KAI, Volcano or coscheduling groups the pods of a template with these fields."""
    return scheduler_name in _OTHER_SCHEDULERS or _COSCHEDULING in labels or _VOLCANO in annotations


def of_system_priority(priority_class_name: str) -> bool:
    """Whether the class is a system-* class, for which the API refuses PodGroups."""
    return priority_class_name.startswith("system-")


def _naming_owner(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Name and UID of the JobSet or Job that is in the name of a pod's group; None if a label is invalid.

    Admission must not refuse a pod because of a forged label.
    """
    name, uid = (JOBSET_NAME, JOBSET_UID) if JOBSET_UID in labels else (JOB_NAME, JOB_UID)
    if not _SUBDOMAIN.fullmatch(labels.get(name, "")) or not _UID_HEAD.match(labels.get(uid, "")):
        return None
    return labels[name], labels[uid]


def _index_text(labels: Mapping[str, str], key: str) -> str:
    text = labels.get(key, "")
    return text if _INDEX.fullmatch(text) else "0"
