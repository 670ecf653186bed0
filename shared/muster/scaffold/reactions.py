"""The events that a new step can react to, each with a recorded one for its test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.objects.resources import JOBS, POD_GROUPS, PODS, TRAINJOBS, WORKLOADS, Resource


@dataclass(frozen=True)
class EventKind:
    """An event that a new step reacts to.

    Attributes:
        summary: one line for the list of the command.
        resource: of the object that the event is about.
        constant: the public name of the resource, `POD_GROUPS`.
        view: the public name of the view of its objects.
        change: `add` or `update`.
        not_ready: when the step does nothing, as Python about `found`; "" if it always acts.
        recording: the recording with such an event.
        moment: the moment of the recording at which the step acts.
        labels: the selector of the step's own source and of its sweeps; "" where Muster's sources send the
            kind.
    """

    summary: str
    resource: Resource
    constant: str
    view: str
    change: str
    not_ready: str
    recording: str
    moment: str
    labels: str = ""

    @property
    def event(self) -> str:
        """Kind and change, `PodGroup update`."""
        return f"{self.resource.kind} {self.change}"


_POD_GROUP = (POD_GROUPS, "POD_GROUPS", "PodGroup")
_JOB = (JOBS, "JOBS", "KubernetesObject")
_TRAINJOB = (TRAINJOBS, "TRAINJOBS", "KubernetesObject")
_WORKLOAD = (WORKLOADS, "WORKLOADS", "Workload")
_POD = (PODS, "PODS", "Pod")

REACTIONS: Mapping[str, EventKind] = {
    "podgroup-created": EventKind(
        "a PodGroup was created", *_POD_GROUP, "add", "", "torch", "before patch_pods"
    ),
    "podgroup-bound": EventKind(
        "the scheduler has placed a PodGroup", *_POD_GROUP, "update", "not found.placed", "torch", "all bound"
    ),
    "podgroup-waiting": EventKind(
        "the scheduler has no room for a PodGroup",
        *_POD_GROUP,
        "update",
        "found.refused_at is None",
        "does-not-fit",
        "unschedulable",
    ),
    "workload-created": EventKind(
        "a Workload was created", *_WORKLOAD, "add", "", "torch", "before create_pod_groups"
    ),
    "pod-bound": EventKind(
        "a pod with a group label has a node",
        *_POD,
        "update",
        "not found.bound",
        "torch",
        "all bound",
        labels="muster.dev/group",
    ),
    "job-created": EventKind("a Job was created", *_JOB, "add", "", "job-scaled", "before create_workload"),
    "trainjob-created": EventKind(
        "a TrainJob was created", *_TRAINJOB, "add", "", "torch", "before create_workload"
    ),
}
"""By the value of --on."""
