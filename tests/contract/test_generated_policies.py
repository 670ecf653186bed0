"""Whatever valid policy is drawn, an API server accepts what it is compiled to."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from eventing.local.apiserver import ApiServer, resource_definitions
from shared.cluster.client import Client
from shared.objects.resources import NAMESPACES, PRIORITY_CLASSES, by_kind
from shared.policy.model import Observed
from tests.cluster import cluster
from tests.support.builders import Object
from tests.support.generated_policies import CLASSES, NOT_SLOW, compiled, worlds


class Server:
    """An API server that says what it thinks of objects."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._numbers = itertools.count()
        for one in CLASSES:
            if (
                client.get(PRIORITY_CLASSES, one.metadata.name) is None
            ):  # the real server is shared with others
                body = {**one.model_dump(by_alias=True), "metadata": {"name": one.metadata.name}}
                client.create(PRIORITY_CLASSES, body, manager="test")

    def takes(self, bodies: list[Object]) -> None:
        """Create all of them in a namespace of their own; raises where one is refused."""
        namespace = f"generated-{next(self._numbers)}"
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        self._client.create(NAMESPACES, home, manager="test")
        for body in bodies:
            placed = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
            resource = by_kind(body["apiVersion"], body["kind"])
            stored = self._client.create(resource, placed, manager="test")
            policy = body["spec"].get("schedulingPolicy")
            assert policy is None or stored["spec"]["schedulingPolicy"] == policy
        self._client.delete(NAMESPACES, namespace)


@pytest.fixture(scope="module")
def embedded() -> Iterator[Server]:
    """The embedded API server."""
    with ApiServer() as server:
        server.load(resource_definitions())
        yield Server(Client.for_server(server.url))


@NOT_SLOW
@given(world=worlds())
def test_a_valid_policy_compiles_to_objects_the_api_server_accepts(embedded: Server, world: Observed) -> None:
    """Workload, composites and groups, in this order, with what was sent kept."""
    bodies = compiled(world)
    if bodies:
        embedded.takes(bodies)


@pytest.mark.real
@pytest.mark.timeout(300)
@settings(NOT_SLOW, max_examples=60)
@given(world=worlds())
def test_the_real_api_server_accepts_them_too(bare_137: cluster.Cluster, world: Observed) -> None:
    """Kubernetes 1.37.1 with the gates CompositePodGroup and TopologyAwareWorkloadScheduling."""
    bodies = compiled(world)
    if bodies:
        _of(bare_137).takes(bodies)


_SERVERS: dict[str, Server] = {}


def _of(made: cluster.Cluster) -> Server:
    """One client for all examples of a run."""
    path = str(made.kubeconfig)
    if path not in _SERVERS:
        _SERVERS[path] = Server(Client.from_kubeconfig(path))
    return _SERVERS[path]
