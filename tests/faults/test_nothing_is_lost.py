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
from muster.local.stack import Stack
from muster.objects.resources import (
    JOBS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    TRAINJOBS,
    WORKLOADS,
    Resource,
)
from muster.replay.summary import gates, muster_conditions
from muster.simulator.apiserver.http import Request
from muster.simulator.broker import Broker
from tests.e2e.support import owners

NAMESPACE = "faults"
USER_AGENTS = {f"muster-{folder.name.replace('_', '-')}" for folder in Path("functions").iterdir()}
PATIENCE = 25.0

Answer = tuple[int, Mapping[str, str], Any]
Fault = Callable[[random.Random], Answer | None]


def status(code: int, reason: str) -> Answer:
    """Return an error answer of the API server."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return code, {}, body | {"message": f"a fault of this test: {reason}"}


def refuses_one_in_eight(chance: random.Random) -> Answer | None:
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

    def away(_chance: random.Random) -> Answer | None:
        return status(503, "ServiceUnavailable") if time.monotonic() - begin < 2.0 else None

    return away


@contextmanager
def a_cluster(fault: Fault | None = None) -> Iterator[Stack]:
    """Run the local stack with a fault in the requests of its functions."""
    with Stack() as stack:
        assert stack.server is not None
        metadata = {"name": NAMESPACE, "labels": {"muster.dev/gang-jobs": "enabled"}}
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        stack.client.create(NAMESPACES, home, manager="tests")
        chance = random.Random(1)  # noqa: S311 - chance that can be repeated is the point

        def intercept(request: Request) -> Answer | None:
            return fault(chance) if fault and request.headers.get("user-agent") in USER_AGENTS else None

        stack.server.intercept = intercept
        yield stack


def create(stack: Stack, resource: Resource, body: dict[str, Any]) -> None:
    """Create a gang in the test's namespace."""
    body["metadata"]["namespace"] = NAMESPACE
    stack.client.create(resource, body, manager="tests")


def create_two_gangs(stack: Stack) -> None:
    """Create a TrainJob of three pods and a Job of four."""
    create(stack, TRAINJOBS, owners.a_trainjob("llama", "torch-distributed", nodes=3))
    create(stack, JOBS, owners.a_job("sweep", pods=4))


def sweep(stack: Stack) -> None:
    """Send a sweep, as a PingSource does every minute."""
    headers = {"content-type": "application/cloudevents+json"}
    event = {"specversion": "1.0", "source": "/tests", "type": "dev.muster.sweep"}
    body = json.dumps(event | {"id": f"sweep-{time.monotonic_ns()}"})
    assert urllib3.request("POST", stack.broker_url, headers=headers, body=body).status == 202


def wait_until(stack: Stack, holds: Callable[[], object]) -> None:
    """Sweep until a condition holds; fail with the state of the cluster."""
    end, next_sweep = time.monotonic() + PATIENCE, time.monotonic() + 2.0
    while not holds():
        assert time.monotonic() < end, [*listed(stack, PODS), *listed(stack, POD_GROUPS), *roots(stack)]
        if time.monotonic() > next_sweep:
            sweep(stack)
            next_sweep = time.monotonic() + 1.0
        time.sleep(0.05)


def listed(stack: Stack, resource: Resource) -> list[dict[str, Any]]:
    """Return the objects of a kind in the test's namespace."""
    return stack.client.list(resource, NAMESPACE)


def roots(stack: Stack) -> list[dict[str, Any]]:
    """Return the objects that the user created: TrainJobs, and Jobs without a JobSet."""
    plain = [job for job in listed(stack, JOBS) if not job["metadata"].get("ownerReferences")]
    return listed(stack, TRAINJOBS) + plain


def all_is_well(stack: Stack, pods: int) -> bool:
    """Return whether every pod is bound and ungated, and every owner's condition says so."""
    there = listed(stack, PODS)
    bound = [pod for pod in there if pod["spec"].get("nodeName") and not gates(pod)]
    said = [
        {condition["type"]: condition["status"] for condition in muster_conditions(owner)}
        for owner in roots(stack)
    ]
    return len(bound) == len(there) == pods and all(one.get("PodGroupsScheduled") == "True" for one in said)


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
        create_two_gangs(stack)
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
        create_two_gangs(stack)
        wait_until(stack, lambda: all_is_well(stack, 7))


def test_a_job_made_while_all_functions_were_down_is_found_by_a_sweep() -> None:
    """The functions never got an event about this gang."""
    with a_cluster(lambda _chance: status(503, "ServiceUnavailable")) as stack:
        assert stack.server is not None
        create(stack, JOBS, owners.a_job("early", pods=3))
        wait_until(stack, lambda: len(listed(stack, PODS)) == 3 and stack.dead_letters)
        assert not listed(stack, WORKLOADS)
        stack.server.intercept = None
        sweep(stack)
        wait_until(stack, lambda: all_is_well(stack, 3))
