"""Every example and every shipped runtime becomes what was reviewed, and the API server takes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.cluster.http.client import Client
from muster.objects.resources import by_kind
from muster.simulator.apiserver import ApiServer, Gates, resource_definitions
from tests.examples import golden
from tests.support.holding import holds

ALL_GATES = Gates()


@pytest.mark.parametrize("path", golden.GOLDENS, ids=lambda path: str(path.name))
def test_a_golden_file_is_up_to_date(path: Path) -> None:
    """`python -m tests.examples.golden` writes them anew; the diff is what has to be reviewed."""
    assert path.read_text() == golden.content(path)


def test_no_golden_file_is_left_over() -> None:
    """A file of an example that is gone proves nothing."""
    assert {path for path in golden.FOLDER.iterdir() if path.suffix != ".pyc"} == set(golden.GOLDENS)
    assert len(golden.EXAMPLES) >= 9
    assert len(golden.RUNTIMES) == 10


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """An API server that has every kind and no object."""
    with ApiServer(gates=ALL_GATES) as server:
        server.load(resource_definitions())
        yield Client.for_server(server.url)


@pytest.mark.parametrize("name", golden.NAMES)
def test_the_api_server_accepts_the_created_objects(client: Client, name: str) -> None:
    """Every Workload and group is created, with all its fields kept."""
    bodies = [body for body in golden.made(golden.named(name)) if body["kind"] != "Event"]
    for namespace in {body["metadata"]["namespace"] for body in bodies}:
        resource = by_kind("v1", "Namespace")
        if client.get(resource, namespace) is None:
            home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            client.create(resource, home, manager="test")
    for body in bodies:
        stored = client.create(by_kind(body["apiVersion"], body["kind"]), body, manager="test")
        assert holds(stored["spec"], body["spec"]), stored["spec"]
        client.delete(
            by_kind(body["apiVersion"], body["kind"]), body["metadata"]["name"], body["metadata"]["namespace"]
        )
    assert bodies or name == "kai-queue"
