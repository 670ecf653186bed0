"""The pods of a Job: construction, finalizers, and which pods to delete first.

The rules are those of kubernetes v1.37.1: pkg/controller/job/job_controller.go (manageJob,
activePodsForRemoval), pkg/controller/controller_utils.go (ActivePods, GetPodFromTemplate).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from muster.cluster.interface import Object
from muster.simulator.controllers.framework.fields import (
    condition,
    controller_reference,
    is_deleting,
    is_finished_pod,
    is_true,
    node_of,
    phase,
)
from muster.simulator.controllers.job.indexes import COMPLETION_INDEX, index_of

FINALIZER = "batch.kubernetes.io/job-tracking"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_PRIORITY = "jobset.sigs.k8s.io/priority"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_indexed(job: Object) -> bool:
    """Whether every pod has a completion index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_active(pod: Object) -> bool:
    """Whether the pod is neither finished nor being deleted."""
    return not is_finished_pod(pod) and not is_deleting(pod)


def is_ready(pod: Object) -> bool:
    """Whether the pod's condition Ready is True."""
    return is_true((pod.get("status") or {}).get("conditions"), "Ready")


def has_finalizer(pod: Object) -> bool:
    """Whether the pod has the tracking finalizer: it is not counted in the status yet."""
    return FINALIZER in (pod["metadata"].get("finalizers") or [])


def by_index(pods: Iterable[Object]) -> list[Object]:
    """Return the pods sorted by index; pods without an index first."""
    return sorted(pods, key=_index_or_minus_one)


def pods_to_delete(job: Object, active: list[Object], at_least: int) -> list[Object]:
    """Return the active pods to delete: duplicate and invalid indexes first, then the least advanced."""
    surplus: list[Object] = []
    rest = list(active)
    if is_indexed(job):
        surplus, rest = _split_duplicates(active, int(job["spec"]["completions"]))
    missing = max(0, at_least - len(surplus))
    return surplus + _least_advanced_first(rest)[:missing]


def _split_duplicates(active: list[Object], completions: int) -> tuple[list[Object], list[Object]]:
    """Split into pods with a duplicate or invalid index, and the rest."""
    groups: dict[int, list[Object]] = {}
    for pod in by_index(active):
        groups.setdefault(_index_or_minus_one(pod), []).append(pod)
    surplus: list[Object] = []
    rest: list[Object] = []
    for index, pods in groups.items():
        if index < 0 or index >= completions:
            surplus += pods
            continue
        *duplicates, kept = _least_advanced_first(pods)
        surplus += duplicates
        rest.append(kept)
    return surplus, rest


def _least_advanced_first(pods: Iterable[Object]) -> list[Object]:
    newest_first = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), reverse=True)
    latest_ready_first = sorted(newest_first, key=_ready_since, reverse=True)
    return sorted(
        latest_ready_first, key=lambda pod: (bool(node_of(pod)), _PHASES.get(phase(pod), 1), is_ready(pod))
    )


def _ready_since(pod: Object) -> str:
    ready = condition((pod.get("status") or {}).get("conditions"), "Ready")
    return str(ready.get("lastTransitionTime") or "") if ready else ""


def _index_or_minus_one(pod: Object) -> int:
    index = index_of(pod)
    return -1 if index is None else index


def new_pod(job: Object, index: int | None, annotations: dict[str, str], priority: int) -> Object:
    """Return the pod to create for an index, or for a NonIndexed Job.

    Args:
        job: the Job as stored; its template has the job-name and controller-uid labels.
        index: completion index; None for a NonIndexed Job.
        annotations: annotations in addition to those of the template.
        priority: the value of the pod's PriorityClass; JobSet's pod webhook sets it as a label.
    """
    template = copy.deepcopy(job["spec"]["template"])
    metadata = template.get("metadata") or {}
    labels = dict(metadata.get("labels") or {})
    merged = {**(metadata.get("annotations") or {}), **annotations}
    spec = template["spec"]
    name = job["metadata"]["name"]
    generate = f"{name}-"
    if index is not None:
        merged[COMPLETION_INDEX] = labels[COMPLETION_INDEX] = str(index)
        spec["hostname"] = f"{name}-{index}"
        generate = f"{name}-{index}-"
        _add_index_variable(spec)
    if JOBSET_NAME in labels:
        labels[JOBSET_PRIORITY] = str(priority)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": generate,
            "namespace": job["metadata"]["namespace"],
            "labels": labels,
            "annotations": merged,
            "finalizers": [*(metadata.get("finalizers") or []), FINALIZER],
            "ownerReferences": [controller_reference(job)],
        },
        "spec": spec,
    }


def _add_index_variable(spec: Object) -> None:
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        names = {entry["name"] for entry in container.get("env") or []}
        if "JOB_COMPLETION_INDEX" not in names:
            entry = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
            container["env"] = [*(container.get("env") or []), entry]


def without_finalizer(pod: Object) -> Object:
    """Return the strategic merge patch that removes only the tracking finalizer from a pod."""
    uid = pod["metadata"]["uid"]
    return {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
