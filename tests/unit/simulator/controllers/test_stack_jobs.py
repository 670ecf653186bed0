"""Gangs and plain Jobs on the embedded API server: the simulated controllers at work, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster.http.client import Client
from muster.objects.resources import EVENTS, JOBS, NAMESPACES, NODES, POD_GROUPS
from muster.simulator.apiserver import ApiServer, Gates
from muster.simulator.controllers import Controllers, node
from muster.simulator.controllers.scheduler.controller import OLD_POD_GROUPS
from tests.unit.simulator.controllers.stack import (
    FAST,
    FOR_EVER,
    NAMESPACE,
    bound_pods,
    change,
    has,
    make_job,
    make_pod_group,
    pods_of,
    settled,
    until,
)


@pytest.mark.thorough
def test_group_waits_for_its_pod_group_and_is_then_bound_together(server: ApiServer, client: Client) -> None:
    """Pods of a group that does not exist stay unbound silently; the PodGroup's creation binds them."""
    make_job(client, 3, group="gang")
    with Controllers(server.url, kubelet=FOR_EVER):
        until(lambda: len(pods_of(client)) == 3)
        assert settled(client, lambda: bound_pods(client)) == []
        assert not any(
            condition["type"] == "PodScheduled"
            for pod in pods_of(client)
            for condition in pod["status"].get("conditions") or []
        )
        make_pod_group(client, 3)
        until(lambda: len(pods_of(client, "Running")) == 3)
        assert has(client, POD_GROUPS, "gang", "PodGroupInitiallyScheduled")


@pytest.mark.thorough
def test_gang_without_room_is_bound_when_a_node_comes(server: ApiServer, client: Client) -> None:
    """Four pods for three nodes: nothing is bound and the group says why, until a fourth node is there."""
    make_pod_group(client, 4)
    make_job(client, 4, group="gang", cpu="6")
    with Controllers(server.url, kubelet=FOR_EVER):
        until(lambda: has(client, POD_GROUPS, "gang", "PodGroupInitiallyScheduled", "False"))
        assert settled(client, lambda: bound_pods(client)) == []
        client.create(NODES, node("node-4"), manager="test")
        until(lambda: len(pods_of(client, "Running")) == 4)
        assert has(client, POD_GROUPS, "gang", "PodGroupInitiallyScheduled")


@pytest.mark.thorough
def test_two_gangs_that_each_need_the_cluster_take_turns(server: ApiServer, client: Client) -> None:
    """Of two gangs that each fill all nodes one is bound whole, then the other; never both in part."""
    bound: list[str] = []

    def note(request: Any) -> None:
        if request.path.endswith("/binding"):
            bound.append(request.path.split("/")[-2].split("-")[0])

    server.intercept = note
    for name in ("left", "right"):
        make_pod_group(client, 3, name)
        make_job(client, 3, group=name, cpu="6", name=name)
    with Controllers(server.url, kubelet=FAST):
        until(lambda: all(has(client, JOBS, name, "Complete") for name in ("left", "right")))
    first = bound[0]
    second = {"left": "right", "right": "left"}[first]
    assert bound == [first] * 3 + [second] * 3


def test_job_is_scaled_up_and_down(server: ApiServer, client: Client) -> None:
    """A plain Job follows its parallelism: two more pods, then only the first two are left."""
    make_job(client, 4)
    with Controllers(server.url, kubelet=FOR_EVER):
        until(lambda: len(pods_of(client, "Running")) == 4)
        change(client, JOBS, "sweep", {"parallelism": 6, "completions": 6})
        until(lambda: len(pods_of(client, "Running")) == 6)
        change(client, JOBS, "sweep", {"parallelism": 2, "completions": 2})
        until(lambda: len(pods_of(client)) == 2)
        assert sorted(pod["spec"]["hostname"] for pod in pods_of(client)) == ["sweep-0", "sweep-1"]
        until(lambda: (client.get(JOBS, "sweep", NAMESPACE) or {})["status"].get("active") == 2)
        assert "failed" not in (client.get(JOBS, "sweep", NAMESPACE) or {})["status"]


def test_deleted_job_takes_its_pods_along(server: ApiServer, client: Client) -> None:
    """Pods of a deleted Job lose the tracking finalizer and go."""
    make_job(client, 3)
    with Controllers(server.url, kubelet=FOR_EVER):
        until(lambda: len(pods_of(client, "Running")) == 3)
        client.delete(JOBS, "sweep", NAMESPACE)
        until(lambda: not pods_of(client))


def test_orphaned_pods_lose_their_finalizer(server: ApiServer, client: Client) -> None:
    """Pods of a Job that was deleted without them run on and can be deleted by any client."""
    make_job(client, 2)
    with Controllers(server.url, kubelet=FOR_EVER):
        until(lambda: len(pods_of(client, "Running")) == 2)
        client.delete(JOBS, "sweep", NAMESPACE, propagation="Orphan")
        until(lambda: not any(pod["metadata"].get("finalizers") for pod in pods_of(client)))
        assert len(pods_of(client, "Running")) == 2


def test_refused_pod_is_said_in_an_event_and_tried_again(server: ApiServer, client: Client) -> None:
    """A quota that refuses pods shows as FailedCreate on the Job, and the pods come when it lets them."""
    refusal = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "quota"}

    def refuse(request: Any) -> tuple[int, dict[str, str], Any] | None:
        refused = request.method == "POST" and request.path.endswith("/pods")
        return (403, {}, refusal) if refused else None

    server.intercept = refuse
    make_job(client, 2)
    with Controllers(server.url, kubelet=FOR_EVER):
        event = until(lambda: client.list(EVENTS, NAMESPACE))[0]
        assert (event["reason"], event["involvedObject"]["name"]) == ("FailedCreate", "sweep")
        assert "quota" in event["message"]
        server.intercept = None
        until(lambda: len(pods_of(client, "Running")) == 2)


def test_compacted_history_is_listed_again(server: ApiServer, client: Client) -> None:
    """Controllers that missed changes take them from a new list."""
    with Controllers(server.url, kubelet=FOR_EVER):
        make_job(client, 2)
        until(lambda: len(pods_of(client, "Running")) == 2)
        server.forget_history()
        change(client, JOBS, "sweep", {"parallelism": 3, "completions": 3})
        until(lambda: len(pods_of(client, "Running")) == 3)


@pytest.mark.thorough
def test_api_behind_a_gate_is_not_needed(server: ApiServer, client: Client) -> None:
    """Without the PodGroup API the pods of a Job run ungrouped."""
    server.gates = Gates(generic_workload=False, composite_pod_group=False)
    make_job(client, 2, group="gang")
    with Controllers(server.url, kubelet=FAST):
        until(lambda: has(client, JOBS, "sweep", "Complete"))


def test_groups_of_the_release_before_are_placed_too() -> None:
    """Kubernetes 1.36 serves v1alpha2 alone and calls the group's condition PodGroupScheduled."""
    with ApiServer(release="1.36") as server:
        client = Client.for_server(server.url)
        client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}}, manager="test")
        client.create(NODES, node("node-1"), manager="test")
        make_pod_group(client, 2, version="v1alpha2")
        make_job(client, 2, group="gang")
        with Controllers(server.url, only={"job", "scheduler"}):
            until(lambda: has(client, OLD_POD_GROUPS, "gang", "PodGroupScheduled"))
            until(lambda: len(bound_pods(client)) == 2)


def test_only_the_chosen_controllers_run(server: ApiServer, client: Client) -> None:
    """With the Job controller alone the pods are made and never bound."""
    make_job(client, 2)
    with Controllers(server.url, only={"job"}):
        until(lambda: len(pods_of(client)) == 2)
        assert settled(client, lambda: bound_pods(client)) == []


def test_unknown_controller_is_refused() -> None:
    """A name that is no controller is an error at once."""
    with pytest.raises(ValueError, match="quota"):
        Controllers("http://127.0.0.1:1", only={"quota"})
