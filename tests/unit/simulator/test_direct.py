"""The client without HTTP returns the same as the client over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muster.cluster.errors import ClusterError
from muster.cluster.http.client import Client
from muster.objects.patches import PatchType
from muster.objects.resources import NAMESPACES, PODS
from muster.simulator.apiserver import ApiServer
from muster.simulator.direct import Direct
from tests.support.builders import a_pod

POD = a_pod()
NAME, TEAM = POD["metadata"]["name"], POD["metadata"]["namespace"]
HOME = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}}
OTHER = {**HOME, "metadata": {"name": "team-b"}}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server with a namespace and a pod."""
    with ApiServer() as server:
        server.load([HOME, POD])
        yield server


CALLS: dict[str, Callable[[Client], Any]] = {
    "an object": lambda client: client.get(PODS, NAME, TEAM),
    "an object that does not exist": lambda client: client.get(PODS, "none", TEAM),
    "a list, and from where to watch": lambda client: client.list_with_version(PODS, labels="!none"),
    "a create that is refused": lambda client: client.create(NAMESPACES, HOME, manager="m"),
    "a patch that is refused": lambda client: client.patch(
        PODS, NAME, TEAM, {"spec": {"hostname": "x"}}, patch=PatchType.MERGE, manager="m"
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_both_clients_return_the_same(server: ApiServer, call: Callable[[Client], Any]) -> None:
    """Whatever is answered, errors with their words among it."""
    assert _outcome(call, Direct.to(server)) == _outcome(call, Client.for_server(server.url))


def _outcome(call: Callable[[Client], Any], client: Client) -> Any:
    try:
        return call(client)
    except ClusterError as error:
        return type(error), str(error)


def test_nothing_is_shared_with_the_server(server: ApiServer) -> None:
    """What is changed on this side is not changed on the other, in what was sent as in what was got."""
    client, sent = Direct.to(server), {**OTHER, "metadata": {"name": "team-b", "labels": {"a": "b"}}}
    made = client.create(NAMESPACES, sent, manager="m")
    sent["metadata"]["labels"]["a"] = made["metadata"]["labels"]["a"] = "c"  # type: ignore[index]
    namespace = client.get(NAMESPACES, "team-b")
    assert namespace is not None
    assert namespace["metadata"]["labels"]["a"] == "b"
