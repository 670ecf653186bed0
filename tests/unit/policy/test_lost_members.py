"""onMembersLost: when what is left of a gang is evicted; e2e stories show what then happens."""

from __future__ import annotations

from datetime import timedelta

import pytest

from muster.policy.model import Plan
from muster.policy.owners.job import JobSpec
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support import builders as b
from tests.support.builders import Modifier, Object
from tests.support.planning import Observed, plan_restart, plan_workload

LIMIT = 600
NAME = "llama-main-33333333"
LONG = LIMIT * 3
FOREIGN = b.gated("kueue.x-k8s.io/topology")


def ago(seconds: float) -> str:
    """A time before NOW as the API server writes it."""
    return (b.NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def turned(kind: str, status: str, seconds: float, reason: str = "") -> Modifier:
    """A condition that turned so many seconds ago."""

    def modify(body: Object) -> None:
        b.with_condition(kind, status, reason)(body)
        body["status"]["conditions"][-1]["lastTransitionTime"] = ago(seconds)

    return modify


def runs(index: int, seconds: float = LONG) -> Object:
    """A pod that was bound so many seconds ago."""
    return b.a_pod(None, index, b.bound, turned("PodScheduled", "True", seconds))


def waits(index: int, seconds: float, *modifiers: Modifier) -> Object:
    """A pod that was created so many seconds ago and found no room."""
    created: Modifier = lambda pod: pod["metadata"].update(creationTimestamp=ago(seconds))  # noqa: E731
    refused = turned("PodScheduled", "False", seconds, "Unschedulable")
    return b.a_pod(None, index, created, b.gated(), *(modifiers or (refused,)))


def given(*pods: Object, then: str = "Restart", of: int = 3, needs: int = 3, **spec: object) -> Observed:
    """A gang that was placed, with these pods."""
    policy = f"workload: {{onMembersLost: {then}, membersLostSeconds: {LIMIT}}}"
    owner = b.a_job(b.with_spec(**spec), pods=of)
    return b.observed(
        owner,
        workload=b.a_workload(b.a_gang("main", needs), root=owner),
        groups=[b.a_pod_group(NAME, turned("PodGroupInitiallyScheduled", "True", LONG), min_count=needs)],
        pods=pods,
        sources=(PolicySource(PolicySourceKind.OWNER, "home", policy),),
    )


def evicted(case: Observed) -> list[str]:
    """The names of the pods that are evicted, in order."""
    decision = plan_restart(case, b.NOW)
    actions = decision.actions if isinstance(decision, Plan) else ()
    return [action.target.name for action in actions if action.subresource == "eviction"]


@pytest.mark.parametrize(
    ("case", "pods"),
    [
        (given(runs(0), runs(1), waits(2, LIMIT)), [0, 1]),
        (given(runs(0), runs(1), waits(2, LIMIT - 1)), []),
        (given(runs(0), runs(1), waits(2, LIMIT), then="Report"), []),
        (given(runs(0), runs(1), waits(2, LIMIT), suspend=True), []),
        # Some were evicted, and their replacements wait for the rest.
        (given(runs(2), waits(0, 0, b.gated("muster.dev/pod-group")), waits(1, LIMIT)), [2]),
        # Not made again yet, not refused, held by others, just placed, never placed in part, or whole.
        (given(runs(0), runs(1)), []),
        (given(runs(0), runs(1), waits(2, LIMIT, b.gated())), []),
        (given(runs(0), runs(1), waits(2, LIMIT, FOREIGN)), []),
        (given(runs(0), runs(1, LIMIT - 1), waits(2, LONG)), []),
        (given(*(waits(index, LONG) for index in range(3))), []),
        (given(*map(runs, range(3))), []),
        # Of an elastic gang the pods above minCount wait for ever.
        (given(runs(0), runs(1), waits(2, LONG), needs=2), []),
        (given(runs(0), waits(1, LIMIT), waits(2, LONG), needs=2), [0]),
        (given(runs(0), waits(1, LIMIT - 1), waits(2, LONG), needs=2), []),
        (given(runs(0), waits(1, 0, b.gated()), waits(2, LONG), needs=2), []),
        # Two more failures would end the Job.
        (given(runs(0), runs(1), waits(2, LIMIT), backoffLimit=1), []),
    ],
)
def test_what_is_left_is_evicted_once_it_lacked_members_for_too_long(case: Observed, pods: list[int]) -> None:
    """Where the scheduler has no room for the missing ones."""
    assert evicted(case) == [f"llama-{index}" for index in pods]


IGNORED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("fields", "survived"),
    [
        ({}, 6),
        ({"backoffLimit": 2}, 2),
        ({"backoffLimitPerIndex": 1}, None),
        ({"backoffLimit": 2, "podFailurePolicy": {"rules": [IGNORED]}}, None),
        ({"podFailurePolicy": {"rules": [{**IGNORED, "action": "Count"}]}}, 6),
    ],
)
def test_how_many_evicted_pods_a_job_survives(fields: Object, survived: int | None) -> None:
    """By its backoffLimit, unless its podFailurePolicy ignores them."""
    assert JobSpec.model_validate(fields).survives == survived


@pytest.mark.parametrize(
    ("owner", "warned"),
    [
        (b.a_job(pods=7), True),
        (b.a_job(pods=6), False),
        (b.a_jobset(b.a_replicated_job(pods=4, replicas=2)), False),
        (b.a_jobset(b.a_replicated_job(pods=7, replicas=2)), True),
    ],
)
def test_an_event_warns_of_a_gang_that_ends_its_job_when_it_is_evicted(owner: Object, warned: bool) -> None:
    """Once, with the Workload; the pods of one Job count."""
    decision = plan_workload(b.observed(owner), b.NOW)
    assert isinstance(decision, Plan)
    events = [action.body["reason"] for action in decision.actions if action.body and "reason" in action.body]
    assert events == (["EndsWhenEvicted"] if warned else [])
