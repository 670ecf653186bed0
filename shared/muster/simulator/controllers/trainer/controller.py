"""The simulated Trainer (kubeflow/trainer v2.3.0, pkg/controller/trainjob_controller.go, pkg/runtime/core).

The JobSet is built in `jobset`. Not simulated: the validating webhooks, the MPI plugin's Secret and hostfile,
the Flux plugin's ConfigMap and Secret, deadlines, and the PodGroups of other schedulers.
"""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from muster.cluster.interface import Object
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    JOBSETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    Resource,
)
from muster.objects.yaml_files import SafeDumper, load
from muster.simulator.controllers.fields import (
    condition,
    controller_of,
    controller_reference,
    is_deleting,
    is_true,
    key_of,
    with_condition,
    without_condition,
)
from muster.simulator.controllers.loop import Cache, Key, ReconcileRequest
from muster.simulator.controllers.trainer.jobset import UnknownNumNodes, build_jobset
from muster.simulator.controllers.writes import Create, RecordEvent, Result, Write, status_patch

MANAGER = "trainer"
MANAGED_BY = "trainer.kubeflow.org/trainjob-controller"
SNAPSHOT_SUFFIX = "-runtime-snapshot"
RETRY = 0.5
"""Seconds until a TrainJob whose objects could not be built is synced again."""
FINAL_CONDITIONS = {"Completed": "Complete", "Failed": "Failed"}
"""The final conditions of a JobSet, and the TrainJob conditions they become."""
_SPEC_FIELDS = ("mlPolicy", "podGroupPolicy", "template")
_POD_GROUP_POLICY_FIELDS = ("coscheduling", "volcano")
"""The fields of TrainingRuntimeSpec and PodGroupPolicySource (pkg/apis/trainer/v1alpha1, Trainer v2.3.0)."""
RUNTIMES = {"TrainingRuntime": TRAINING_RUNTIMES, "ClusterTrainingRuntime": CLUSTER_TRAINING_RUNTIMES}


class TrainerController:
    """Creates the JobSet and the runtime snapshot of a TrainJob, and copies the JobSet's status."""

    name = "trainer"
    watches: tuple[Resource, ...] = (
        TRAINJOBS,
        JOBSETS,
        CONFIGMAPS,
        TRAINING_RUNTIMES,
        CLUSTER_TRAINING_RUNTIMES,
    )

    def requests_for(self, resource: Resource, item: Object) -> Iterable[ReconcileRequest]:
        """Return the TrainJob, or the owner of a JobSet or snapshot; changes of runtimes are ignored."""
        if resource == TRAINJOBS:
            yield ReconcileRequest(key_of(item))
        owner = controller_of(item)
        if resource in (JOBSETS, CONFIGMAPS) and owner and owner["kind"] == "TrainJob":
            yield ReconcileRequest((item["metadata"]["namespace"], owner["name"]))

    def reconcile(self, key: Key, cache: Cache, now: float) -> Result:
        """Sync a TrainJob."""
        namespace, name = key
        trainjob = cache.get(TRAINJOBS, namespace, name)
        if trainjob is None or is_deleting(trainjob):
            return Result()
        if trainjob["spec"].get("managedBy") not in (None, MANAGED_BY):
            return Result()
        jobset = cache.get(JOBSETS, namespace, name)
        objects: tuple[Write, ...] = ()
        failure = ""
        if not is_finished(trainjob):
            runtime = _runtime(trainjob, cache)
            try:
                objects = build_objects(
                    trainjob, jobset, runtime and typed_runtime(runtime), _snapshot(trainjob, cache)
                )
            except (LookupError, UnknownNumNodes) as error:
                failure = f"TrainJob resources reconciliation failed: {error}"
        return _result(trainjob, jobset, objects, failure, now)


def _result(
    trainjob: Object, jobset: Object | None, objects: tuple[Write, ...], failure: str, now: float
) -> Result:
    """Return the objects to write, the Event of a failure and the status."""
    status = next_status(trainjob, jobset, now)
    writes: tuple[Write, ...] = objects
    if failure:
        writes += (RecordEvent(trainjob, "Warning", "TrainJobResourcesCreationFailed", failure, MANAGER),)
    # Without resourceVersion, as upstream: a condition that someone else sets concurrently can be lost.
    writes += status_patch(TRAINJOBS, trainjob, status, MANAGER, locked=False)
    return Result(writes, RETRY if failure else None)


def is_finished(trainjob: Object) -> bool:
    """Whether the TrainJob is Complete; a Failed condition is computed again in each sync."""
    return is_true((trainjob.get("status") or {}).get("conditions"), "Complete")


def build_objects(
    trainjob: Object, jobset: Object | None, runtime: Object | None, snapshot: Object | None
) -> tuple[Write, ...]:
    """Return the applies of a missing snapshot and of a JobSet that does not run (NewObjects, Build)."""
    reference = trainjob["spec"]["runtimeRef"]
    writes: list[Write] = []
    effective = load(snapshot["data"]["runtime"]) if snapshot else runtime
    if snapshot and (controller_of(snapshot) or {}).get("uid") != trainjob["metadata"]["uid"]:
        raise LookupError(
            "invalid runtime snapshot: a snapshot configmap exists but is owned by another object"
        )
    if effective is None:
        kind = reference.get("kind", "ClusterTrainingRuntime")
        raise LookupError(f"not found {kind} specified in TrainJob: {reference['name']}")
    if snapshot is None:
        writes.append(_apply(CONFIGMAPS, _snapshot_of(trainjob, effective), trainjob))
    if jobset and not trainjob["spec"].get("suspend") and not jobset["spec"].get("suspend"):
        return tuple(writes)
    built = build_jobset(trainjob, effective["spec"])
    if jobset is None or not _is_applied(jobset, built):
        writes.append(_apply(JOBSETS, built, trainjob))
    return tuple(writes)


def typed_runtime(runtime: Object) -> Object:
    """Return a runtime without the fields that the Trainer's Go types do not have, as in its snapshot.

    A patched CRD may keep more: of a policy in `podGroupPolicy.workload` the Trainer keeps an empty policy.
    """
    spec = {name: value for name, value in runtime["spec"].items() if name in _SPEC_FIELDS}
    for field, known in (("podGroupPolicy", _POD_GROUP_POLICY_FIELDS), ("template", ("metadata", "spec"))):
        if spec.get(field) is not None:
            spec[field] = {name: value for name, value in spec[field].items() if name in known}
    return {**runtime, "spec": spec}


def next_status(trainjob: Object, jobset: Object | None, now: float) -> Object:
    """Return the status: Suspended from the spec; final condition and jobsStatus from the JobSet."""
    status: Object = dict(trainjob.get("status") or {})
    conditions = list(status.get("conditions") or [])
    if not is_finished(trainjob):
        conditions = without_condition(conditions, "Failed")
    if trainjob["spec"].get("suspend"):
        conditions = with_condition(conditions, _suspended("True", "Suspended", "suspended"), now)
    elif is_true(conditions, "Suspended"):
        conditions = with_condition(conditions, _suspended("False", "Resumed", "resumed"), now)
    if jobset:
        jobset_status: Object = jobset.get("status") or {}
        for jobset_type, trainjob_type in FINAL_CONDITIONS.items():
            final = condition(jobset_status.get("conditions"), jobset_type)
            if final and final["status"] == "True":
                conditions = with_condition(conditions, {**final, "type": trainjob_type}, now)
        names = ("name", "ready", "succeeded", "failed", "active", "suspended")
        counts = jobset_status.get("replicatedJobsStatus") or []
        status["jobsStatus"] = [{name: entry.get(name, 0) for name in names} for entry in counts]
    status["conditions"] = conditions
    return {name: value for name, value in status.items() if value}


def _suspended(status: str, reason: str, word: str) -> Object:
    return {"type": "Suspended", "status": status, "reason": reason, "message": f"TrainJob is {word}"}


def _runtime(trainjob: Object, cache: Cache) -> Object | None:
    reference = trainjob["spec"]["runtimeRef"]
    resource = RUNTIMES[reference.get("kind", "ClusterTrainingRuntime")]
    namespace = trainjob["metadata"]["namespace"] if resource.namespaced else ""
    return cache.get(resource, namespace, reference["name"])


def _snapshot(trainjob: Object, cache: Cache) -> Object | None:
    namespace, name = key_of(trainjob)
    return cache.get(CONFIGMAPS, namespace, name + SNAPSHOT_SUFFIX)


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


def _apply(resource: Resource, body: Object, trainjob: Object) -> Create:
    return Create(resource, body, MANAGER, "TrainJobResourcesCreationFailed", trainjob, apply=True)


def _is_applied(stored: Object, desired: Object) -> bool:
    """Whether applying would change nothing; saves a request per sync of a suspended TrainJob."""
    fields = ("labels", "annotations")
    return _covers(stored["spec"], desired["spec"]) and all(
        _covers(stored["metadata"].get(name) or {}, desired["metadata"].get(name) or {}) for name in fields
    )


def _covers(stored: object, desired: object) -> bool:
    """Whether `stored` has every field of `desired` with the same value."""
    if isinstance(desired, dict) and isinstance(stored, dict):
        return all(name in stored and _covers(stored[name], value) for name, value in desired.items())
    if isinstance(desired, list) and isinstance(stored, list):
        return len(stored) == len(desired) and all(map(_covers, stored, desired))
    return stored == desired
