"""Faults between the functions and a sound cluster: gangs are placed whatever is refused, lost or late.

Which requests fail is chosen by a seeded generator, so a failure can be reproduced.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from muster.local.stack import Stack
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import gates, muster_conditions
from muster.simulator.apiserver.http import Request
from muster.testing import RunningStack, sweep
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


class FaultyStack(RunningStack):
    """The local stack with a fault in the requests of its functions, and gangs in one namespace."""

    def __init__(self, fault: Fault | None = None) -> None:
        super().__init__()
        self._fault, self._chance = fault, random.Random(1)  # noqa: S311 - chance that can be repeated is the point

    def __enter__(self) -> Self:
        super().__enter__()
        self.create_namespace(NAMESPACE)
        self.server.intercept = self._intercept
        return self

    def create_two_gangs(self) -> None:
        """Create a TrainJob of three pods and a Job of four."""
        self.create(owners.a_trainjob("llama", "torch-distributed", nodes=3), NAMESPACE)
        self.create(owners.a_job("sweep", pods=4), NAMESPACE)

    def wait_until(self, holds: Callable[[], object]) -> None:
        """Sweep until a condition holds; fail with the state of the cluster."""
        end, next_sweep = time.monotonic() + PATIENCE, time.monotonic() + 2.0
        while not holds():
            assert time.monotonic() < end, [*self.all("Pod"), *self.all("PodGroup"), *self.roots()]
            if time.monotonic() > next_sweep:
                self.publish(sweep())
                next_sweep = time.monotonic() + 1.0
            time.sleep(0.05)

    def roots(self) -> Objects:
        """Return the objects that the user created: TrainJobs, and Jobs without a JobSet."""
        plain = [job for job in self.all("Job") if not job["metadata"].get("ownerReferences")]
        return self.all("TrainJob") + plain

    def all_is_well(self, pods: int) -> bool:
        """Return whether every pod is bound and ungated, and every owner's condition says so."""
        there = self.all("Pod")
        bound = [pod for pod in there if pod["spec"].get("nodeName") and not gates(pod)]
        return len(bound) == len(there) == pods and all(map(_is_scheduled, self.roots()))

    def _intercept(self, request: Request) -> Answer | None:
        ours = request.headers.get("user-agent") in USER_AGENTS
        return self._fault(self._chance) if self._fault and ours else None


def _is_scheduled(owner: Object) -> bool:
    said = {condition["type"]: condition["status"] for condition in muster_conditions(owner)}
    return said.get("PodGroupsScheduled") == "True"


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
    with FaultyStack(fault()) as stack:
        stack.create_two_gangs()
        stack.wait_until(lambda: stack.all_is_well(7))
        sizes = {
            group["metadata"]["name"].split("-")[0]: group["spec"]["schedulingPolicy"]
            for group in stack.all("PodGroup")
        }
        assert sizes == {"llama": {"gang": {"minCount": 3}}, "sweep": {"gang": {"minCount": 4}}}
        assert len(stack.all("Workload")) == 2


def test_gangs_are_placed_although_the_source_loses_and_doubles_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A third of the events is lost and a third doubled; sweeps repair it."""
    chance = random.Random(1)  # noqa: S311 - chance that can be repeated is the point
    whole = Stack._publish

    def lossy(stack: Stack, headers: Mapping[str, str], body: bytes) -> int:
        for _ in range(chance.randrange(3)):
            whole(stack, headers, body)
        return 202

    monkeypatch.setattr(Stack, "_publish", lossy)
    with FaultyStack() as stack:
        stack.create_two_gangs()
        stack.wait_until(lambda: stack.all_is_well(7))


def test_a_job_made_while_all_functions_were_down_is_found_by_a_sweep() -> None:
    """The functions never got an event about this gang."""
    with FaultyStack(lambda _chance: status(503, "ServiceUnavailable")) as stack:
        stack.create(owners.a_job("early", pods=3), NAMESPACE)
        stack.wait_until(lambda: len(stack.all("Pod")) == 3 and stack.dead_letters())
        assert not stack.all("Workload")
        stack.server.intercept = None
        stack.publish(sweep())
        stack.wait_until(lambda: stack.all_is_well(3))
