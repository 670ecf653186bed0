"""The JobSet built from a TrainJob and its runtime (kubeflow/trainer v2.3.0, pkg/runtime).

The order is upstream's: runtimePatches, then pod counts of the mlPolicy plugin, then the TrainJob's
`spec.trainer`. Environment variables and ports of the frameworks are left out.
"""

from __future__ import annotations

from typing import Any

from muster.cluster.interface import Object
from muster.simulator.apiserver.objects import copied
from muster.simulator.controllers.fields import controller_reference
from muster.simulator.controllers.jobset.jobs import with_defaults

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAINER = "trainer"
NODE = "node"
INITIALIZERS = ("dataset-initializer", "model-initializer")
MERGED_BY_NAME = {"replicatedJobs", "containers", "initContainers", "env", "volumes", "schedulingGates"}
"""The lists of a runtimePatch that are merged by name; others replace those of the runtime."""


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
