"""The embedded server's own features: loading, snapshots, counting, faults, kubeconfig."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from muster.cluster.errors import Conflict, Expired, Forbidden, TooManyRequests, Unauthorized, Unavailable
from muster.cluster.http.client import Client
from muster.objects import yaml_files
from muster.objects.patches import PatchType
from muster.objects.resources import CONFIGMAPS, JOBSETS, NAMESPACES, PODS, TRAINJOBS
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.apiserver.http.requests import Request
from tests.cluster.api import KubernetesApi
from tests.contract.bodies import DEFINITIONS, config_map, core, job, jobs, jobsets, pod, widget_definition

NS = "default"


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


def test_loaded_objects_are_not_collected_for_want_of_an_owner(server: ApiServer, api: KubernetesApi) -> None:
    """A recorded dependent stays though its owner was not recorded."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u-0"}
    server.load([config_map(namespace=NS, ownerReferences=[reference])])
    assert api.request("GET", core(NS, "configmaps", "one")).ok


def test_loaded_objects_skip_admission_and_validation(server: ApiServer, api: KubernetesApi) -> None:
    """A recorded object is taken as it is, even one that no rule would let in."""
    server.load([{**job("old"), "spec": {"parallelism": -1}}])
    assert api.must("GET", jobs(NS, "old"))["spec"]["parallelism"] == -1


def test_loading_an_unknown_kind_is_an_error(server: ApiServer) -> None:
    """An object whose kind is not served is named."""
    jobset = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "a"}}
    with pytest.raises(LookupError, match=r"JobSet.*jobset\.x-k8s\.io/v1alpha2"):
        server.load([jobset])


def test_a_snapshot_can_be_loaded_elsewhere(server: ApiServer, api: KubernetesApi) -> None:
    """Everything in one server can be put into another."""
    api.must("POST", DEFINITIONS, widget_definition())
    api.must("POST", core(NS, "pods"), pod())
    with ApiServer() as other:
        other.load(server.snapshot())
        assert _sorted(other.snapshot()) == _sorted(server.snapshot())


def _sorted(objects: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(obj, sort_keys=True) for obj in objects)


def test_the_definitions_of_jobset_and_trainer_are_served(server: ApiServer, api: KubernetesApi) -> None:
    """The trimmed definitions give JobSets and TrainJobs with defaults and their immutable fields."""
    server.load(resource_definitions())
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    replicated = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": containers}}}}}
    body = {"metadata": {"name": "set"}, "spec": {"replicatedJobs": [replicated]}}
    assert api.must("POST", jobsets(NS), body)["spec"]["replicatedJobs"][0]["replicas"] == 1
    client = Client.for_server(server.url)
    spec = {"runtimeRef": {"name": "torch"}}
    train = {
        "apiVersion": TRAINJOBS.api_version,
        "kind": "TrainJob",
        "metadata": {"name": "t", "namespace": NS},
    }
    made = client.create(TRAINJOBS, {**train, "spec": spec}, manager="test")
    assert made["spec"]["runtimeRef"]["kind"] == "ClusterTrainingRuntime"
    assert client.list(JOBSETS, NS)[0]["kind"] == "JobSet"


def test_a_definition_takes_its_objects_along(api: KubernetesApi) -> None:
    """Deleting a CustomResourceDefinition deletes its objects and ends their being served."""
    api.must("POST", DEFINITIONS, widget_definition())
    path = f"/apis/contract.muster.dev/v1/namespaces/{NS}/widgets"
    api.must("POST", path, {"metadata": {"name": "a"}, "spec": {"size": 1}})
    api.must("DELETE", f"{DEFINITIONS}/widgets.contract.muster.dev")
    assert api.request("GET", path).status == 404
    assert api.request("GET", f"{DEFINITIONS}/widgets.contract.muster.dev").status == 404


def test_requests_are_counted_by_user_agent_verb_and_resource(server: ApiServer) -> None:
    """calls() returns user agent, verb and resource, subresources included; refused requests count too."""
    client = Client.for_server(server.url, user_agent="muster-test")
    client.create(PODS, {**pod(), "metadata": {"name": "pod", "namespace": NS}}, manager="m")
    client.patch(
        PODS,
        "pod",
        NS,
        {"status": {"phase": "Running"}},
        patch=PatchType.MERGE,
        manager="m",
        subresource="status",
    )
    client.get(PODS, "none", NS)
    client.list(PODS)
    assert server.calls() == {
        ("muster-test", "create", "pods"): 1,
        ("muster-test", "patch", "pods/status"): 1,
        ("muster-test", "get", "pods"): 1,
        ("muster-test", "list", "pods"): 1,
    }
    server.forget_calls()
    assert not server.calls()


@pytest.mark.parametrize(
    ("status", "headers", "error"),
    [
        pytest.param(401, {}, Unauthorized, id="401 is Unauthorized"),
        pytest.param(403, {}, Forbidden, id="403 is Forbidden"),
        pytest.param(409, {}, Conflict, id="409 is Conflict"),
        pytest.param(429, {"Retry-After": "7"}, TooManyRequests, id="429 carries Retry-After"),
        pytest.param(500, {}, Unavailable, id="500 is Unavailable"),
    ],
)
def test_an_interceptor_answers_instead(
    server: ApiServer, status: int, headers: Mapping[str, str], error: type[Exception]
) -> None:
    """A fault is answered to the requests it is meant for, and no others."""

    def fault(request: Request) -> tuple[int, Mapping[str, str], Any] | None:
        if request.verb != "list":
            return None
        return status, headers, {"kind": "Status", "code": status, "message": "so be it"}

    server.intercept = fault
    client = Client.for_server(server.url)
    with pytest.raises(error) as raised:
        client.list(PODS)
    assert getattr(raised.value, "retry_after", None) == (7 if headers else None)
    assert client.get(NAMESPACES, NS) is not None
    server.intercept = None
    assert client.list(PODS) == []


def test_history_that_is_forgotten_ends_watches(server: ApiServer) -> None:
    """After a compaction a watch from before it is answered with 410 Expired."""
    client = Client.for_server(server.url)
    version = client.list_with_version(CONFIGMAPS, NS)[1]
    client.create(CONFIGMAPS, config_map(namespace=NS), manager="test")
    server.forget_history()
    with pytest.raises(Expired):
        list(client.watch(CONFIGMAPS, NS, resource_version=version, timeout_seconds=1))


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


def test_a_watch_sees_changes_as_they_happen(server: ApiServer, api: KubernetesApi) -> None:
    """An event arrives while the watch is open."""
    client = Client.for_server(server.url)
    seen: list[tuple[str, str]] = []
    started = threading.Event()

    def follow() -> None:
        for kind, obj in client.watch(PODS, NS, timeout_seconds=20):
            seen.append((kind, obj["metadata"]["name"]))
            started.set()
            if obj["metadata"]["name"] == "last":
                return

    api.must("POST", core(NS, "pods"), pod("first"))
    thread = threading.Thread(target=follow)
    thread.start()
    assert started.wait(10)
    api.must("POST", core(NS, "pods"), pod("last"))
    thread.join(10)
    assert seen == [("ADDED", "first"), ("ADDED", "last")]


def test_stopping_ends_watches(server: ApiServer, api: KubernetesApi) -> None:
    """stop() does not wait for clients that watch."""
    client = Client.for_server(server.url)
    api.must("POST", core(NS, "pods"), pod())
    started = threading.Event()

    def follow() -> None:
        for _ in client.watch(PODS, NS, timeout_seconds=60):
            started.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert started.wait(10)
    begin = time.monotonic()
    server.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - begin < 5


def test_the_kubeconfig_names_the_server(server: ApiServer) -> None:
    """Tools like kubectl and the client libraries find the server by it."""
    config = yaml_files.load(server.kubeconfig())
    assert config["clusters"][0]["cluster"]["server"] == server.url
    assert config["current-context"] == config["contexts"][0]["name"]


def test_a_bug_is_an_answer(server: ApiServer, api: KubernetesApi, capfd: pytest.CaptureFixture[str]) -> None:
    """An unexpected error inside is answered with 500 and printed on standard error."""

    def broken(_request: Request) -> None:
        raise RuntimeError("a bug")

    server.intercept = broken
    answer = api.request("GET", core(NS, "pods"))
    assert (answer.status, answer.reason) == (500, "InternalError")
    assert "RuntimeError: a bug" in capfd.readouterr().err


def test_definitions_that_come_along_stay_as_they_are(server: ApiServer, api: KubernetesApi) -> None:
    """Servers share them: what one makes of a definition, and what becomes of it there, no other sees."""
    before = json.dumps(resource_definitions())
    server.load(resource_definitions())
    path = f"{DEFINITIONS}/jobsets.jobset.x-k8s.io"
    stored = api.must("GET", path)
    stored["metadata"]["labels"] = {"seen": "here"}
    for version in stored["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"].pop("status")
    api.must("PUT", path, stored)
    api.must("DELETE", path)
    assert json.dumps(resource_definitions()) == before
