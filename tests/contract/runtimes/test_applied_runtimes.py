"""Why mark_runtime reads and replaces a runtime: the effects of a server-side apply of a group label."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from functions.mark_runtime.function.step import STEP
from muster.cluster import execute
from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.cluster.versioned import Versioned
from muster.objects.meta import KubernetesObject
from muster.policy.model import Plan
from muster.policy.sources.source import ANNOTATION
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.controllers import shipped_runtime
from tests.cluster.api import APPLY, ApiResponse, KubernetesApi
from tests.cluster.cluster import RealCluster
from tests.support.builders import NOW

RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
NAME = "applied"
OWNER = "kubectl"
Server = tuple[KubernetesApi, Client]


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The embedded API server, then Kubernetes 1.37.1, as people and as Muster see them."""
    if request.param == "embedded":
        with ApiServer() as embedded:
            embedded.load(resource_definitions())
            yield KubernetesApi(embedded.url), Client.for_server(embedded.url)
        return
    made: RealCluster = request.getfixturevalue("bare_137")
    yield made.api, client_of(str(made.kubeconfig))
    made.api.must("DELETE", f"{RUNTIMES}/{NAME}")


def _applied(api: KubernetesApi, body: dict[str, Any], manager: str = OWNER) -> ApiResponse:
    return api.request("PATCH", f"{RUNTIMES}/{NAME}", body, APPLY, {"fieldManager": manager})


def _a_runtime(entry: str = "node", policy: str = "") -> dict[str, Any]:
    """The shipped runtime torch-distributed, as its owner applies it, with its entry under that name."""
    body = copy.deepcopy(shipped_runtime("torch-distributed"))
    body["metadata"] = {"name": NAME, "annotations": {ANNOTATION: policy} if policy else {}}
    body["spec"]["template"]["spec"]["replicatedJobs"][0]["name"] = entry
    return body


def _a_label(**metadata: str) -> dict[str, Any]:
    """Only the group label of its entry, as server-side apply would have it."""
    labels = {"metadata": {"labels": {"muster.dev/group": "trainer"}}}
    entry = {"name": "node", "template": {"spec": {"template": labels}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": NAME, **metadata},
        "spec": {"template": {"spec": {"replicatedJobs": [entry]}}},
    }


def _entries(runtime: dict[str, Any]) -> dict[str, Any]:
    """The pod template of each entry, by its name."""
    entries = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return {entry["name"]: entry["template"]["spec"]["template"] for entry in entries}


def test_a_label_applied_to_a_deleted_runtime_creates_a_runtime_without_containers(server: Server) -> None:
    """Not even a resourceVersion prevents it, only the UID does."""
    api, _ = server
    stopped = _applied(api, _a_label(uid="11111111-1111-1111-1111-111111111111"), "marker")
    assert (stopped.status, stopped.reason) == (409, "Conflict")
    made = _applied(api, _a_label(resourceVersion="1"), "marker")
    assert made.status == 201
    assert "spec" not in _entries(made.body)["node"]


def test_an_entry_that_its_owner_renames_stays_with_its_applied_label(server: Server) -> None:
    """A ghost of that name, with a label and no containers, beside the entry that is meant."""
    api, _ = server
    assert _applied(api, _a_runtime()).ok
    assert _applied(api, _a_label(), "marker").ok
    renamed = _applied(api, _a_runtime("worker")).body
    assert set(_entries(renamed)) == {"node", "worker"}
    assert _entries(renamed)["node"] == {"metadata": {"labels": {"muster.dev/group": "trainer"}}}


def test_an_entry_that_its_owner_renames_goes_with_the_label_of_mark_runtime(server: Server) -> None:
    """It survives what its owner applies unchanged, and keeps nothing alive."""
    api, client = server
    policy = "workload: {}"
    assert _applied(api, _a_runtime(policy=policy)).ok
    seen = Versioned(client)
    decision = STEP.plan(
        STEP.observe(seen, KubernetesObject.read(api.must("GET", f"{RUNTIMES}/{NAME}")).ref), NOW
    )
    assert isinstance(decision, Plan)
    execute.in_order(seen, decision, STEP.manager)

    again = _applied(api, _a_runtime(policy=policy)).body
    assert _entries(again)["node"]["metadata"]["labels"] == {"muster.dev/group": "trainer"}
    renamed = _applied(api, _a_runtime("worker", policy)).body
    assert set(_entries(renamed)) == {"worker"}
