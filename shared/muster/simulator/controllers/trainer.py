"""The simulated Trainer (kubeflow/trainer v2.3.0, pkg/controller/trainjob_controller.go, pkg/runtime).

A JobSet is built in the order of upstream: runtimePatches, then pod counts of the mlPolicy plugin, then the
TrainJob's `spec.trainer`. Not simulated: environment variables and ports of the frameworks, the validating
webhooks, the MPI plugin's Secret and hostfile, the Flux plugin's ConfigMap and Secret, deadlines, and the
PodGroups of other schedulers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
from muster.simulator.apiserver.objects import copied
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
from muster.simulator.controllers.jobset import with_defaults
from muster.simulator.controllers.loop import Cache, Key, ReconcileRequest
from muster.simulator.controllers.writes import Create, RecordEvent, Result, Write, status_patch

MANAGER = "trainer"
MANAGED_BY = "trainer.kubeflow.org/trainjob-controller"
SNAPSHOT_SUFFIX = "-runtime-snapshot"
RETRY = 0.5
"""Seconds until a TrainJob whose objects could not be built is synced again."""
SETTLE_SECONDS = 0.02
"""How long a change of a TrainJob waits, so that a runtime written before it has come by its own watch."""
FINAL_CONDITIONS = {"Completed": "Complete", "Failed": "Failed"}
"""The final conditions of a JobSet, and the TrainJob conditions they become."""
_SPEC_FIELDS = ("mlPolicy", "podGroupPolicy", "template")
_POD_GROUP_POLICY_FIELDS = ("coscheduling", "volcano")
"""The fields of TrainingRuntimeSpec and PodGroupPolicySource (pkg/apis/trainer/v1alpha1, Trainer v2.3.0)."""
RUNTIMES = {"TrainingRuntime": TRAINING_RUNTIMES, "ClusterTrainingRuntime": CLUSTER_TRAINING_RUNTIMES}
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAINER = "trainer"
NODE = "node"
INITIALIZERS = ("dataset-initializer", "model-initializer")
MERGED_BY_NAME = {"replicatedJobs", "containers", "initContainers", "env", "volumes", "schedulingGates"}
"""The lists of a runtimePatch that are merged by name; others replace those of the runtime."""


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
            yield ReconcileRequest(key_of(item), SETTLE_SECONDS)
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
    return (*writes, _apply(JOBSETS, built, trainjob))


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


class UnknownNumNodes(Exception):
    """`spec.trainer.numNodes` is missing; upstream's Flux plugin crashes on that."""


def build_jobset(trainjob: Object, runtime_spec: Object) -> Object:
    """Return the JobSet that the Trainer applies, with the JobSet webhook's defaults."""
    template = _patched(runtime_spec["template"], trainjob)
    spec = template["spec"]
    policy: Object | None = runtime_spec.get("mlPolicy")
    counts = pod_counts(trainjob, spec["replicatedJobs"], policy)
    for rjob in spec["replicatedJobs"]:
        job_spec = rjob["template"].setdefault("spec", {})
        job_spec["parallelism"] = job_spec["completions"] = counts[rjob["name"]]
        _set_resources(trainjob, rjob, policy)
        if ancestor_of(rjob) in (TRAINER, *INITIALIZERS):
            rjob["replicas"] = 1
        _set_trainer(trainjob, rjob)
    spec["suspend"] = bool(trainjob["spec"].get("suspend"))
    metadata = {
        "name": trainjob["metadata"]["name"],
        "namespace": trainjob["metadata"]["namespace"],
        "ownerReferences": [controller_reference(trainjob)],
        **{name: value for name, value in (template.get("metadata") or {}).items() if value},
    }
    jobset = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}
    return with_defaults(jobset)


def pod_counts(trainjob: Object, rjobs: list[Object], policy: Object | None) -> dict[str, int]:
    """Return the number of pods of each replicatedJob: its parallelism and its completions.

    In ascending precedence: the runtime's parallelism (at least 1); mlPolicy.numNodes for the trainer's
    replicatedJob; spec.trainer.numNodes for the replicatedJob `node` with MPI, else for the trainer's.
    """
    counts: dict[str, int] = {}
    for rjob in rjobs:
        count = int((rjob["template"].get("spec") or {}).get("parallelism", 1))
        if ancestor_of(rjob) == TRAINER and policy is not None:
            count = int(policy.get("numNodes", 1))
        counts[rjob["name"]] = max(count, 1)
    nodes = (trainjob["spec"].get("trainer") or {}).get("numNodes")
    if nodes is None:
        if policy and "flux" in policy:
            raise UnknownNumNodes("the flux policy needs spec.trainer.numNodes")
        return counts
    mpi = (policy or {}).get("mpi")
    if mpi is None:
        target = next((rjob["name"] for rjob in rjobs if ancestor_of(rjob) == TRAINER), "")
        count = int(nodes)
    else:
        target = NODE
        count = max(int(nodes) - 1, 1) if mpi.get("runLauncherAsNode") else int(nodes)
    if target in counts:
        counts[target] = count
    return counts


def ancestor_of(rjob: Object) -> str:
    """Return the value of the label trainjob-ancestor-step of a replicatedJob; empty if unset."""
    metadata = rjob["template"].get("metadata") or {}
    return str((metadata.get("labels") or {}).get(ANCESTOR, ""))


def _patched(template: Object, trainjob: Object) -> Object:
    """Return a copy of the runtime's template with all runtimePatches; replicatedJobs keep their order."""
    result = dict(template)
    for patch in trainjob["spec"].get("runtimePatches") or []:
        overlay = ((patch.get("trainingRuntimeSpec") or {}).get("template")) or {}
        result["spec"] = merged(result["spec"], overlay.get("spec") or {})
        metadata = result.get("metadata") or {}
        for name in ("labels", "annotations"):
            values = (overlay.get("metadata") or {}).get(name)
            if values:
                metadata = {**metadata, name: {**(metadata.get(name) or {}), **values}}
        result["metadata"] = metadata
    return dict(copied(result))


def _runs_trainer(rjob: Object, policy: Object | None) -> bool:
    """Whether `spec.trainer` applies to the container `node` of this replicatedJob."""
    launcher_is_node = bool(((policy or {}).get("mpi") or {}).get("runLauncherAsNode"))
    return ancestor_of(rjob) == TRAINER or (launcher_is_node and rjob["name"] == NODE)


def container(rjob: Object, name: str) -> Object | None:
    """Return the container of this name in a replicatedJob's pod template, or None."""
    containers = rjob["template"]["spec"]["template"]["spec"].get("containers") or []
    return next((entry for entry in containers if entry["name"] == name), None)


def _set_resources(trainjob: Object, rjob: Object, policy: Object | None) -> None:
    overrides = (trainjob["spec"].get("trainer") or {}).get("resourcesPerNode")
    node = container(rjob, NODE)
    if not overrides or not node or policy is None or not _runs_trainer(rjob, policy):
        return
    resources: Object = node.setdefault("resources", {})
    for kind in ("limits", "requests"):
        if overrides.get(kind):
            resources[kind] = {**(resources.get(kind) or {}), **overrides[kind]}


def _set_trainer(trainjob: Object, rjob: Object) -> None:
    trainer = trainjob["spec"].get("trainer") or {}
    node = container(rjob, NODE)
    if node and ancestor_of(rjob) == TRAINER:
        node.update({name: trainer[name] for name in ("image", "command", "args") if trainer.get(name)})


def merged(source: Any, patch: Any, field: str = "") -> Any:
    """Return the source with a runtimePatch merged in, whose null removes a field; neither is modified."""
    if isinstance(source, dict) and isinstance(patch, dict):
        result = dict(source)
        for name, value in patch.items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = merged(result.get(name), value, name)
        return result
    if isinstance(source, list) and isinstance(patch, list) and field in MERGED_BY_NAME:
        overlays = {entry["name"]: entry for entry in patch}
        kept = [merged(entry, overlays.pop(entry["name"], {})) for entry in source]
        return [*kept, *overlays.values()]
    return patch
