"""API servers accept the objects that Muster creates for any valid policy (property test)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.objects.resources import NAMESPACES, PRIORITY_CLASSES, by_kind
from muster.simulator.apiserver import ApiServer, Gates, resource_definitions
from muster.simulator.direct import Direct
from tests.cluster import cluster
from tests.e2e.owners.test_jobset_gates import OPTIONS as WITH_OPTIONAL_GATES
from tests.support.builders import Object, holds
from tests.support.generated_policies import CLASSES, NOT_SLOW, compiled, observations
from tests.support.planning import Observed


class DryRunServer:
    """An API server to which objects are sent, in a new namespace each time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._numbers = itertools.count()
        for priority_class in CLASSES:
            body = {
                **priority_class.model_dump(by_alias=True),
                "metadata": {"name": priority_class.metadata.name},
            }
            client.create(PRIORITY_CLASSES, body, manager="test")

    def takes(self, bodies: list[Object]) -> None:
        """Create objects in a new namespace; raises if one is refused."""
        namespace = f"generated-{next(self._numbers)}"
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        self._client.create(NAMESPACES, home, manager="test")
        for body in bodies:
            placed = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
            resource = by_kind(body["apiVersion"], body["kind"])
            stored = self._client.create(resource, placed, manager="test")
            assert holds(stored["spec"], body["spec"]), stored["spec"]
        self._client.delete(NAMESPACES, namespace)


@pytest.fixture(scope="module")
def embedded() -> Iterator[DryRunServer]:
    """The embedded API server, which drops nothing."""
    gates = Gates(pod_group_preemption_policy=True, dra_workload_resource_claims=True)
    with ApiServer(gates=gates) as server:
        server.load(resource_definitions())
        yield DryRunServer(Direct.to(server))


@pytest.fixture(scope="module")
def real() -> Iterator[DryRunServer]:
    """The real one, alone with etcd."""
    with cluster.running(cluster.ClusterOptions(WITH_OPTIONAL_GATES.release, controllers=())) as made:
        yield DryRunServer(client_of(str(made.kubeconfig)))


@NOT_SLOW
@given(world=observations())
def test_a_valid_policy_compiles_to_objects_the_api_server_accepts(
    embedded: DryRunServer, world: Observed
) -> None:
    """Workload, composites and groups are accepted in this order, and every field is stored."""
    bodies = compiled(world)
    if bodies:
        embedded.takes(bodies)


@pytest.mark.real
@pytest.mark.timeout(300)
@settings(NOT_SLOW, max_examples=60)
@given(world=observations())
def test_the_real_api_server_accepts_them_too(real: DryRunServer, world: Observed) -> None:
    """Kubernetes 1.37.1 with the gates of every field that a policy has."""
    bodies = compiled(world)
    if bodies:
        real.takes(bodies)
