"""The environment that mlPolicy plugins set in the trainer's container (trainer v2.3.0, plugins/*).

Torch, JAX and XGBoost are complete except for torchtune's command line. MPI sets its variables, but adds no
volumes for keys and hostfile.
"""

from __future__ import annotations

from typing import Any

from muster.cluster.interface import Object
from muster.objects.quantities import milli

INDEX_PATH = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
PORT = 29500
_MILLI = 1000


def upsert(container: Object, variables: list[Object]) -> None:
    """Set environment variables in a container; an existing name keeps its position."""
    env = list(container.get("env") or [])
    positions = {entry["name"]: position for position, entry in reversed([*enumerate(env)])}
    for variable in variables:
        position = positions.setdefault(variable["name"], len(env))
        env[position : position + 1] = [variable]
    if env:
        container["env"] = env


def inject(trainjob: Object, rjobs: list[Object], policy: Object | None, counts: dict[str, int]) -> None:
    """Add the plugin's variables and port to the trainer's container, if `spec.trainer` is set.

    Args:
        trainjob: the TrainJob as stored.
        rjobs: the replicatedJobs, modified in place.
        policy: the runtime's mlPolicy.
        counts: pods by name of the replicatedJob.
    """
    target = _trainer_container(rjobs)
    trainer = trainjob["spec"].get("trainer")
    if policy is None or target is None or trainer is None:
        return
    rjob, container = target
    nodes = counts[rjob["name"]]
    name = trainjob["metadata"]["name"]
    resources = trainer.get("resourcesPerNode") or container.get("resources") or {}
    if "torch" in policy:
        upsert(container, trainer.get("env") or [])
        upsert(container, _torch(name, nodes, trainer.get("numProcPerNode"), resources))
        _open_port(container)
    elif "jax" in policy:
        upsert(container, _jax(name, nodes))
        _open_port(container)
    elif "xgboost" in policy:
        upsert(container, _xgboost(name, nodes, _gpus(resources)))
        _open_port(container)
    elif "mpi" in policy and rjob["name"] == "launcher":
        slots = trainer.get("numProcPerNode") or int((policy["mpi"] or {}).get("numProcPerNode", 1))
        upsert(container, _open_mpi(max(slots, _gpus(resources)) if slots == 1 else slots))


def _trainer_container(rjobs: list[Object]) -> tuple[Object, Object] | None:
    """Return the replicatedJob of the trainer step and its container `node`, or None."""
    for rjob in rjobs:
        labels = (rjob["template"].get("metadata") or {}).get("labels") or {}
        if labels.get("trainer.kubeflow.org/trainjob-ancestor-step") == "trainer":
            for container in rjob["template"]["spec"]["template"]["spec"].get("containers") or []:
                if container["name"] == "node":
                    return rjob, container
    return None


def _torch(name: str, nodes: int, processes: int | None, resources: Object) -> list[Object]:
    per_node = "auto" if processes is None else str(processes)
    if per_node == "auto" and _gpus(resources) == 0:
        per_node = str(max(1, _cpus(resources)))
    return [
        {"name": "PET_NNODES", "value": str(nodes)},
        {"name": "PET_NPROC_PER_NODE", "value": per_node},
        _rank("PET_NODE_RANK"),
        {"name": "PET_MASTER_ADDR", "value": _first_pod(name)},
        {"name": "PET_MASTER_PORT", "value": str(PORT)},
    ]


def _jax(name: str, nodes: int) -> list[Object]:
    return [
        {"name": "JAX_NUM_PROCESSES", "value": str(nodes)},
        _rank("JAX_PROCESS_ID"),
        {"name": "JAX_COORDINATOR_ADDRESS", "value": f"{_first_pod(name)}:{PORT}"},
    ]


def _xgboost(name: str, nodes: int, gpus: int) -> list[Object]:
    return [
        {"name": "DMLC_TRACKER_URI", "value": _first_pod(name)},
        {"name": "DMLC_TRACKER_PORT", "value": str(PORT)},
        _rank("DMLC_TASK_ID"),
        {"name": "DMLC_NUM_WORKER", "value": str(nodes * max(1, gpus))},
    ]


def _open_mpi(slots: int) -> list[Object]:
    return [
        {"name": "OMPI_MCA_orte_default_hostfile", "value": "/etc/mpi/hostfile"},
        {"name": "OMPI_MCA_orte_keep_fqdn_hostnames", "value": "true"},
        {"name": "OMPI_MCA_orte_set_default_slots", "value": str(slots)},
        {"name": "OMPI_MCA_plm_rsh_args", "value": "-o ConnectionAttempts=10"},
    ]


def _rank(name: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": INDEX_PATH}}}


def _first_pod(name: str) -> str:
    return f"{name}-node-0-0.{name}"


def _open_port(container: Object) -> None:
    ports = container.get("ports") or []
    if all(port["containerPort"] != PORT for port in ports):
        container["ports"] = [*ports, {"containerPort": PORT, "protocol": "TCP"}]


def _gpus(resources: Object) -> int:
    """Number of GPUs of any vendor in the limits, else in the requests (GetNumGPUPerNode)."""
    for kind in ("limits", "requests"):
        for name, value in (resources.get(kind) or {}).items():
            if "gpu" in name.lower():
                return _whole(value)
    return 0


def _cpus(resources: Object) -> int:
    """CPUs of the requests, else of the limits, rounded up."""
    for kind in ("requests", "limits"):
        value: Any = (resources.get(kind) or {}).get("cpu")
        if value:
            return _whole(value)
    return 0


def _whole(quantity: Any) -> int:
    """Return a quantity in whole ones, rounded up."""
    return -(-milli(str(quantity)) // _MILLI)
