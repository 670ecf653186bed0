"""What a cluster is furnished with before anything runs in it: nodes, and the runtimes Trainer ships."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from muster import yaml_files
from muster.cluster.port import Object

RUNTIMES = Path(__file__).resolve().parents[1] / "data" / "runtimes"
"""The manifests of kubeflow/trainer v2.3.0; the folder's README says where each comes from."""


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    gpu: int = 0,
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A ready node.

    Args:
        name: its name, also the value of the label kubernetes.io/hostname.
        cpu: allocatable CPUs, a quantity.
        memory: allocatable memory, a quantity.
        gpu: allocatable nvidia.com/gpu; 0: the node has none.
        pods: how many pods it takes.
        labels: more labels, such as topology.kubernetes.io/rack.
    """
    room = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    if gpu:
        room["nvidia.com/gpu"] = str(gpu)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {},
        "status": {
            "allocatable": room,
            "capacity": room,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated kubelet"}
            ],
            "phase": "Running",
        },
    }


def shipped_runtimes() -> list[Object]:
    """The ClusterTrainingRuntimes of Trainer v2.3.0, by name."""
    return [yaml_files.load(path.read_text()) for path in sorted(RUNTIMES.glob("*.yaml"))]


def shipped_runtime(name: str) -> Object:
    """One ClusterTrainingRuntime of Trainer v2.3.0.

    Raises:
        FileNotFoundError: Trainer ships none of that name.
    """
    runtime: Object = yaml_files.load((RUNTIMES / f"{name}.yaml").read_text())
    return runtime
