"""Every example and every shipped runtime becomes what was reviewed, and the API server takes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.cluster.http.client import Client
from muster.objects.resources import by_kind
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.examples import golden
from tests.support import builders as b
from tests.support.builders import holds


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
    """An API server that has every kind and the namespaces of the examples."""
    bodies = (body for name in golden.NAMES for body in golden.made(golden.named(name)))
    namespaces = [b.a_namespace(b.named(name)) for name in {body["metadata"]["namespace"] for body in bodies}]
    with ApiServer() as server:
        server.load([*resource_definitions(), *namespaces])
        yield Client.for_server(server.url)


@pytest.mark.parametrize("name", golden.NAMES)
def test_the_api_server_accepts_the_created_objects(client: Client, name: str) -> None:
    """Every Workload and group is created, with all its fields kept."""
    bodies = [body for body in golden.made(golden.named(name)) if body["kind"] != "Event"]
    for body in bodies:
        resource, metadata = by_kind(body["apiVersion"], body["kind"]), body["metadata"]
        stored = client.create(resource, body, manager="test")
        assert holds(stored["spec"], body["spec"]), stored["spec"]
        client.delete(resource, metadata["name"], metadata["namespace"])
    assert bodies or name == "kai-queue"
