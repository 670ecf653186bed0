"""Views of Pods, pod templates and Namespaces."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from muster.objects.meta import KubernetesObject, ObjectMeta, View, turned_at

Conditions = tuple[dict[str, Any], ...]
"""All conditions as parsed JSON, because a status write has to repeat those of other writers unchanged."""


class Namespace(KubernetesObject):
    """A Namespace."""


class SchedulingGate(View):
    """One entry of a pod's `schedulingGates`."""

    name: str = ""


class SchedulingGroup(View):
    """`spec.schedulingGroup` of a pod (core/v1, Kubernetes v1.36 and later)."""

    pod_group_name: str = ""


class PodSpec(View):
    """The fields of a pod's spec that matter for scheduling."""

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
        """The PodGroup that its schedulingGroup names; "" if it has none."""
        return self.spec.scheduling_group.pod_group_name if self.spec.scheduling_group else ""

    @property
    def gates(self) -> frozenset[str]:
        """The names of its scheduling gates."""
        return frozenset(gate.name for gate in self.spec.scheduling_gates)

    @property
    def finished(self) -> bool:
        """Whether it has ended; the scheduler no longer counts it."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def bound(self) -> bool:
        """Whether it has a node."""
        return bool(self.spec.node_name)

    @property
    def bound_at(self) -> datetime | None:
        """When it was bound to a node; None if it is not, or if the time is unknown."""
        return turned_at(self.status.conditions, "PodScheduled", "True") if self.bound else None

    @property
    def refused_at(self) -> datetime | None:
        """When the scheduler first refused it; None if it did not, or if the time is unknown."""
        return turned_at(self.status.conditions, "PodScheduled", "False")


def to_run(pod: Pod) -> bool:
    """Whether a pod has not ended and is not being deleted."""
    return not (pod.finished or pod.being_deleted)


class PodTemplate(View):
    """A pod template."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PodSpec = Field(default_factory=PodSpec)
