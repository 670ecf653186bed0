"""Jobs (batch/v1): alone, or as the children of a JobSet."""

from __future__ import annotations

from pydantic import AliasPath, Field

from muster.objects.meta import LONGEST_NAME, ObjectMeta, ObjectRef, View, is_true
from muster.objects.pods import Conditions, PodTemplate
from muster.objects.resources import JOBS
from muster.policy import group_labels
from muster.policy.group_labels import GroupLabels
from muster.policy.model import NoOp
from muster.policy.owners.kind import OwnerKind, OwnerObject, OwnerSpec, OwnerStatus, PodSet, priority_of
from muster.policy.reasons import Reason

CONTROLLER = "kubernetes.io/job-controller"
CONDITION_PREFIX = "muster.dev/"
"""Condition types of a Job are shared with every other controller, so Muster's carry a prefix."""

FAILURE_TARGET = "FailureTarget"
"""The condition of a Job that fails: its controller deletes the pods, and then writes Failed with the same
reason and message (pkg/controller/job/job_controller.go, Kubernetes v1.37.1)."""

_COSCHEDULING = "scheduling.x-k8s.io/pod-group"
_VOLCANO = "scheduling.k8s.io/group-name"
_FNV_OFFSET = 2166136261
_FNV_PRIME = 16777619
_SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class PodFailureRule(View):
    """One rule of a Job's podFailurePolicy."""

    action: str = ""
    on_pod_conditions: Conditions = ()


class JobSpec(OwnerSpec):
    """The spec of a Job, also as a JobSet's template carries it."""

    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    failure_rules: tuple[PodFailureRule, ...] = Field(
        (), validation_alias=AliasPath("podFailurePolicy", "rules")
    )
    managed_by: str = CONTROLLER
    template: PodTemplate = Field(default_factory=PodTemplate)

    @property
    def survives(self) -> int | None:
        """How many failed pods a Job survives if they are evicted; None if any number.

        The default is 6, with backoffLimitPerIndex none (pkg/apis/batch/v1/defaults.go, Kubernetes v1.37.1).
        """
        ignored = (rule.on_pod_conditions for rule in self.failure_rules if rule.action == "Ignore")
        if any(one.get("type") == "DisruptionTarget" for conditions in ignored for one in conditions):
            return None
        default = 6 if self.backoff_limit_per_index is None else None
        return default if self.backoff_limit is None else self.backoff_limit

    @property
    def indexed(self) -> bool:
        """Whether each pod has a completion index."""
        return self.completion_mode == "Indexed"


class JobStatus(OwnerStatus):
    """Counts and index lists of a Job; an index list reads `0,3-5`."""

    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    completed_indexes: str = ""
    failed_indexes: str = ""


class Job(OwnerObject):
    """A Job."""

    spec: JobSpec = Field(default_factory=JobSpec)
    status: JobStatus = Field(default_factory=JobStatus)

    @property
    def unmarked(self) -> bool:
        """Whether its pod template has no group label, though nobody else groups its pods."""
        return is_unmarked(self)

    @property
    def lost_pods(self) -> bool:
        """Whether it is to run, and pods of it failed or are being deleted."""
        return not self.spec.suspend and self.status.failed + self.status.terminating > 0

    @property
    def finished(self) -> bool:
        """Whether it is complete or failed, or it will be, once its last pods are gone."""
        return super().finished or self.failed or is_true(self.status.conditions, "SuccessCriteriaMet")

    @property
    def failed(self) -> bool:
        """Whether it is Failed, or fails."""
        return is_true(self.status.conditions, "Failed", FAILURE_TARGET)

    @property
    def restarted(self) -> bool:
        """Whether a restart of its JobSet, or of itself, made it."""
        return self.metadata.labels.get(group_labels.RESTART_ATTEMPT, "0") != "0"

    @property
    def has_original_size(self) -> bool:
        """Whether its spec was never changed, none of its pods has ended, and no restart made it."""
        status = self.status
        ended = status.succeeded + status.failed + status.terminating > 0
        indexes_ended = bool(status.completed_indexes or status.failed_indexes)
        return self.metadata.generation == 1 and not (ended or indexes_ended or self.restarted)


class JobTemplate(View):
    """`replicatedJobs[].template` of a JobSet."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: JobSpec = Field(default_factory=JobSpec)


def pod_set_of(
    job: Job | JobTemplate,
    path: str,
    replicated_job: str = "",
    jobs: int = 1,
    group_of_jobs: str | None = None,
) -> PodSet:
    """Return the pods of a Job, or of the Jobs made of a template."""
    labels, ungrouped = _labels_of_pods(job, group_of_jobs)
    spec = job.spec
    return PodSet(
        path,
        replicated_job,
        jobs,
        spec.template,
        max(0, spec.parallelism),  # JobSet's webhook takes negative numbers
        None if spec.completions is None else max(0, spec.completions),
        spec.indexed,
        labels,
        ungrouped,
        priority_of(spec.template.spec.priority_class_name, ()),
        survives=spec.survives,
    )


def is_unmarked(job: Job | JobTemplate) -> bool:
    """Whether a pod template has no group label, though nobody else groups its pods."""
    return group_labels.GROUP not in job.spec.template.metadata.labels and grouped_by_others(job) is None


def _labels_of_pods(
    job: Job | JobTemplate, group_of_jobs: str | None
) -> tuple[GroupLabels | None, Reason | None]:
    """Return the group labels of a Job's pods, or the reason if they have none."""
    labels = job.spec.template.metadata.labels
    if group_of_jobs is not None and is_unmarked(job):
        labels = {**labels, group_labels.GROUP: group_of_jobs}
    others = grouped_by_others(job)
    read = None if others else group_labels.read_group_labels(labels)
    return read, None if read else others or Reason.NOT_MARKED


def grouped_by_others(job: Job | JobTemplate) -> Reason | None:
    """Why the pods of a Job are not Muster's to group, whatever their group labels say, or None."""
    meta, spec = job.spec.template.metadata, job.spec.template.spec
    if spec.scheduling_group is not None:
        return Reason.BRING_YOUR_OWN_GROUP
    named = spec.scheduler_name in {"kai-scheduler", "volcano", "yunikorn"}
    if named or _COSCHEDULING in meta.labels or _VOLCANO in meta.annotations:
        return Reason.OTHER_SCHEDULER
    if spec.eviction_responders or spec.node_name or spec.priority_class_name.startswith("system-"):
        return Reason.CANNOT_BE_GROUPED
    upstream = job.spec.scheduling is not None or group_labels.UPSTREAM_TEMPLATE in job.metadata.annotations
    return Reason.UPSTREAM_GROUPS if upstream else None


def has_foreign_labels(pod_set: PodSet, owner: OwnerObject) -> bool:
    """Whether the template's labels, which stamp-pods reads, name another Job, JobSet or completion index.

    So if it was copied from another object, or its JobSet was deleted with `--cascade=orphan`.
    """
    labels, meta = pod_set.template.metadata.labels, owner.metadata
    if group_labels.COMPLETION_INDEX in labels and not pod_set.indexed:
        return True
    return isinstance(owner, Job) and (
        not labels.keys().isdisjoint((group_labels.JOBSET_UID, group_labels.JOB_INDEX))
        or labels.get(group_labels.JOB_UID, meta.uid) != meta.uid
        or labels.get(group_labels.JOB_NAME, meta.name) != meta.name
    )


def job_workload_name(job: ObjectRef) -> str:
    """Return the name that the Job controller gives to the Workload of a Job, so that each finds the other's.

    Source: computeWorkloadName in pkg/controller/job/job_scheduling_manager.go, Kubernetes v1.37.1.
    """
    fnv1a_32 = _FNV_OFFSET
    for byte in f"(types.UID){job.uid}".encode():
        fnv1a_32 = (fnv1a_32 ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    hashed = "".join(_SAFE_ALPHABET[ord(digit) % len(_SAFE_ALPHABET)] for digit in str(fnv1a_32))
    return f"{job.name[: LONGEST_NAME - len(hashed) - 1]}-{hashed}"


def _skip_event(job: Job) -> NoOp | None:
    """Return Jobs without group labels: mark-jobs, where it acts, writes them at the Job's creation."""
    if group_labels.read_group_labels(job.spec.template.metadata.labels) is not None:
        return None
    return NoOp(Reason.NOT_MARKED, f"{job.ref}: the pod template has no label {group_labels.GROUP}")


JOB = OwnerKind(
    resource=JOBS,
    view=Job,
    controller=CONTROLLER,
    pod_sets=lambda job, _groups: (pod_set_of(job, "spec.template"),),
    pod_label=group_labels.JOB_NAME,
    is_job=True,
    skip_event=_skip_event,
    workload_name=job_workload_name,
    condition_prefix=CONDITION_PREFIX,
)
