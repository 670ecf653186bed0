"""The embedded server's own features: loading, snapshots, counting, faults, kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.simulator.apiserver import ApiServer
from tests.cluster.api import KubernetesApi
from tests.contract.bodies import core, pod

NS = "default"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server with everything Muster needs switched on."""
    with ApiServer() as started:
        yield started


@pytest.fixture
def api(server: ApiServer) -> KubernetesApi:
    """A client of that server."""
    return KubernetesApi(server.url)


def test_loaded_objects_are_as_they_were(server: ApiServer, api: KubernetesApi) -> None:
    """Loading keeps uid, resourceVersion, times and status, and makes the namespace."""
    metadata = {
        "namespace": "team-a",
        "uid": "u-1",
        "resourceVersion": "700",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    recorded = {**pod("old", metadata), "status": {"phase": "Running", "qosClass": "BestEffort"}}
    server.load([recorded])
    found = api.must("GET", core("team-a", "pods", "old"))
    assert {key: found["metadata"][key] for key in metadata} == metadata
    assert found["status"]["phase"] == "Running"
    made = api.must("POST", core("team-a", "pods"), pod("new"))
    assert int(made["metadata"]["resourceVersion"]) > 700


def test_a_token_of_forgotten_history_is_expired(server: ApiServer, api: KubernetesApi) -> None:
    """After a compaction a continue token from before it is answered with one for what is there by now."""
    for name in ("a", "b"):
        api.must("POST", core(NS, "pods"), pod(name))
    token = api.must("GET", core(NS, "pods"), query={"limit": "1"})["metadata"]["continue"]
    api.must("POST", core(NS, "pods"), pod("c"))
    server.forget_history()
    answer = api.request("GET", core(NS, "pods"), query={"limit": "1", "continue": token})
    assert (answer.status, answer.reason) == (410, "Expired")
    later = {"continue": answer.body["metadata"]["continue"]}
    rest = api.must("GET", core(NS, "pods"), query=later)
    assert [item["metadata"]["name"] for item in rest["items"]] == ["b", "c"]
    now = api.must("GET", core(NS, "pods"))["metadata"]["resourceVersion"]
    assert rest["metadata"]["resourceVersion"] == now
