"""An API server with what jobs need, for the tests that run the controllers on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.cluster.http.client import Client
from muster.objects.resources import NAMESPACES, NODES
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.controllers import node
from tests.unit.simulator.controllers.stack import (
    NAMESPACE,
)


@pytest.fixture
def server(caplog: pytest.LogCaptureFixture) -> Iterator[ApiServer]:
    """An API server with a namespace, three nodes and the kinds of JobSet and Trainer.

    No controller may have stumbled by the end of the test.
    """
    with ApiServer() as started:
        started.load(resource_definitions())
        client = Client.for_server(started.url)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        client.create(NAMESPACES, namespace, manager="test")
        for index in (1, 2, 3):
            client.create(NODES, node(f"node-{index}", gpu=4), manager="test")
        yield started
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.fixture
def client(server: ApiServer) -> Client:
    """A client of that server."""
    return Client.for_server(server.url)
