"""The pods of a Job: construction, completion indexes, finalizers, and which pods to delete first.

The rules are those of kubernetes v1.37.1: pkg/controller/job/job_controller.go (manageJob,
activePodsForRemoval), pkg/controller/job/indexed_job_utils.go, pkg/controller/controller_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.cluster.interface import Object
from muster.simulator.apiserver.objects import copied
from muster.simulator.controllers.fields import (
    annotations_of,
    condition,
    controller_reference,
    is_deleting,
    is_finished_pod,
    is_true,
    node_of,
    phase,
)

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
FINALIZER = "batch.kubernetes.io/job-tracking"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_PRIORITY = "jobset.sigs.k8s.io/priority"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_indexed(job: Object) -> bool:
    """Whether every pod has a completion index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: Object) -> int:
    """Return the completion index of a pod; -1 if unset."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() else -1


def is_valid(job: Object, pod: Object) -> bool:
    """Whether the pod counts; the pod of an Indexed Job needs an index below completions."""
    return not is_indexed(job) or 0 <= index_of(pod) < int(job["spec"]["completions"])


def parse_indexes(text: str, completions: int) -> set[int]:
    """Parse a text such as `0,3-5` into the indexes below `completions`."""
    indexes: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return {index for index in indexes if index < completions}


def format_indexes(indexes: Iterable[int]) -> str:
    """Format a set of indexes: runs of three or more as `first-last`, others separately."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(
        str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}"
        for first, last in runs
    )


def is_active(pod: Object) -> bool:
    """Whether the pod is neither finished nor being deleted."""
    return not is_finished_pod(pod) and not is_deleting(pod)


def has_failed(pod: Object) -> bool:
    """Whether the Job controller counts the pod as failed (isPodFailed)."""
    return phase(pod) == "Failed" or (is_deleting(pod) and phase(pod) != "Succeeded")


def is_ready(pod: Object) -> bool:
    """Whether the pod's condition Ready is True."""
    return is_true((pod.get("status") or {}).get("conditions"), "Ready")


def has_finalizer(pod: Object) -> bool:
    """Whether the pod has the tracking finalizer: it is not counted in the status yet."""
    return FINALIZER in (pod["metadata"].get("finalizers") or [])


def pods_to_delete(job: Object, active: list[Object], at_least: int) -> list[Object]:
    """Return the active pods to delete: duplicate and invalid indexes first, then the least advanced."""
    surplus: list[Object] = []
    rest = list(active)
    if is_indexed(job):
        kept: dict[int, Object] = {}
        for pod in _least_advanced_first(active):
            if is_valid(job, pod):
                surplus += [kept[index_of(pod)]] if index_of(pod) in kept else []
                kept[index_of(pod)] = pod
            else:
                surplus.append(pod)
        rest = list(kept.values())
    return surplus + _least_advanced_first(rest)[: max(0, at_least - len(surplus))]


def _least_advanced_first(pods: Iterable[Object]) -> list[Object]:
    newest_first = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), reverse=True)
    latest_ready_first = sorted(newest_first, key=_ready_since, reverse=True)
    return sorted(
        latest_ready_first, key=lambda pod: (bool(node_of(pod)), _PHASES.get(phase(pod), 1), is_ready(pod))
    )


def _ready_since(pod: Object) -> str:
    ready = condition((pod.get("status") or {}).get("conditions"), "Ready")
    return str(ready.get("lastTransitionTime") or "") if ready else ""


def new_pod(job: Object, index: int | None, priority: int) -> Object:
    """Return the pod to create for an index, or for a NonIndexed Job.

    JobSet's pod webhook sets the priority as a label, and the Job has the job-name and controller-uid labels.
    """
    template = copied(job["spec"]["template"])
    metadata = template.get("metadata") or {}
    labels, annotations = dict(metadata.get("labels") or {}), dict(metadata.get("annotations") or {})
    spec = template["spec"]
    name = generate = job["metadata"]["name"]
    if index is not None:
        annotations[COMPLETION_INDEX] = labels[COMPLETION_INDEX] = str(index)
        spec["hostname"] = generate = f"{name}-{index}"
        _add_index_variable(spec)
    if JOBSET_NAME in labels:
        labels[JOBSET_PRIORITY] = str(priority)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{generate}-",
            "namespace": job["metadata"]["namespace"],
            "labels": labels,
            "annotations": annotations,
            "finalizers": [*(metadata.get("finalizers") or []), FINALIZER],
            "ownerReferences": [controller_reference(job)],
        },
        "spec": spec,
    }


def _add_index_variable(spec: Object) -> None:
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        env = container.get("env") or []
        if all(entry["name"] != "JOB_COMPLETION_INDEX" for entry in env):
            container["env"] = [*env, {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]
