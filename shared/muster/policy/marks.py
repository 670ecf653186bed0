"""Marks and stamps: which group a pod belongs to, told from what it carries at birth.

This is the Python twin of the admission policies in eventing/admission. Those write marks and stamps in
the API server, where no event is fast enough; the planner and the embedded API server ask this module. The
same cases run through both (tests/contract), so a rule changed on one side only fails there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.policy.names import pod_group_name

GROUP = "muster.dev/group"
GROUP_PER = "muster.dev/group-per"
GROUP_SIZE = "muster.dev/group-size"
LEADER_GROUP = "muster.dev/leader-group"
GATE_SWITCH = "muster.dev/gate"
"""Annotation of a pod template; `off` means no gate, for gangs so huge that lifting gates takes too long."""

GATE = "muster.dev/pod-group"
"""The scheduling gate that keeps a pod visibly waiting until its PodGroup exists."""

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
"""Annotation by which the Job controller groups a Job itself (pkg/apis/scheduling, Kubernetes v1.37.1)."""

HIGHEST_PRIORITY = 1_000_000_000
"""The API refuses PodGroups of a higher priority (pkg/apis/scheduling/types.go, Kubernetes v1.37.1)."""

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


@dataclass(frozen=True)
class Mark:
    """What a pod template says about the groups of its pods.

    Attributes:
        group: the group of every pod but a leader.
        per_job: one PodGroup for each Job of a replicatedJob.
        size: one PodGroup for each block of that many completion indexes; 0 means no blocks.
        leader_group: the group of completion index 0; "" when it has none of its own.
    """

    group: str
    per_job: bool = False
    size: int = 0
    leader_group: str = ""

    @property
    def groups(self) -> tuple[str, ...]:
        """Every group that pods with this mark may be in."""
        return tuple(dict.fromkeys(filter(None, (self.leader_group, self.group))))

    def place(self, job_index: int | str, completion_index: int) -> tuple[str, str]:
        """The group and the name suffix of one pod: `("trainer", "-3")`."""
        if self.leader_group and completion_index == 0:
            return self.leader_group, ""
        if self.per_job:
            return self.group, f"-{job_index}"
        if self.size:
            return self.group, f"-{completion_index // self.size}"
        return self.group, ""


def read_mark(labels: Mapping[str, str]) -> Mark | None:
    """The mark on a pod template, or None: absent, `none`, or no DNS label."""
    group = labels.get(GROUP, "")
    leader = labels.get(LEADER_GROUP, "")
    if group == OPTED_OUT or not _DNS_LABEL.fullmatch(group):
        return None
    if LEADER_GROUP in labels and not _DNS_LABEL.fullmatch(leader):
        return None
    size = labels.get(GROUP_SIZE, "")
    return Mark(
        group,
        per_job=labels.get(GROUP_PER) == "job",
        size=int(size) if _SIZE.fullmatch(size) else 0,
        leader_group=leader,
    )


def stamp(pod: Mapping[str, Any]) -> dict[str, Any] | None:
    """What stamp-pods does to a pod at its creation.

    Args:
        pod: the pod as the admission stage sees it, defaults and priority filled in.

    Returns:
        `{"podGroupName": str, "gate": bool}`, or None where the policy leaves the pod alone.
    """
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    labels: Mapping[str, str] = metadata.get("labels") or {}
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    if not stamped_name(labels) or _grouped_or_evicted(spec):
        return None
    if (spec.get("priority") or 0) > HIGHEST_PRIORITY:
        return None
    if of_another_scheduler(labels, annotations, spec.get("schedulerName") or ""):
        return None
    return {"podGroupName": stamped_name(labels), "gate": annotations.get(GATE_SWITCH) != "off"}


def stamped_name(labels: Mapping[str, str]) -> str:
    """The PodGroup that stamp-pods names on a pod with these labels; "" where it would leave the pod alone.

    A pod that names another group was not stamped: the group is its user's own.
    """
    mark, owner = read_mark(labels), _named_by(labels)
    if mark is None or owner is None:
        return ""
    group, suffix = mark.place(_index_text(labels, JOB_INDEX), completion_index(labels))
    return pod_group_name(owner[0], group, owner[1], suffix)


def completion_index(labels: Mapping[str, str]) -> int:
    """The completion index on a pod; 0 where it has none that can be read."""
    return int(_index_text(labels, COMPLETION_INDEX))


def job_index(labels: Mapping[str, str]) -> int:
    """The index of a Job, or of a pod's Job, in its replicatedJob; 0 where it has none that can be read."""
    return int(_index_text(labels, JOB_INDEX))


def mark_for_job(job: Mapping[str, Any], namespace_labels: Mapping[str, str]) -> str | None:
    """The group that mark-jobs writes on the pod template of a Job at its creation, or None: left alone.

    Args:
        job: the Job as the admission stage sees it, defaults filled in.
        namespace_labels: labels of its namespace.
    """
    if namespace_labels.get(NAMESPACE_SWITCH) != "enabled":
        return None
    metadata, spec = job.get("metadata") or {}, job["spec"]
    template = spec["template"]
    if GROUP in _labels(template) or _left_alone(template) or spec.get("scheduling") is not None:
        return None
    if UPSTREAM_TEMPLATE in (metadata.get("annotations") or {}):
        return None
    job_labels: Mapping[str, str] = metadata.get("labels") or {}
    if JOBSET_UID in job_labels:
        return group_of_replicated_job(job_labels.get(REPLICATED_JOB, "main"), job_labels.get(ANCESTOR, ""))
    if any(owner.get("controller") for owner in metadata.get("ownerReferences") or []):
        return None
    return "main" if _is_gang_shaped(spec) else None


def scheduling_for_job(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """What schedule-jobs writes to `spec.scheduling` of a Job at its creation, or None: left alone.

    The API server keeps the field where the gate WorkloadWithJob is on: there the Job controller groups the
    Job, and this field is how Muster knows.

    Args:
        job: the Job as the admission stage sees it, defaults filled in and marked by mark-jobs.
    """
    metadata, spec = job.get("metadata") or {}, job["spec"]
    template = spec["template"]
    if read_mark(_labels(template)) is None or _left_alone(template) or spec.get("scheduling") is not None:
        return None
    if JOBSET_UID in (metadata.get("labels") or {}):
        return None
    if any(owner.get("controller") for owner in metadata.get("ownerReferences") or []):
        return None
    return {"schedulingPolicy": {"gang": {}} if _is_gang_shaped(spec) else {"basic": {}}}


def group_of_replicated_job(name: str, ancestor_step: str) -> str:
    """The group of a replicatedJob that nobody marked: its name, but the Trainer's `node` is `trainer`.

    An MPI runtime's `node` has no ancestor step and keeps its name beside the `launcher`.
    """
    return "trainer" if name == "node" and ancestor_step == "trainer" else name


def of_another_scheduler(
    labels: Mapping[str, str], annotations: Mapping[str, str], scheduler_name: str
) -> bool:
    """Whether KAI, Volcano or coscheduling groups the pods of a template with these fields."""
    return scheduler_name in _OTHER_SCHEDULERS or _COSCHEDULING in labels or _VOLCANO in annotations


def of_system_priority(priority_class_name: str) -> bool:
    """Whether pods of the class are too important for a PodGroup, which the API would refuse."""
    return priority_class_name.startswith("system-")


def _named_by(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Name and UID of the JobSet or Job that a pod's group is named after.

    A forged label that would make an invalid name is no name: admission must not fail a pod for it.
    """
    name, uid = (JOBSET_NAME, JOBSET_UID) if JOBSET_UID in labels else (JOB_NAME, JOB_UID)
    if not _SUBDOMAIN.fullmatch(labels.get(name, "")) or not _UID_HEAD.match(labels.get(uid, "")):
        return None
    return labels[name], labels[uid]


def _index_text(labels: Mapping[str, str], key: str) -> str:
    text = labels.get(key, "")
    return text if _INDEX.fullmatch(text) else "0"


def _labels(template: Mapping[str, Any]) -> Mapping[str, str]:
    return (template.get("metadata") or {}).get("labels") or {}


def _left_alone(template: Mapping[str, Any]) -> bool:
    spec = template.get("spec") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    return (
        _grouped_or_evicted(spec)
        or of_system_priority(spec.get("priorityClassName") or "")
        or of_another_scheduler(_labels(template), annotations, spec.get("schedulerName") or "")
    )


def _grouped_or_evicted(spec: Mapping[str, Any]) -> bool:
    """Whether a pod spec names a group already, or has what the API refuses beside one.

    An empty list is dropped by the API server before admission looks, an empty struct is not.
    """
    return spec.get("schedulingGroup") is not None or bool(spec.get(EVICTION_RESPONDERS))


def _is_gang_shaped(spec: Mapping[str, Any]) -> bool:
    """An Indexed Job whose pods are all meant to run at once."""
    parallelism = spec.get("parallelism") or 0
    return (
        spec.get("completionMode") == "Indexed" and parallelism > 1 and spec.get("completions") == parallelism
    )
