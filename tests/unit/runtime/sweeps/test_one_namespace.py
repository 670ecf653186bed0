"""A function with permissions for one namespace sends no request about others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from functions.create_workload.function.step import STEP
from muster.objects.meta import ObjectRef
from muster.objects.resources import JOBS, NODES
from muster.runtime.config import Settings, connect
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support.builders import a_job, named, of_uid

NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def _job_in(namespace: str, uid: str) -> dict[str, Any]:
    job = a_job(named(f"in-{namespace}"), of_uid(uid))
    job["metadata"]["namespace"] = namespace
    return job


@pytest.fixture(name="server", scope="module")
def _server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.load(resource_definitions())
        server.load([NODE, _job_in("team-a", "00000001"), _job_in("team-b", "00000002")])
        yield server


@pytest.mark.parametrize(
    ("namespace", "found"),
    [
        pytest.param("", ["in-team-a", "in-team-b"], id="all namespaces by default"),
        pytest.param("team-a", ["in-team-a"], id="the one that is set"),
    ],
)
def test_a_sweep_looks_at(server: ApiServer, namespace: str, found: list[str]) -> None:
    """A Role does not allow a list of all namespaces, and a sweep that asked for it would be refused."""
    cluster = connect(Settings(api_server=server.url, namespace=namespace))
    subjects = [
        subject if isinstance(subject, ObjectRef) else subject.subject
        for subject in STEP.responsible_for(cluster)
    ]
    assert sorted(subject.name for subject in subjects) == found


def test_other_lists_are_as_asked_for(server: ApiServer) -> None:
    """A namespace that the caller names stays, and what is in no namespace has none."""
    cluster = connect(Settings(api_server=server.url, namespace="team-a"))
    assert [job["metadata"]["name"] for job in cluster.list(JOBS, "team-b")] == ["in-team-b"]
    assert [obj["metadata"]["name"] for obj in cluster.list(NODES)] == ["n"]
