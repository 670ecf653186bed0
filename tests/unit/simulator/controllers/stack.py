"""What the tests of whole lives of jobs share: waiting, looking, making objects."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from muster.cluster.http.client import Client
from muster.cluster.interface import Object, PatchType
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, JOBS, POD_GROUPS, PODS, TRAINJOBS, Resource
from muster.simulator.controllers import KubeletOptions, shipped_runtime

NAMESPACE = "team-a"
PATIENCE = 10.0
FAST = KubeletOptions(run_delay=0.02, complete_after=0.1, delete_delay=0.02)
FOR_EVER = KubeletOptions(run_delay=0.02, delete_delay=0.02)
Found = TypeVar("Found")


def until(look: Callable[[], Found]) -> Found:
    """What a look finds, as soon as it finds something."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)
    return found


def settled(client: Client, look: Callable[[], object]) -> object:
    """What a look finds once the API server has seen no change for a while."""
    before = ""
    while (now := client.list_with_version(PODS)[1]) != before:
        before = now
        time.sleep(0.15)
    return look()


def has(client: Client, resource: Resource, name: str, kind: str, status: str = "True") -> bool:
    """Whether an object has a condition with this status."""
    obj = client.get(resource, name, NAMESPACE) or {}
    conditions = (obj.get("status") or {}).get("conditions") or []
    return any((condition["type"], condition["status"]) == (kind, status) for condition in conditions)


def pods_of(client: Client, phase: str = "") -> list[Object]:
    """The pods of the namespace, or those in a phase."""
    return [pod for pod in client.list(PODS, NAMESPACE) if phase in ("", pod["status"]["phase"])]


def bound_pods(client: Client) -> list[str]:
    """The names of the pods that have a node."""
    return [pod["metadata"]["name"] for pod in pods_of(client) if pod["spec"].get("nodeName")]


def make_trainjob(client: Client, runtime: str, num_nodes: int, **spec: Any) -> None:
    """Create a shipped runtime and the TrainJob `llama` that uses it."""
    client.create(CLUSTER_TRAINING_RUNTIMES, shipped_runtime(runtime), manager="test")
    body = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "llama", "namespace": NAMESPACE},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": {"numNodes": num_nodes}, **spec},
    }
    client.create(TRAINJOBS, body, manager="test")


def make_job(client: Client, count: int, *, name: str = "sweep", group: str = "", cpu: str = "1") -> None:
    """Create an Indexed Job, its pods in a group if one is named."""
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}
    grouped = {"schedulingGroup": {"podGroupName": group}} if group else {}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "completionMode": "Indexed",
            "parallelism": count,
            "completions": count,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container], **grouped}},
        },
    }
    client.create(JOBS, body, manager="test")


def make_pod_group(client: Client, min_count: int, name: str = "gang", version: str = "v1beta1") -> None:
    """Create a gang."""
    body = {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }
    client.create(replace(POD_GROUPS, version=version), body, manager="test")


def change(client: Client, resource: Resource, name: str, spec: Object) -> None:
    """Merge something into the spec of an object."""
    client.patch(resource, name, NAMESPACE, {"spec": spec}, patch=PatchType.MERGE, manager="test")
