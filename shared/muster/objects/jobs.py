"""Views of Pods, Jobs, JobSets, TrainJobs and Namespaces."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from muster.objects.meta import KubernetesObject, ObjectMeta, View, became_true_at, is_true

JOB_CONTROLLER = "kubernetes.io/job-controller"
JOBSET_CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"
TRAINJOB_CONTROLLER = "trainer.kubeflow.org/trainjob-controller"

Conditions = tuple[dict[str, Any], ...]
"""Raw on purpose: a status write sends other people's conditions back exactly as they were."""


class Namespace(KubernetesObject):
    """A Namespace, for its labels and whether it is being deleted."""


class SchedulingGate(View):
    """One entry of a pod's `schedulingGates`."""

    name: str = ""


class SchedulingGroup(View):
    """`spec.schedulingGroup` of a pod (core/v1, Kubernetes v1.36 and later)."""

    pod_group_name: str = ""


class PodSpec(View):
    """What decides whether, where and with whom a pod may be placed."""

    scheduler_name: str = "default-scheduler"
    priority_class_name: str = ""
    priority: int = 0
    preemption_policy: str = ""
    node_name: str = ""
    scheduling_group: SchedulingGroup | None = None
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    eviction_responders: tuple[dict[str, Any], ...] | None = None


class PodStatus(View):
    """The phase of a pod and its conditions."""

    phase: str = "Pending"
    conditions: Conditions = ()


class Pod(KubernetesObject):
    """A Pod."""

    spec: PodSpec = Field(default_factory=PodSpec)
    status: PodStatus = Field(default_factory=PodStatus)

    @property
    def pod_group_name(self) -> str:
        """The PodGroup it was stamped with at birth; "" when it has none."""
        return self.spec.scheduling_group.pod_group_name if self.spec.scheduling_group else ""

    @property
    def gates(self) -> frozenset[str]:
        """The names of the scheduling gates that still hold it."""
        return frozenset(gate.name for gate in self.spec.scheduling_gates)

    @property
    def finished(self) -> bool:
        """Whether it will never run again; the scheduler no longer counts it."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def bound(self) -> bool:
        """Whether a node was chosen."""
        return bool(self.spec.node_name)

    @property
    def bound_at(self) -> datetime | None:
        """When a node was chosen; None while there is none, or where nobody said when."""
        return became_true_at(self.status.conditions, "PodScheduled") if self.bound else None


class PodTemplate(View):
    """A pod template: what a controller stamps pods out of."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PodSpec = Field(default_factory=PodSpec)


class JobSpec(View):
    """The spec of a Job, also as a JobSet's template carries it."""

    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    managed_by: str = JOB_CONTROLLER
    scheduling: dict[str, Any] | None = None
    template: PodTemplate = Field(default_factory=PodTemplate)

    @property
    def indexed(self) -> bool:
        """Whether each pod has a completion index."""
        return self.completion_mode == "Indexed"


class JobStatus(View):
    """Counts and index lists of a Job; an index list reads `0,3-5`."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    failed_indexes: str = ""
    conditions: Conditions = ()


class Job(KubernetesObject):
    """A Job."""

    spec: JobSpec = Field(default_factory=JobSpec)
    status: JobStatus = Field(default_factory=JobStatus)

    @property
    def finished(self) -> bool:
        """Whether it is Complete or Failed."""
        return is_true(self.status.conditions, "Complete", "Failed")

    @property
    def failed(self) -> bool:
        """Whether it is Failed."""
        return is_true(self.status.conditions, "Failed")


class JobTemplate(View):
    """`replicatedJobs[].template` of a JobSet."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: JobSpec = Field(default_factory=JobSpec)


class DependsOn(View):
    """A replicatedJob that must be `Ready` or `Complete` before another one exists."""

    name: str
    status: str = "Complete"


class ReplicatedJob(View):
    """One entry of a JobSet's `replicatedJobs`."""

    name: str
    replicas: int = 1
    template: JobTemplate = Field(default_factory=JobTemplate)
    depends_on: tuple[DependsOn, ...] = ()


class StartupPolicy(View):
    """`AnyOrder`, or `InOrder`: one replicatedJob after another."""

    startup_policy_order: str = "AnyOrder"


class JobSetSpec(View):
    """The spec of a JobSet (jobset.x-k8s.io/v1alpha2, v0.12.0)."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: StartupPolicy = Field(default_factory=StartupPolicy)
    suspend: bool = False
    managed_by: str = JOBSET_CONTROLLER
    scheduling: dict[str, Any] | None = None


class JobSetStatus(View):
    """What tells of a JobSet's end and restarts."""

    restarts: int = 0
    conditions: Conditions = ()


class JobSet(KubernetesObject):
    """A JobSet."""

    spec: JobSetSpec = Field(default_factory=JobSetSpec)
    status: JobSetStatus = Field(default_factory=JobSetStatus)

    @property
    def finished(self) -> bool:
        """Whether it is Completed or Failed."""
        return is_true(self.status.conditions, "Completed", "Failed")


class RuntimeRef(View):
    """The runtime of a TrainJob."""

    name: str = ""
    kind: str = "ClusterTrainingRuntime"


class TrainJobSpec(View):
    """The spec of a TrainJob (trainer.kubeflow.org/v1alpha1, v2.3.0; `scheduling` comes with KEP-3015)."""

    runtime_ref: RuntimeRef = Field(default_factory=RuntimeRef)
    suspend: bool = False
    managed_by: str = TRAINJOB_CONTROLLER
    scheduling: dict[str, Any] | None = None


class TrainJobStatus(View):
    """The conditions of a TrainJob."""

    conditions: Conditions = ()


class TrainJob(KubernetesObject):
    """A TrainJob."""

    spec: TrainJobSpec = Field(default_factory=TrainJobSpec)
    status: TrainJobStatus = Field(default_factory=TrainJobStatus)

    @property
    def finished(self) -> bool:
        """Whether it is Complete or Failed."""
        return is_true(self.status.conditions, "Complete", "Failed")
