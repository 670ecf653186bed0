"""The simulated Trainer (kubeflow/trainer v2.3.0, pkg/controller/trainjob_controller.go, pkg/runtime/core).

What it makes of a TrainJob and its runtime is in `trainer_jobset`. Left out: the webhooks' refusals, the MPI
plugin's Secret and hostfile, the Flux plugin's ConfigMap and Secret, and pod groups of other schedulers.
"""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from muster.cluster.port import Object
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    JOBSETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    Resource,
)
from muster.simulator.controllers.fields import (
    condition,
    controller_of,
    controller_reference,
    is_deleting,
    is_true,
    key_of,
    seconds,
    with_condition,
    without_condition,
)
from muster.simulator.controllers.loop import Key, Wake
from muster.simulator.controllers.store import View
from muster.simulator.controllers.trainer_jobset import UnknownNumNodes, build_jobset
from muster.simulator.controllers.writes import Apply, Delete, Record, Result, Write, status_patch
from muster.yaml_files import SafeDumper, load

MANAGER = "trainer"
MANAGED_BY = "trainer.kubeflow.org/trainjob-controller"
SNAPSHOT_SUFFIX = "-runtime-snapshot"
RETRY = 0.5
"""Seconds until a TrainJob whose objects could not be built is looked at again."""
ENDINGS = {"Completed": "Complete", "Failed": "Failed"}
"""The JobSet's conditions and what the TrainJob calls them."""
RUNTIMES = {"TrainingRuntime": TRAINING_RUNTIMES, "ClusterTrainingRuntime": CLUSTER_TRAINING_RUNTIMES}


class TrainerController:
    """Turns a TrainJob into a JobSet once, keeps the runtime it used, and copies the JobSet's end."""

    name = "trainer"
    watches = (TRAINJOBS, JOBSETS, CONFIGMAPS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)

    def wakes(self, resource: Resource, item: Object) -> Iterable[Wake]:
        """A TrainJob, and the TrainJob of a JobSet; a runtime's change wakes nobody."""
        if resource == TRAINJOBS:
            yield Wake(key_of(item))
        owner = controller_of(item)
        if resource in (JOBSETS, CONFIGMAPS) and owner and owner["kind"] == "TrainJob":
            yield Wake((item["metadata"]["namespace"], owner["name"]))

    def reconcile(self, key: Key, view: View, now: float) -> Result:
        """One look at a TrainJob."""
        namespace, name = key
        trainjob = view.get(TRAINJOBS, namespace, name)
        if trainjob is None or is_deleting(trainjob):
            return Result()
        if trainjob["spec"].get("managedBy") not in (None, MANAGED_BY):
            return Result()
        jobset = view.get(JOBSETS, namespace, name)
        objects: tuple[Write, ...] = ()
        complaint = ""
        if not is_finished(trainjob):
            try:
                objects = build_objects(trainjob, jobset, _runtime(trainjob, view), _snapshot(trainjob, view))
            except (LookupError, UnknownNumNodes) as error:
                complaint = f"TrainJob resources reconciliation failed: {error}"
        return _finish_look(trainjob, jobset, objects, complaint, now)


def _finish_look(
    trainjob: Object, jobset: Object | None, objects: tuple[Write, ...], complaint: str, now: float
) -> Result:
    status = next_status(trainjob, jobset, now)
    left = _deadline_left(trainjob, status, now)
    writes: tuple[Write, ...] = objects
    if complaint:
        writes += (Record(trainjob, "Warning", "TrainJobResourcesCreationFailed", complaint, MANAGER),)
    if left is not None and left <= 0:
        failed = {
            "type": "Failed",
            "status": "True",
            "reason": "DeadlineExceeded",
            "message": "TrainJob exceeded its active deadline",
        }
        status["conditions"] = with_condition(status.get("conditions"), failed, now)
        if jobset:
            namespace, name = key_of(jobset)
            writes += (Delete(JOBSETS, name, namespace, jobset["metadata"]["uid"]),)
        left = None
    # Unlocked, as upstream patches: a foreign condition written at the same moment can be lost.
    writes += status_patch(TRAINJOBS, trainjob, status, MANAGER, locked=False)
    return Result(writes, RETRY if complaint else left)


def is_finished(trainjob: Object) -> bool:
    """Whether the TrainJob is over; a Failed that another reason than the deadline set counts again."""
    conditions = (trainjob.get("status") or {}).get("conditions")
    failed = condition(conditions, "Failed")
    late = failed is not None and failed["reason"] == "DeadlineExceeded" and failed["status"] == "True"
    return is_true(conditions, "Complete") or late


def build_objects(
    trainjob: Object, jobset: Object | None, runtime: Object | None, snapshot: Object | None
) -> tuple[Write, ...]:
    """The snapshot if there is none, and the JobSet unless it runs (NewObjects, the JobSet plugin's Build).

    Args:
        trainjob: as stored.
        jobset: the JobSet of the TrainJob's name, if there is one.
        runtime: the runtime it names, if that exists.
        snapshot: the runtime as it was when the TrainJob was first looked at.

    Raises:
        LookupError: neither snapshot nor runtime, or a snapshot that is another TrainJob's.
    """
    reference = trainjob["spec"]["runtimeRef"]
    writes: list[Write] = []
    used = load(snapshot["data"]["runtime"]) if snapshot else runtime
    if snapshot and (controller_of(snapshot) or {}).get("uid") != trainjob["metadata"]["uid"]:
        raise LookupError(
            "invalid runtime snapshot: a snapshot configmap exists but is owned by another object"
        )
    if used is None:
        kind = reference.get("kind", "ClusterTrainingRuntime")
        raise LookupError(f"not found {kind} specified in TrainJob: {reference['name']}")
    if snapshot is None:
        writes.append(_apply(CONFIGMAPS, _snapshot_of(trainjob, used), trainjob))
    if jobset and not trainjob["spec"].get("suspend") and not jobset["spec"].get("suspend"):
        return tuple(writes)
    built = build_jobset(trainjob, used["spec"])
    if jobset is None or not _applied(jobset, built):
        writes.append(_apply(JOBSETS, built, trainjob))
    return tuple(writes)


def next_status(trainjob: Object, jobset: Object | None, now: float) -> Object:
    """The status: Suspended as the spec says, the JobSet's end, and its counts of Jobs."""
    status: Object = dict(trainjob.get("status") or {})
    conditions = list(status.get("conditions") or [])
    if not is_finished(trainjob):
        conditions = without_condition(conditions, "Failed")
    if trainjob["spec"].get("suspend"):
        conditions = with_condition(conditions, _suspended("True", "Suspended", "suspended"), now)
    elif is_true(conditions, "Suspended"):
        conditions = with_condition(conditions, _suspended("False", "Resumed", "resumed"), now)
    if jobset:
        theirs: Object = jobset.get("status") or {}
        for kind, ours in ENDINGS.items():
            found = condition(theirs.get("conditions"), kind)
            if found and found["status"] == "True":
                conditions = with_condition(conditions, {**found, "type": ours}, now)
        names = ("name", "ready", "succeeded", "failed", "active", "suspended")
        counts = theirs.get("replicatedJobsStatus") or []
        status["jobsStatus"] = [{name: entry.get(name, 0) for name in names} for entry in counts]
    status["conditions"] = conditions
    return {name: value for name, value in status.items() if value}


def _suspended(status: str, reason: str, word: str) -> Object:
    return {"type": "Suspended", "status": status, "reason": reason, "message": f"TrainJob is {word}"}


def _deadline_left(trainjob: Object, status: Object, now: float) -> float | None:
    """Seconds until activeDeadlineSeconds, counted from creation or from the last resume."""
    allowed = trainjob["spec"].get("activeDeadlineSeconds")
    over = any(is_true(status.get("conditions"), kind) for kind in ENDINGS.values())
    if not allowed or over or trainjob["spec"].get("suspend"):
        return None
    since = trainjob["metadata"]["creationTimestamp"]
    resumed = condition(status.get("conditions"), "Suspended")
    if resumed and resumed["status"] == "False":
        since = resumed["lastTransitionTime"]
    return seconds(since) + float(allowed) - now


def _runtime(trainjob: Object, view: View) -> Object | None:
    reference = trainjob["spec"]["runtimeRef"]
    resource = RUNTIMES[reference.get("kind", "ClusterTrainingRuntime")]
    namespace = trainjob["metadata"]["namespace"] if resource.namespaced else ""
    return view.get(resource, namespace, reference["name"])


def _snapshot(trainjob: Object, view: View) -> Object | None:
    namespace, name = key_of(trainjob)
    return view.get(CONFIGMAPS, namespace, name + SNAPSHOT_SUFFIX)


def _snapshot_of(trainjob: Object, runtime: Object) -> Object:
    namespace, name = key_of(trainjob)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name + SNAPSHOT_SUFFIX,
            "namespace": namespace,
            "ownerReferences": [controller_reference(trainjob)],
        },
        "data": {"runtime": yaml.dump(runtime, Dumper=SafeDumper)},
    }


def _apply(resource: Resource, body: Object, trainjob: Object) -> Apply:
    return Apply(resource, body, MANAGER, failure="TrainJobResourcesCreationFailed", owner=trainjob)


def _applied(stored: Object, wanted: Object) -> bool:
    """Whether applying would change nothing; spares a request per look at a suspended TrainJob."""
    labels = ("labels", "annotations")
    return _covers(stored["spec"], wanted["spec"]) and all(
        _covers(stored["metadata"].get(name) or {}, wanted["metadata"].get(name) or {}) for name in labels
    )


def _covers(stored: object, wanted: object) -> bool:
    if isinstance(wanted, dict) and isinstance(stored, dict):
        return all(name in stored and _covers(stored[name], value) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(stored, list):
        return len(stored) == len(wanted) and all(map(_covers, stored, wanted))
    return stored == wanted
