"""Lists as of an object just read, and lists of the newest state where that one is not to be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from muster.cluster.http.client import Client
from muster.cluster.interface import CACHED
from muster.cluster.observe.owner import read_owner
from muster.cluster.versioned import Versioned
from muster.objects.resources import JOBS, WORKLOADS
from muster.runtime.deadline_client import DeadlineClient
from muster.simulator.apiserver import ApiServer
from tests.support.builders import a_job, a_namespace, a_users_workload, ref

NS = "team-a"


class VersionsClient(Client):
    """Notes the resourceVersion and its match in each list."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.versions: list[tuple[str, str]] = []

    def receive(
        self, method: str, path: str, query: Mapping[str, str], *arguments: Any, **options: Any
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Note it, and send the request."""
        if "limit" in query:
            self.versions.append((query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")))
        return super().receive(method, path, query, *arguments, **options)


@pytest.fixture(name="server")
def _server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.load([a_namespace()])
        yield server


@pytest.fixture(name="client")
def _client(server: ApiServer) -> VersionsClient:
    return VersionsClient.for_server(server.url)


def names(client: Client, as_of: str) -> list[str]:
    """The names of the listed Jobs."""
    return [job["metadata"]["name"] for job in client.list(JOBS, NS, as_of=as_of)]


def add_job(client: Client, name: str) -> str:
    """Create a Job; returns its resourceVersion."""
    body = a_job()
    body["metadata"] = {"name": name, "namespace": NS}
    body["spec"]["template"]["spec"] |= {"restartPolicy": "Never"}
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/train"
    created = client.create(JOBS, body, manager="test")
    return str(created["metadata"]["resourceVersion"])


def test_an_exact_state_has_no_later_object(client: VersionsClient) -> None:
    """The list of the newest state and that of the cache have it."""
    version = add_job(client, "first")
    add_job(client, "second")
    assert names(client, version) == ["first"]
    assert names(client, "") == names(client, CACHED) == ["first", "second"]
    assert client.versions == [(version, "Exact"), ("", ""), (CACHED, "")]


def test_a_state_that_was_compacted_is_replaced_by_the_newest(
    server: ApiServer, client: VersionsClient
) -> None:
    """410; the next list asks for an exact state again."""
    version = add_job(client, "first")
    newer = add_job(client, "second")
    server.forget_history()
    assert names(client, version) == names(client, newer) == ["first", "second"]
    assert client.versions == [(version, "Exact"), ("", ""), (newer, "Exact")]


def test_after_an_unreached_version_no_version_is_sent(client: VersionsClient) -> None:
    """Resources in several etcds have several counters; each such list would take three seconds."""
    add_job(client, "first")
    assert names(client, "9000000000") == names(client, "1") == ["first"]
    assert client.versions == [("9000000000", "Exact"), ("", ""), ("", "")]


@pytest.mark.parametrize("newest", [True, False])
def test_a_sweep_reads_the_newest_state(client: VersionsClient, newest: bool) -> None:
    """The objects that it reads may have changed last when Muster was not running."""
    version = add_job(client, "first")
    cluster = DeadlineClient(Versioned(client), 5)
    cluster.newest = newest
    cluster.list(JOBS, NS, as_of=version)
    assert client.versions == [("", "") if newest else (version, "Exact")]


def test_the_state_is_as_new_as_everything_read_before(client: VersionsClient) -> None:
    """A user's Workload that is younger than its Job is seen when the event is about the Workload."""
    add_job(client, "llama")
    body = a_users_workload()
    body["metadata"] = {"name": "mine", "namespace": NS}
    body["spec"]["controllerRef"]["name"] = "llama"
    workload = client.create(WORKLOADS, body, manager="test")
    live, _ = read_owner(Versioned(client), ref(workload))
    assert live.as_of == workload["metadata"]["resourceVersion"]
    assert [found.metadata.name for found in live.other_workloads] == ["mine"]
