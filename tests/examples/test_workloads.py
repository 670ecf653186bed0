"""The examples of other kinds: pods of the shape that each operator makes of them run as one gang.

Those whose operator is built for the stories run on it: tests/e2e/gangs/test_operators.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import yaml

from muster.data import EVENTING
from muster.testing import RunningStack

Object = dict[str, Any]
FOLDER = EVENTING / "examples/any-workload"
REAL = {"stateful-set", "deployment", "leader-worker-set", "ray-cluster", "plain-pods"}


def of_mpi_job(job: Object) -> Iterable[Object]:
    """A Job controls the launcher, the MPIJob its workers; both have a label (mpi-operator 0.8)."""
    labels = {"training.kubeflow.org/job-name": job["metadata"]["name"]}
    specs = job["spec"]["mpiReplicaSpecs"]
    yield a_pod("pi-launcher-x7k2p", specs["Launcher"]["template"], "Job", labels)
    for number in range(specs["Worker"]["replicas"]):
        yield a_pod(f"pi-worker-{number}", specs["Worker"]["template"], "MPIJob", labels)


def of_pytorch_job(job: Object) -> Iterable[Object]:
    """The PyTorchJob controls all (training-operator 1.9)."""
    for role, spec in job["spec"]["pytorchReplicaSpecs"].items():
        for number in range(spec["replicas"]):
            yield a_pod(f"train-{role.lower()}-{number}", spec["template"], "PyTorchJob")


def of_spark_application(application: Object) -> Iterable[Object]:
    """The driver's pod controls the executors (BasicExecutorFeatureStep of Spark 4.0)."""
    executor = application["spec"]["executor"]
    container = {"name": "main", "image": "spark", "resources": {"requests": {"cpu": str(executor["cores"])}}}
    template = {"metadata": {"labels": executor["labels"]}, "spec": {"containers": [container]}}
    for number in range(executor["instances"]):
        yield a_pod(f"count-exec-{number}", template, "Pod")


def of_argo_workflow(workflow: Object) -> Iterable[Object]:
    """The Workflow controls the pods of its steps (Argo Workflows 4.0)."""
    template = workflow["spec"]["templates"][1]
    text = yaml.safe_dump({"metadata": template["metadata"], "spec": {"containers": [template["container"]]}})
    text = text.replace("{{workflow.name}}", "sweep").replace("{{inputs.parameters.round}}", "first")
    for number in range(4):
        yield a_pod(f"sweep-train-{number}", yaml.safe_load(text), "Workflow")


def a_pod(name: str, template: Object, controller: str, labels: dict[str, str] | None = None) -> Object:
    """Return a pod of a template, with a controller of a kind."""
    metadata = template["metadata"]
    uid = f"5f2c0de0-0000-4000-8000-{len(controller):012}"
    owner = {"apiVersion": "example.com/v1", "kind": controller, "name": "x", "uid": uid, "controller": True}
    metadata = {
        **metadata,
        "name": name,
        "labels": metadata["labels"] | (labels or {}),
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


SHAPES: dict[str, Callable[[Object], Iterable[Object]]] = {
    "mpi-job": of_mpi_job,
    "pytorch-job": of_pytorch_job,
    "spark-application": of_spark_application,
    "argo-workflow": of_argo_workflow,
}


def test_every_example_is_run() -> None:
    """Here, or on its operator."""
    assert {path.stem for path in FOLDER.iterdir()} == REAL | set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_pods_of_its_shape_are_one_gang(name: str) -> None:
    """All but one exist: none runs. The last one comes: all run."""
    (document,) = yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text())
    *most, last = SHAPES[name](document)
    with RunningStack() as stack:
        stack.create_namespace("example-workloads")
        for pod in most:
            stack.create(pod, "example-workloads")
        stack.until("the gates stay", lambda: "WaitingForPods" in stack.reasons("gather_pods"))
        assert bound(stack) == 0
        stack.create(last, "example-workloads")
        stack.until("all are placed", lambda: bound(stack) == len(most) + 1)
        stack.settle()
        (group,) = stack.all("PodGroup")
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": len(most) + 1}}
        assert stack.broken_laws() == [] == stack.dead_letters()


def bound(stack: RunningStack) -> int:
    """How many pods have a node."""
    return sum("nodeName" in pod["spec"] for pod in stack.all("Pod"))
