"""The embedded server: loading, and the client without HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muster.cluster.errors import ClusterError
from muster.cluster.http.client import Client
from muster.objects.resources import NAMESPACES, PODS
from muster.policy.model import PatchType
from muster.simulator.apiserver import ApiServer
from muster.simulator.direct import Direct
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


HOME = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}
CALLS: dict[str, Callable[[Client], Any]] = {
    "an object": lambda client: client.get(PODS, "pod", NS),
    "a list, and from where to watch": lambda client: client.list_with_version(PODS, labels="!none"),
    "a create that is refused": lambda client: client.create(NAMESPACES, HOME, manager="m"),
    "a patch that is refused": lambda client: client.patch(
        PODS, "pod", NS, {"spec": {"hostname": "x"}}, patch=PatchType.MERGE, manager="m"
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_both_clients_return_the_same(server: ApiServer, call: Callable[[Client], Any]) -> None:
    """With HTTP and without, whatever is answered, errors with their words among it."""
    server.load([pod("pod", {"namespace": NS})])
    assert _outcome(call, Direct.to(server)) == _outcome(call, Client.for_server(server.url))


def _outcome(call: Callable[[Client], Any], client: Client) -> Any:
    try:
        return call(client)
    except ClusterError as error:
        return type(error), str(error)


def test_nothing_is_shared_with_the_server(server: ApiServer) -> None:
    """What is changed on this side is not changed on the other, in what was sent as in what was got."""
    client, sent = Direct.to(server), {**HOME, "metadata": {"name": "team-b", "labels": {"a": "b"}}}
    made = client.create(NAMESPACES, sent, manager="m")
    sent["metadata"]["labels"]["a"] = made["metadata"]["labels"]["a"] = "c"  # type: ignore[index]
    namespace = client.get(NAMESPACES, "team-b")
    assert namespace is not None
    assert namespace["metadata"]["labels"]["a"] == "b"
