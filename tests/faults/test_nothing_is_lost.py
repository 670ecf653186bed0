"""Faults between the functions and a sound cluster: gangs are placed whatever is refused, lost or late.

Which requests fail is chosen by a seeded generator, so a failure can be reproduced.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from muster.local import stack as stack_module
from muster.local.stack import Stack, StackOptions
from muster.objects.resources import (
    EVENTS,
    JOBS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    TRAINJOBS,
    WORKLOADS,
    Resource,
)
from muster.policy.group_labels import GATE
from muster.simulator.apiserver.http.requests import Request
from muster.simulator.broker import Broker

NAMESPACE = "faults"
FUNCTIONS = {f"muster-{folder.name.replace('_', '-')}" for folder in Path("functions").iterdir()}
"""The functions' user agents."""

PATIENCE = 25.0
SWEEP = {"specversion": "1.0", "id": "sweep", "source": "/tests", "type": "dev.muster.sweep"}

Fault = Callable[[random.Random], tuple[int, Mapping[str, str], Any] | None]


def status(code: int, reason: str) -> tuple[int, Mapping[str, str], Any]:
    """Return an error answer of the API server."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return code, {}, body | {"message": f"a fault of this test: {reason}"}


def refuses_one_in_eight(chance: random.Random) -> tuple[int, Mapping[str, str], Any] | None:
    """Refuse a request: a conflict, an overload, a crash or expired credentials."""
    answers = ((409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError"), (401, "Unauthorized"))
    return status(*chance.choice(answers)) if chance.random() < 0.125 else None


def is_slow(chance: random.Random) -> None:
    """Delay every fifth request, so that events overtake one another."""
    if chance.random() < 0.2:
        time.sleep(0.15)


def is_away_for_two_seconds() -> Fault:
    """Answer 503 for the first two seconds."""
    begin = time.monotonic()

    def away(_chance: random.Random) -> tuple[int, Mapping[str, str], Any] | None:
        return status(503, "ServiceUnavailable") if time.monotonic() - begin < 2.0 else None

    return away


@contextmanager
def a_cluster(fault: Fault | None = None) -> Iterator[Stack]:
    """Run the local stack with a fault in the requests of its functions."""
    with Stack(StackOptions()) as stack:
        assert stack.server is not None
        metadata = {"name": NAMESPACE, "labels": {"muster.dev/gang-jobs": "enabled"}}
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        stack.client.create(NAMESPACES, home, manager="tests")
        chance = random.Random(1)  # noqa: S311 - chance that can be repeated is the point

        def intercept(request: Request) -> tuple[int, Mapping[str, str], Any] | None:
            return fault(chance) if fault and request.headers.get("user-agent") in FUNCTIONS else None

        stack.server.intercept = intercept
        yield stack


def an_indexed_job(name: str, pods: int) -> dict[str, Any]:
    """Return a Job that is a gang of this number of pods, which run until they are deleted."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    spec = {"completionMode": "Indexed", "parallelism": pods, "completions": pods}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec | {"template": template},
    }


def a_trainjob(name: str, nodes: int) -> dict[str, Any]:
    """Return a torch TrainJob."""
    return {
        "apiVersion": TRAINJOBS.api_version,
        "kind": TRAINJOBS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": nodes}},
    }


def sweep(stack: Stack) -> None:
    """Send a sweep, as a PingSource does every minute."""
    headers = {"content-type": "application/cloudevents+json"}
    event = SWEEP | {"id": f"sweep-{time.monotonic_ns()}"}
    answer = urllib3.request("POST", stack.broker_url, headers=headers, body=json.dumps(event))
    assert answer.status == 202


def wait_until(stack: Stack, holds: Callable[[], object]) -> None:
    """Sweep until a condition holds; fail with the state of the cluster."""
    end, next_sweep = time.monotonic() + PATIENCE, time.monotonic() + 2.0
    while not holds():
        assert time.monotonic() < end, what_is_there(stack)
        if time.monotonic() > next_sweep:
            sweep(stack)
            next_sweep = time.monotonic() + 1.0
        time.sleep(0.05)


def listed(stack: Stack, resource: Resource) -> list[dict[str, Any]]:
    """Return the objects of a kind in the test's namespace."""
    return stack.client.list(resource, NAMESPACE)


def what_is_there(stack: Stack) -> str:
    """Return pods, groups and conditions, for the message of a failure."""
    objects = [*listed(stack, PODS), *listed(stack, POD_GROUPS), *owners(stack)]
    shown = [(obj["kind"], obj["metadata"]["name"], obj["spec"], conditions_of(obj)) for obj in objects]
    return f"{shown}, dead letters {len(stack.dead_letters)}"


def owners(stack: Stack) -> list[dict[str, Any]]:
    """Return the objects that the user created: TrainJobs, and Jobs without a JobSet."""
    plain = [job for job in listed(stack, JOBS) if not job["metadata"].get("ownerReferences")]
    return listed(stack, TRAINJOBS) + plain


def conditions_of(owner: Mapping[str, Any]) -> dict[str, str]:
    """Return Muster's conditions on an owner, status by type without prefix."""
    conditions = (owner.get("status") or {}).get("conditions") or []
    return {condition["type"].removeprefix("muster.dev/"): condition["status"] for condition in conditions}


def all_is_well(stack: Stack, pods: int) -> bool:
    """Return whether every pod is bound and ungated, and every owner's condition says so."""
    there = listed(stack, PODS)
    bound = [pod for pod in there if pod["spec"].get("nodeName")]
    gated = [
        pod for pod in there if GATE in {gate["name"] for gate in pod["spec"].get("schedulingGates") or []}
    ]
    statuses = [conditions_of(owner).get("PodGroupsScheduled") for owner in owners(stack)]
    return len(bound) == len(there) == pods and not gated and set(statuses) == {"True"}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda: refuses_one_in_eight, id="the API server refuses one request in eight"),
        pytest.param(lambda: is_slow, id="the API server is slow at times, so events overtake one another"),
        pytest.param(is_away_for_two_seconds, id="the API server is away for two seconds"),
    ],
)
def test_gangs_are_placed_whatever_the_api_server_answers(fault: Callable[[], Fault]) -> None:
    """With each fault every gang finally has its Workload, its group and its nodes."""
    with a_cluster(fault()) as stack:
        stack.client.create(TRAINJOBS, a_trainjob("llama", 3), manager="tests")
        stack.client.create(JOBS, an_indexed_job("sweep", 4), manager="tests")
        wait_until(stack, lambda: all_is_well(stack, 7))
        sizes = {
            group["metadata"]["name"].split("-")[0]: group["spec"]["schedulingPolicy"]
            for group in listed(stack, POD_GROUPS)
        }
        assert sizes == {"llama": {"gang": {"minCount": 3}}, "sweep": {"gang": {"minCount": 4}}}
        assert len(listed(stack, WORKLOADS)) == 2


def test_gangs_are_placed_although_the_source_loses_and_doubles_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A third of the events is lost and a third doubled; sweeps repair it."""
    chance = random.Random(1)  # noqa: S311 - chance that can be repeated is the point
    whole = stack_module._publish_to

    def lossy(broker: Broker) -> Callable[[Mapping[str, str], bytes], int]:
        publish = whole(broker)

        def sink(headers: Mapping[str, str], body: bytes) -> int:
            for _ in range(chance.randrange(3)):
                publish(headers, body)
            return 202

        return sink

    monkeypatch.setattr(stack_module, "_publish_to", lossy)
    with a_cluster() as stack:
        stack.client.create(TRAINJOBS, a_trainjob("llama", 3), manager="tests")
        stack.client.create(JOBS, an_indexed_job("sweep", 4), manager="tests")
        wait_until(stack, lambda: all_is_well(stack, 7))


def test_a_job_made_while_all_functions_were_down_is_found_by_a_sweep() -> None:
    """The functions never got an event about this gang."""
    with a_cluster(lambda _chance: status(503, "ServiceUnavailable")) as stack:
        assert stack.server is not None
        stack.client.create(JOBS, an_indexed_job("early", 3), manager="tests")
        wait_until(stack, lambda: len(listed(stack, PODS)) == 3)
        wait_until(stack, lambda: len(stack.dead_letters) > 0)
        assert not listed(stack, WORKLOADS)
        stack.server.intercept = None
        sweep(stack)
        wait_until(stack, lambda: all_is_well(stack, 3))


def test_an_orphaning_delete_leaves_nothing_behind_after_a_sweep() -> None:
    """With the default deletion of a Job its groups are orphaned; a sweep deletes them."""
    with a_cluster() as stack:
        stack.client.create(JOBS, an_indexed_job("brief", 2), manager="tests")
        wait_until(stack, lambda: all_is_well(stack, 2))
        stack.client.delete(JOBS, "brief", NAMESPACE, propagation="Orphan")
        for pod in listed(stack, PODS):
            stack.client.delete(PODS, pod["metadata"]["name"], NAMESPACE)
        wait_until(stack, lambda: not (listed(stack, WORKLOADS) or listed(stack, POD_GROUPS)))
        assert not [event for event in listed(stack, EVENTS) if event.get("type") == "Warning"]
