"""The interface of an owner kind: the properties of TrainJob, JobSet and Job that Muster depends on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pydantic import Field

from muster.objects.meta import LONGEST_NAME, KubernetesObject, ObjectRef, View, is_true
from muster.objects.pods import Conditions, PodTemplate
from muster.objects.resources import Resource
from muster.objects.scheduling import PriorityClass
from muster.policy.group_labels import GroupLabels, pod_group_name
from muster.policy.model import NoOp
from muster.policy.reasons import Reason

_DEFAULT = "PreemptLowerPriority"
NEVER = "Never"


@dataclass(frozen=True)
class Priority:
    """The priority that pods of a template will have, compared as the scheduler compares it.

    Pods of one group need one value and one preemptionPolicy, not one class name (validatePodGroup in
    pkg/scheduler/schedule_one_podgroup.go, Kubernetes v1.37.1).
    """

    name: str = field(compare=False)
    """The PriorityClass in the template; "" if it has none."""
    rank: tuple[int, str] | str
    """Value and preemptionPolicy of the class; its name if the class is missing or was not read."""

    @property
    def preemption_policy(self) -> str:
        """The preemptionPolicy of the class; "" if the class is missing or was not read."""
        return "" if isinstance(self.rank, str) else self.rank[1]

    def __str__(self) -> str:
        """The name, with the value in parentheses if it was read."""
        name = self.name or "none"
        if isinstance(self.rank, str):
            return name
        value, preemption = self.rank
        return f"{name} ({value})" if preemption == _DEFAULT else f"{name} ({value}, {preemption})"


def priority_of(name: str, classes: Collection[PriorityClass]) -> Priority:
    """Return the priority of pods whose template has that priorityClassName; no `classes` if none were read.

    "" takes the default class, without which pods have priority 0; so does a name that no class can have.
    """
    name = name if len(name) <= LONGEST_NAME else ""
    ranks = {entry.metadata.name: (entry.value, entry.preemption_policy) for entry in classes}
    if ranks and not name:
        defaults = [ranks[entry.metadata.name] for entry in classes if entry.global_default]
        # The API refuses a second default; of two created at once the lower counts (admission/priority).
        return Priority(name, min(defaults, default=(0, _DEFAULT)))
    return Priority(name, ranks.get(name, name))


class OwnerSpec(View):
    """The fields that the specs of all owner kinds have."""

    suspend: bool = False
    managed_by: str = ""
    scheduling: dict[str, Any] | None = None


class OwnerStatus(View):
    """The fields that the statuses of all owner kinds have."""

    conditions: Conditions = ()


class OwnerObject(KubernetesObject):
    """An object of an owner kind: a TrainJob, JobSet or Job."""

    terminal_conditions: ClassVar[tuple[str, ...]] = ("Complete", "Failed")

    spec: OwnerSpec = Field(default_factory=OwnerSpec)
    status: OwnerStatus = Field(default_factory=OwnerStatus)

    @property
    def finished(self) -> bool:
        """Whether it is complete or failed."""
        return is_true(self.status.conditions, *self.terminal_conditions)

    @property
    def has_original_size(self) -> bool:
        """Whether as many pods are still to run as at its creation, by its own fields alone."""
        return False

    @property
    def unmarked(self) -> bool:
        """Whether a pod template of it has no group label, though nobody else groups its pods."""
        return False


@dataclass(frozen=True)
class PodSet:
    """One pod template of an owner and the pods created from it.

    Attributes:
        path: the field path of the template in the JobSet or Job, for messages.
        replicated_job: the name of the replicatedJob; "" in a plain Job.
        jobs: the number of Jobs created from it.
        parallelism: pods of one Job that run at once.
        completions: completion indexes of one Job, or pods in all of a NonIndexed one; None if unset.
        labels: the group labels its pods will carry; None if Muster does not group them, by `ungrouped`.
        initializer: whether its pods only prepare data or a model for the others.
        exclusive: whether JobSet's webhook refuses all pods of a Job but index 0 until that one is bound.
        index: its place among the owner's pod templates.
        waits_for: replicatedJobs that must be ready or complete before its Jobs exist, as bits by index.
        must_complete: those of them that must be complete, whose pods have ended by then.
        survives: how many evicted pods each of its Jobs survives; None if any number.
    """

    path: str
    replicated_job: str
    jobs: int
    template: PodTemplate
    parallelism: int
    completions: int | None
    indexed: bool
    labels: GroupLabels | None
    ungrouped: Reason | None
    priority: Priority
    initializer: bool = False
    exclusive: bool = False
    index: int = 0
    waits_for: int = 0
    must_complete: int = 0
    survives: int | None = None

    @property
    def completion_indexes(self) -> int:
        """The number of completion indexes of each Job, or of pods of a work queue."""
        return self.parallelism if self.completions is None else self.completions


@dataclass(frozen=True)
class OwnerPodSets:
    """The pod sets of an owner, and the JobSet or Job after which their groups are named."""

    named_by: ObjectRef
    workload_name: str
    pod_sets: tuple[PodSet, ...]

    def pod_group_name(self, group: str, suffix: str) -> str:
        """Return the name of one PodGroup of the owner."""
        return pod_group_name(self.named_by.name, group, self.named_by.uid, suffix)

    def with_classes(self, classes: Collection[PriorityClass]) -> OwnerPodSets:
        """Return the same pod sets with the priorities of these PriorityClasses."""
        if not classes:
            return self
        sets = (replace(pods, priority=priority_of(pods.priority.name, classes)) for pods in self.pod_sets)
        return replace(self, pod_sets=tuple(sets))


@dataclass(frozen=True)
class OwnerKind:
    """A kind of owner.

    Attributes:
        controller: the value of `spec.managedBy` under which its own controller runs it.
        runs_as: the kind of the object of the same name that creates its Jobs; None if that is the owner.
        makes: the kind of the objects that it creates from its pod sets; None if it creates pods.
        pod_sets: returns the pod templates of an object without `runs_as`; the second argument has the groups
            of its Jobs, by replicatedJob, for templates without a group label.
        pod_label: the label that carries the object's name on its pods, and on its Jobs.
        is_job: whether the object is the Job itself, whose stored pod template has its final labels.
        runtime: returns the TrainingRuntime or ClusterTrainingRuntime that an object names.
        skip_event: returns why an event can be skipped by the object's fields alone.
        condition_prefix: the prefix of the types of Muster's conditions.
        shows_last_condition: whether `kubectl get` prints the type of its last condition as its state.
    """

    resource: Resource
    view: type[OwnerObject]
    controller: str
    runs_as: Resource | None = None
    makes: Resource | None = None
    pod_sets: Callable[[Any, Mapping[str, str]], tuple[PodSet, ...]] = lambda _owner, _groups: ()
    pod_label: str = ""
    is_job: bool = False
    runtime: Callable[[Any], ObjectRef | None] = lambda _owner: None
    skip_event: Callable[[Any], NoOp | None] = lambda _owner: None
    workload_name: Callable[[ObjectRef], str] = lambda owner: owner.name
    condition_prefix: str = ""
    shows_last_condition: bool = False
