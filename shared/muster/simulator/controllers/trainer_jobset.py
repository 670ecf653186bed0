"""From a TrainJob and its runtime to a JobSet (kubeflow/trainer v2.3.0, pkg/runtime).

The order is upstream's: runtimePatches, counts and environment by the plugin of the mlPolicy, then what the
TrainJob says about its trainer and initializers.
"""

from __future__ import annotations

import copy

from muster.cluster.port import Object
from muster.simulator.controllers.fields import controller_reference
from muster.simulator.controllers.jobset_jobs import with_defaults
from muster.simulator.controllers.trainer_env import inject, upsert
from muster.simulator.controllers.trainer_patches import merged

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
TRAINER = "trainer"
NODE = "node"
INITIALIZERS = {"dataset-initializer": "dataset", "model-initializer": "model"}
"""The ancestor steps that initialize, and the field of `spec.initializer` each one reads."""


class UnknownNumNodes(Exception):
    """The Flux plugin reads `spec.trainer.numNodes` and crashes where it is missing."""


def build_jobset(trainjob: Object, runtime_spec: Object) -> Object:
    """The JobSet as it is stored: what the Trainer applies, with the JobSet webhook's defaults.

    Args:
        trainjob: as stored.
        runtime_spec: `spec` of the runtime or of its snapshot.

    Raises:
        UnknownNumNodes: a Flux runtime without `spec.trainer.numNodes`.
    """
    template = _patched(runtime_spec["template"], trainjob)
    spec = template["spec"]
    policy: Object | None = runtime_spec.get("mlPolicy")
    counts = pod_counts(trainjob, spec["replicatedJobs"], policy)
    for rjob in spec["replicatedJobs"]:
        job_spec = rjob["template"].setdefault("spec", {})
        job_spec["parallelism"] = job_spec["completions"] = counts[rjob["name"]]
        _set_resources(trainjob, rjob, policy)
    inject(trainjob, spec["replicatedJobs"], policy, counts)
    for rjob in spec["replicatedJobs"]:
        _initialize(trainjob, rjob)
        _train(trainjob, rjob, policy)
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
    """Pods of each replicatedJob, both its parallelism and its completions.

    The runtime's own parallelism (at least 1), mlPolicy.numNodes for the trainer's replicatedJob, and over
    both spec.trainer.numNodes: for MPI on the replicatedJob called `node`, otherwise on the trainer's.
    """
    counts: dict[str, int] = {}
    for rjob in rjobs:
        count = int((rjob["template"].get("spec") or {}).get("parallelism", 1))
        if ancestor_of(rjob) == TRAINER and policy is not None:
            count = int(policy.get("numNodes", 1))
        counts[rjob["name"]] = max(count, 1)
    wanted = (trainjob["spec"].get("trainer") or {}).get("numNodes")
    if wanted is None:
        if policy and "flux" in policy:
            raise UnknownNumNodes("the flux policy needs spec.trainer.numNodes")
        return counts
    mpi = (policy or {}).get("mpi")
    if mpi is None:
        target = next((rjob["name"] for rjob in rjobs if ancestor_of(rjob) == TRAINER), "")
        count = int(wanted)
    else:
        target = NODE
        count = max(int(wanted) - 1, 1) if mpi.get("runLauncherAsNode") else int(wanted)
    if target in counts:
        counts[target] = count
    return counts


def ancestor_of(rjob: Object) -> str:
    """The step of a TrainJob that a replicatedJob is labelled as; empty without the label."""
    metadata = rjob["template"].get("metadata") or {}
    return str((metadata.get("labels") or {}).get(ANCESTOR, ""))


def _patched(template: Object, trainjob: Object) -> Object:
    """The runtime's template with every runtimePatch merged in; replicatedJobs keep the template's order."""
    result = copy.deepcopy(template)
    for patch in trainjob["spec"].get("runtimePatches") or []:
        wanted = ((patch.get("trainingRuntimeSpec") or {}).get("template")) or {}
        result["spec"] = merged(result["spec"], wanted.get("spec") or {})
        metadata = result.get("metadata") or {}
        for name in ("labels", "annotations"):
            given = (wanted.get("metadata") or {}).get(name)
            if given:
                metadata = {**metadata, name: {**(metadata.get(name) or {}), **given}}
        result["metadata"] = metadata
    return result


def _is_trained(rjob: Object, policy: Object | None) -> bool:
    """Whether the TrainJob's trainer settings concern this replicatedJob's `node` container."""
    launched = bool(((policy or {}).get("mpi") or {}).get("runLauncherAsNode"))
    return ancestor_of(rjob) == TRAINER or (launched and rjob["name"] == NODE)


def container(rjob: Object, name: str) -> Object | None:
    """The container of this name in a replicatedJob's pod template."""
    containers = rjob["template"]["spec"]["template"]["spec"].get("containers") or []
    return next((one for one in containers if one["name"] == name), None)


def _set_resources(trainjob: Object, rjob: Object, policy: Object | None) -> None:
    given = (trainjob["spec"].get("trainer") or {}).get("resourcesPerNode")
    node = container(rjob, NODE)
    if not given or not node or policy is None or not _is_trained(rjob, policy):
        return
    resources: Object = node.setdefault("resources", {})
    for kind in ("limits", "requests"):
        if given.get(kind):
            resources[kind] = {**(resources.get(kind) or {}), **given[kind]}


def _initialize(trainjob: Object, rjob: Object) -> None:
    step = ancestor_of(rjob)
    if step not in INITIALIZERS:
        return
    rjob["replicas"] = 1
    given = (trainjob["spec"].get("initializer") or {}).get(INITIALIZERS[step])
    target = container(rjob, step)
    if not given or not target:
        return
    if given.get("storageUri"):
        upsert(target, [{"name": "STORAGE_URI", "value": given["storageUri"]}])
    upsert(target, given.get("env") or [])
    if given.get("secretRef"):
        reference = {"secretRef": {"name": given["secretRef"]["name"]}}
        target["envFrom"] = [*(target.get("envFrom") or []), reference]


def _train(trainjob: Object, rjob: Object, policy: Object | None) -> None:
    given = trainjob["spec"].get("trainer") or {}
    node = container(rjob, NODE)
    if ancestor_of(rjob) == TRAINER:
        rjob["replicas"] = 1
        if node:
            node.update({name: given[name] for name in ("image", "command", "args") if given.get(name)})
    if node and given and _is_trained(rjob, policy):
        upsert(node, given.get("env") or [])
