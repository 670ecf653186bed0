"""Lists of an event keep nothing of what a tenant can write into containers, volumes and managedFields."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator

import pytest

from muster.cluster.http.client import Client
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.paging import EVENT_TEXT, LEFT_OUT, without_containers
from muster.cluster.versioned import Versioned
from muster.objects.resources import EVENTS, JOBS, PODS
from muster.policy.group_labels import GATE
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.runtime.sharing.deadline_client import DeadlineClient
from muster.simulator.apiserver import ApiServer
from tests.support.builders import Object, a_job, a_jobset, a_namespace, a_pod, named, of_uid

LARGE = 200 * 1024
PODS_OF_A_TENANT = 200


def a_large_pod(number: int) -> Object:
    """A pod with 200 KiB of environment."""
    pod = a_pod(None, number, named(f"a-{number}"), of_uid(f"a-{number}"))
    environment = [{"name": "A", "value": "x" * LARGE}]
    pod["spec"]["containers"] = [{"name": "a", "image": "a", "env": environment}]
    pod["spec"]["volumes"] = [{"name": "a", "emptyDir": {}}]
    pod["metadata"]["managedFields"] = [{"manager": "me", "fieldsV1": {"f:spec": {}}}]
    return pod


def a_long_event() -> Object:
    """An Event of three long texts."""
    pod = {"apiVersion": "v1", "kind": "Pod", "namespace": "team-a", "name": "a-0", "fieldPath": "x" * LARGE}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "long", "namespace": "team-a", "managedFields": [{"manager": "me"}]},
        "involvedObject": pod,
        "reason": "x" * LARGE,
        "message": "x" * LARGE,
        "count": 3,
    }


@pytest.fixture(name="cluster", scope="module")
def _cluster() -> Iterator[DeadlineClient]:
    with ApiServer() as server:
        server.load([a_namespace(), a_long_event(), *map(a_large_pod, range(PODS_OF_A_TENANT))])
        yield DeadlineClient(Versioned(Client.for_server(server.url)), 60)


@pytest.mark.thorough
def test_lists_contain_the_fields_that_steps_read(cluster: DeadlineClient) -> None:
    """Gates, groups, labels and status, and no containers; a GET has the whole object."""
    body = cluster.list(PODS, "team-a")[0]
    assert not LEFT_OUT.intersection(body["spec"])
    assert "managedFields" not in body["metadata"]
    assert {"schedulingGates", "schedulingGroup"} <= set(body["spec"])
    assert cluster.get(PODS, "a-0", "team-a")["spec"]["containers"]  # type: ignore[index]  # it exists


def test_few_gates_are_kept_of_a_pod() -> None:
    """Muster's is among them, wherever it is."""
    gates = [{"name": f"example.com/{number}"} for number in range(1000)]
    body = a_large_pod(0)
    body["spec"]["schedulingGates"] = [*gates, {"name": GATE}]
    kept = without_containers(body)["spec"]["schedulingGates"]
    assert kept == [{"name": GATE}, *gates[:17]]


def test_the_beginning_of_the_texts_of_an_event_is_kept(cluster: DeadlineClient) -> None:
    """A plan needs names, and as much of a message as a condition may have."""
    (event,) = cluster.list(EVENTS, "team-a")
    assert event["message"] == event["reason"] == event["involvedObject"]["fieldPath"] == "x" * EVENT_TEXT
    assert event["involvedObject"]["name"] == "a-0"
    assert (event["metadata"]["name"], event["count"]) == ("long", 3)
    assert "managedFields" not in event["metadata"]
    assert len(cluster.get(EVENTS, "long", "team-a")["message"]) == LARGE  # type: ignore[index]  # it exists


@pytest.mark.thorough
def test_the_memory_of_a_list_is_that_of_a_page(cluster: DeadlineClient) -> None:
    """40 MiB of pods are read in pages of 4 MiB, of which nearly nothing is kept."""
    tracemalloc.start()
    try:
        listed = cluster.list(PODS, "team-a")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(listed) == PODS_OF_A_TENANT
    assert len(json.dumps(listed)) < PODS_OF_A_TENANT * 2048
    assert kept < PODS_OF_A_TENANT * LARGE / 4


def test_views_read_the_same_from_light_objects() -> None:
    """Also the pod templates of a JobSet's Jobs."""
    job, jobset = a_job(), a_jobset()
    assert Job.read(without_containers(job)) == Job.read(job)
    assert JobSet.read(without_containers(jobset)) == JobSet.read(jobset)
    assert "containers" in Snapshot([job]).list(JOBS)[0]["spec"]["template"]["spec"]
    assert "containers" not in without_containers(job)["spec"]["template"]["spec"]
