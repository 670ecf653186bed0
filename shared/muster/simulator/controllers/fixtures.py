"""Fixtures of a cluster: nodes, and the ClusterTrainingRuntimes that Trainer ships."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from muster.cluster.interface import Object
from muster.objects import yaml_files

RUNTIMES = Path(__file__).resolve().parents[1] / "data" / "runtimes"
"""The manifests of kubeflow/trainer v2.3.0; the folder's README names the source of each."""


def node(
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    gpu: int = 0,
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """Return a ready node."""
    capacity = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    if gpu:
        capacity["nvidia.com/gpu"] = str(gpu)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {},
        "status": {
            "allocatable": capacity,
            "capacity": capacity,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated kubelet"}
            ],
            "phase": "Running",
        },
    }


def shipped_runtimes() -> list[Object]:
    """Return the ClusterTrainingRuntimes of Trainer v2.3.0, sorted by name."""
    return [yaml_files.load(path.read_text()) for path in sorted(RUNTIMES.glob("*.yaml"))]


def shipped_runtime(name: str) -> Object:
    """Return the ClusterTrainingRuntime of this name in Trainer v2.3.0."""
    path = next((path for path in RUNTIMES.glob("*.yaml") if path.stem == name), None)
    if path is None:
        raise LookupError(f"no runtime {name}")
    runtime: Object = yaml_files.load(path.read_text())
    return runtime
