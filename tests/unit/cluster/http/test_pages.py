"""Pages of lists are bounded by bytes, whatever the size of the objects of a tenant."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.http import answer_json
from muster.cluster.http.client import Client
from muster.cluster.observe.list_cache import Listing
from muster.cluster.observe.sweep import groups_and_owners
from muster.cluster.paging import MOST_SIZES, PageSizes
from muster.objects.resources import JOBS
from muster.runtime.handle import Handler
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support.builders import Object, a_job, a_namespace, labelled, named, of_uid

KIB = 1024
LARGE, SMALL = 20, 300


class NotingClient(Client):
    """Notes the limit of each request and the bytes of each answer that was read to its end."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.limits: list[int] = []
        self.sizes: list[int] = []

    def receive(
        self, method: str, path: str, query: Mapping[str, str], *arguments: Any, **options: Any
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Note it."""
        self.limits.append(int(query.get("limit", 0)))
        status, content, headers = super().receive(method, path, query, *arguments, **options)
        self.sizes.append(len(content))
        return status, content, headers


def a_large_job(number: int) -> Object:
    """A suspended Job without group labels with 100 KiB of environment, as any tenant can create."""
    job = a_job(named(f"a-{number:03d}"), of_uid(f"large-{number}"), label=None)
    environment = [{"name": "A", "value": "x" * 100 * KIB}]
    job["spec"]["template"]["spec"]["containers"] = [{"name": "a", "image": "a", "env": environment}]
    return job


@pytest.fixture(name="server", scope="module")
def _server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.load([*resource_definitions(), a_namespace()])
        server.load(a_large_job(number) for number in range(LARGE))
        server.load(a_job(named(f"b-{number:03d}"), of_uid(f"small-{number}")) for number in range(SMALL))
        yield server


def test_no_page_is_larger_than_twice_the_aim(server: ApiServer) -> None:
    """A page of all would have 2 MiB; pages get larger again after the large objects."""
    client = NotingClient.for_server(server.url, page_bytes=256 * KIB)
    names = [job["metadata"]["name"] for job in client.list(JOBS)]
    assert len(set(names)) == len(names) == LARGE + SMALL
    assert max(client.sizes) <= 512 * KIB
    assert client.limits[0] == 500
    assert len(client.limits) < LARGE + 10


def test_pages_of_many_small_values_are_smaller(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed they take fifteen times the bytes of the page."""
    monkeypatch.setattr(answer_json, "DENSE_VALUES", 10 * SMALL)
    client = NotingClient.for_server(server.url)
    assert len(client.list(JOBS)) == LARGE + SMALL
    assert client.limits[:2] == [500, 62]


def test_an_emoji_makes_pages_smaller() -> None:
    """With it Python stores each character of the page in four bytes."""
    with ApiServer() as server:
        server.load([*resource_definitions(), a_namespace()])
        for number in range(LARGE):
            job = a_large_job(number)
            job["metadata"]["annotations"] = {"a": "\N{ROCKET}"}
            server.load([job])
        client = NotingClient.for_server(server.url, page_bytes=256 * KIB)
        parsed: list[int] = []
        token = ""
        while not parsed or token:
            page = client.page(JOBS, token=token)
            token = page.token
            parsed.append(len(json.dumps(page.objects)))
    assert max(parsed) <= 2 * 256 * KIB / 4


@pytest.mark.thorough
def test_an_object_larger_than_a_page_is_a_page(server: ApiServer) -> None:
    """Else the list would never end."""
    client = NotingClient.for_server(server.url, page_bytes=KIB)
    assert len(client.list(JOBS)) == LARGE + SMALL
    assert max(client.sizes) > 100 * KIB


def test_a_page_that_comes_too_slowly_is_smaller_the_next_time() -> None:
    """A page of 500 would time out in every sweep."""

    class TimingOut(Client):
        limits: tuple[str, ...] = ()

        def receive(self, method: str, path: str, query: Mapping[str, str], *_: Any, **__: Any) -> Any:  # noqa: ARG002
            self.limits = (*self.limits, query["limit"])
            raise errors.Unavailable("timed out")

    client = TimingOut.for_server("http://127.0.0.1:1")
    for _ in range(4):
        with pytest.raises(errors.Unavailable):
            client.page(JOBS)
    assert client.limits == ("500", "62", "7", "1")


def test_a_page_at_most_doubles() -> None:
    """The objects of the next page may be larger than those of this one."""
    sizes = PageSizes(most=500, page_bytes=1000)
    for _ in range(3):
        sizes.shrink("/jobs")
    grown = []
    for _ in range(4):
        sizes.read("/jobs", objects=sizes.of("/jobs"), size=10 * sizes.of("/jobs"))
        grown.append(sizes.of("/jobs"))
    assert grown == [2, 4, 8, 16]
    sizes.read("/jobs", objects=16, size=1600)
    assert sizes.of("/jobs") == 10


def test_large_objects_of_a_namespace_make_no_pages_of_another_smaller(server: ApiServer) -> None:
    """A tenant's large pods would turn each list of 500 usual ones into a hundred requests."""
    client = NotingClient.for_server(server.url, page_bytes=256 * KIB)
    client.page(JOBS, "team-a")
    client.page(JOBS, "team-a")
    client.page(JOBS, "team-b")
    assert client.limits[0] == client.limits[-1] == 500
    assert min(client.limits) < LARGE


def test_few_page_sizes_are_remembered() -> None:
    """Namespaces may come and go."""
    sizes = PageSizes(most=500, page_bytes=1000)
    for number in range(2 * MOST_SIZES):
        sizes.shrink(f"/{number}")
    assert sizes.of("/0") == 500
    assert sizes.of(f"/{2 * MOST_SIZES - 1}") < 500
    assert len(sizes._sizes) <= MOST_SIZES


def kept(listing: Listing, body: Object, most_bytes: int = 2048) -> bytes:
    """What a sweep keeps of an object."""
    return listing.kept(body, most_bytes)


def test_of_a_job_without_group_labels_a_sweep_keeps_the_name() -> None:
    """Its annotations and labels may have a megabyte."""
    (listing,) = (listing for listing in groups_and_owners() if listing.resource == JOBS)
    bulk = labelled({f"x{number}": "x" * 60 for number in range(1000)})
    assert len(kept(listing, a_job(bulk, label=None), 1_000_000)) < 300
    assert len(kept(listing, a_job(bulk), 1_000_000)) > 60_000


def _writes(handler: Handler) -> int:
    """The number of writes so far, by the function's metrics."""
    lines = handler.metrics.exposition().decode().splitlines()
    calls = [line for line in lines if line.startswith("muster_api_calls_total")]
    verbs = ('verb="create"', 'verb="patch"', 'verb="update"')
    return sum(int(float(line.split()[-1])) for line in calls if any(verb in line for verb in verbs))
