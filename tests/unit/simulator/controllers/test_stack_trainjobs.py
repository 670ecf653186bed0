"""TrainJobs and JobSets on the embedded API server: the simulated controllers at work, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster.http.client import Client
from muster.cluster.interface import Object, PatchType
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, CONFIGMAPS, JOBS, JOBSETS, PODS, TRAINJOBS
from muster.simulator.apiserver import ApiServer
from muster.simulator.controllers import Controllers
from tests.unit.simulator.controllers.stack import (
    FAST,
    FOR_EVER,
    NAMESPACE,
    change,
    has,
    make_trainjob,
    pods_of,
    until,
)

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    ("runtime", "jobs"),
    [
        pytest.param("torch-distributed", ["llama-node-0"], id="torch runs one Job"),
        pytest.param(
            "torchtune-qwen2.5-1.5b",
            ["llama-dataset-initializer-0", "llama-model-initializer-0", "llama-node-0"],
            id="torchtune initializes and then trains",
        ),
    ],
)
def test_trainjob_of_a_shipped_runtime_completes(
    server: ApiServer, client: Client, runtime: str, jobs: list[str]
) -> None:
    """From the TrainJob to Complete, with the runtime's snapshot and all Jobs kept."""
    make_trainjob(client, runtime, 2)
    with Controllers(server.url, kubelet=FAST):
        until(lambda: has(client, TRAINJOBS, "llama", "Complete"))
    assert client.get(CONFIGMAPS, "llama-runtime-snapshot", NAMESPACE)
    assert sorted(job["metadata"]["name"] for job in client.list(JOBS, NAMESPACE)) == jobs


def test_mpi_trainjob_ends_with_its_launcher(server: ApiServer, client: Client) -> None:
    """The launcher starts when the nodes are ready and completes the TrainJob; the nodes are cleared away."""
    metadata = {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "50ms"}}
    launcher = {"name": "launcher", "template": {"spec": {"template": {"metadata": metadata}}}}
    patch = {"template": {"spec": {"replicatedJobs": [launcher]}}}
    patches = [{"manager": "acme.io/test", "trainingRuntimeSpec": patch}]
    make_trainjob(client, "deepspeed-distributed", 3, runtimePatches=patches)
    with Controllers(server.url, kubelet=FOR_EVER):
        until(lambda: has(client, TRAINJOBS, "llama", "Complete"))
        until(
            lambda: [job["metadata"]["name"] for job in client.list(JOBS, NAMESPACE)] == ["llama-launcher-0"]
        )
        until(lambda: [pod["spec"]["hostname"] for pod in pods_of(client)] == ["llama-launcher-0-0"])


def test_dependent_job_starts_after_those_it_depends_on(server: ApiServer, client: Client) -> None:
    """When the trainer's Job is asked for, both initializers are complete already."""
    complete: list[str] = []

    def note(request: Any) -> None:
        if request.method == "POST" and request.path.endswith("/jobs") and b'"llama-node-0"' in request.body:
            complete.extend(
                item["metadata"]["name"]
                for item in server.snapshot()
                if item["kind"] == "Job" and "completionTime" in (item.get("status") or {})
            )

    server.intercept = note
    make_trainjob(client, "torchtune-qwen2.5-1.5b", 2)
    with Controllers(server.url, kubelet=FAST):
        until(lambda: has(client, TRAINJOBS, "llama", "Complete"))
    assert sorted(complete) == ["llama-dataset-initializer-0", "llama-model-initializer-0"]


def test_deleted_jobset_is_rebuilt_from_the_snapshot(server: ApiServer, client: Client) -> None:
    """A TrainJob that lost its runtime and its JobSet gets the same JobSet again, with a new UID."""
    make_trainjob(client, "torch-distributed", 2)
    with Controllers(server.url, kubelet=FOR_EVER):
        first = until(lambda: client.get(JOBSETS, "llama", NAMESPACE))
        until(lambda: len(pods_of(client, "Running")) == 2)
        client.delete(CLUSTER_TRAINING_RUNTIMES, "torch-distributed")
        client.delete(JOBSETS, "llama", NAMESPACE)
        second = until(lambda: _other_than(first, client.get(JOBSETS, "llama", NAMESPACE)))
        until(lambda: len(pods_of(client)) == len(pods_of(client, "Running")) == 2)
    assert first is not None
    assert second is not None
    assert second["spec"] == first["spec"]


def _other_than(old: Object | None, found: Object | None) -> Object | None:
    """The object found, if it is not the old one."""
    return found if old and found and found["metadata"]["uid"] != old["metadata"]["uid"] else None


def test_suspended_and_resumed_trainjob_gets_new_pods(server: ApiServer, client: Client) -> None:
    """Suspending takes the pods and keeps JobSet and Job; resuming makes new pods."""
    make_trainjob(client, "torch-distributed", 2)
    with Controllers(server.url, kubelet=FOR_EVER):
        first = until(lambda: pods if len(pods := pods_of(client, "Running")) == 2 else [])
        jobset = client.get(JOBSETS, "llama", NAMESPACE)
        change(client, TRAINJOBS, "llama", {"suspend": True})
        until(lambda: not pods_of(client))
        until(lambda: has(client, JOBS, "llama-node-0", "Suspended"))
        assert has(client, TRAINJOBS, "llama", "Suspended")
        change(client, TRAINJOBS, "llama", {"suspend": False})
        second = until(lambda: pods if len(pods := pods_of(client, "Running")) == 2 else [])
        kept = client.get(JOBSETS, "llama", NAMESPACE)
    assert jobset is not None
    assert kept is not None
    assert kept["metadata"]["uid"] == jobset["metadata"]["uid"]
    assert not {pod["metadata"]["uid"] for pod in first} & {pod["metadata"]["uid"] for pod in second}


def test_jobset_restarts_after_a_failure(server: ApiServer, client: Client) -> None:
    """A failed Job restarts the whole JobSet: same names, new Jobs and pods of attempt 1."""
    container = {"name": "main", "image": "example"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"backoffLimit": 0, "parallelism": 2, "completions": 2, "template": template}
    body = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": NAMESPACE},
        "spec": {
            "failurePolicy": {"maxRestarts": 1},
            "replicatedJobs": [{"name": "node", "replicas": 2, "template": {"spec": job}}],
        },
    }
    client.create(JOBSETS, body, manager="test")
    with Controllers(server.url, kubelet=FOR_EVER):
        first = until(lambda: pods if len(pods := pods_of(client, "Running")) == 4 else [])
        broken = {"status": {"phase": "Failed"}}
        name = first[0]["metadata"]["name"]
        client.patch(
            PODS, name, NAMESPACE, broken, patch=PatchType.MERGE, manager="test", subresource="status"
        )
        until(lambda: (client.get(JOBSETS, "train", NAMESPACE) or {})["status"].get("restarts") == 1)
        old = {pod["metadata"]["uid"] for pod in first}
        until(lambda: len([p for p in pods_of(client, "Running") if p["metadata"]["uid"] not in old]) == 4)
        until(lambda: len(pods_of(client)) == 4)
        until(lambda: has(client, JOBSETS, "train", "Restarting", "False"))
    attempts = {pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in pods_of(client)}
    assert attempts == {"1"}
