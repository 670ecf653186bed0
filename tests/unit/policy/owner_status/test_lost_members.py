"""MembersLost: a gang that was placed and lost pods; and when its owner is looked at again."""

from __future__ import annotations

import copy

import pytest

from muster.policy.status.conditions import MESSAGE_LIMIT
from tests.support.builders import (
    a_job,
    a_pod,
    a_pod_group,
    being_deleted,
    bound,
    observed,
    placed,
    with_condition,
    with_spec,
    with_status,
)
from tests.support.conditions import FREE, NAME, NO_ROOM, PLACED, RUNNING, planned, planned_conditions
from tests.support.messages import mentions
from tests.support.planning import Observed

EVICTED = with_condition(
    "DisruptionTarget", "True", "PreemptionByScheduler", "preempted by a pod of higher priority"
)


@pytest.mark.parametrize(
    ("given", "status", "reason", "facts"),
    [
        pytest.param(
            observed(a_job(with_status(failed=1)), groups=[PLACED], pods=RUNNING[:1]),
            "False",
            "MembersLost",
            (1, 2),
            id="a member was lost, and its Job counts it as failed",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], a_pod(None, 1, bound, EVICTED, being_deleted)]),
            "False",
            "MembersLost",
            (1, 2, "preempted by a pod of higher priority"),
            id="a member is being evicted, and its Job does not say so yet",
        ),
        pytest.param(
            observed(a_job(with_status(failed=1), with_spec(suspend=True)), groups=[PLACED]),
            "False",
            "WaitingForPods",
            (0, 2),
            id="a suspended Job has lost no member, although it counts one of before",
        ),
        pytest.param(
            observed(a_job(with_status(failed=1), pods=3), groups=[PLACED], pods=RUNNING),
            "False",
            "WaitingForPods",
            (2, 3),
            id="a growing gang that has its minCount has lost no member",
        ),
        pytest.param(
            observed(
                a_job(with_status(failed=1)),
                groups=[a_pod_group(NAME, placed, min_count=None)],
                pods=RUNNING[:1],
            ),
            "False",
            "WaitingForPods",
            (1, 2),
            id="a basic group has no member to lose",
        ),
        pytest.param(
            observed(a_job(with_status(failed=1)), groups=[a_pod_group()], pods=FREE[:1]),
            "False",
            "WaitingForPods",
            (0, 2),
            id="a gang that was never placed has no member to lose",
        ),
    ],
)
def test_a_gang_that_lost_members(
    given: Observed, status: str, reason: str, facts: tuple[object, ...]
) -> None:
    """Its Job counts lost pods, or a pod of it is being evicted, and fewer than minCount are left."""
    *condition, message = planned_conditions(given)["PodGroupsScheduled"]
    assert condition == [status, reason]
    assert mentions(message, NAME, *facts)


def test_of_each_eviction_the_beginning_of_the_message_is_kept() -> None:
    """Whoever may write the status of pods decides its length, and a gang has many pods."""
    messages = [f"{number}{'x' * 230_000}" for number in range(4)]
    evicted = [
        a_pod(None, 1, bound, being_deleted, with_condition("DisruptionTarget", message=message))
        for message in messages
    ]
    plan = planned(observed(groups=[PLACED], pods=[RUNNING[0], *evicted]))
    assert "0xxx" in plan.message
    assert "3xxx" in plan.message
    assert len(plan.message) < 5 * MESSAGE_LIMIT


@pytest.mark.parametrize(
    ("failed", "created", "pod_reason", "again"),
    [
        pytest.param(1, "07:59:58", None, True, id="a replacement made a moment ago"),
        pytest.param(1, "07:59:54", None, False, id="a replacement made longer ago"),
        pytest.param(1, "07:59:58", "Unschedulable", False, id="the scheduler has answered"),
        pytest.param(0, "07:59:58", None, False, id="no pod was lost: a restart"),
    ],
)
def test_a_replacement_is_checked_again_until_the_scheduler_has_answered(
    failed: int, created: str, pod_reason: str | None, again: bool
) -> None:
    """Its group keeps its condition, and its Job does not count bound pods, so no event follows."""
    replacement = copy.deepcopy(FREE[1])
    replacement["metadata"]["creationTimestamp"] = f"2026-11-21T{created}Z"
    if pod_reason:
        with_condition("PodScheduled", "False", pod_reason, NO_ROOM)(replacement)
    owner = a_job(with_status(failed=failed))
    plan = planned(observed(owner, groups=[PLACED], pods=[RUNNING[0], replacement]))
    assert plan.requeue == again


def test_a_lost_member_is_worth_an_event() -> None:
    """It is a Warning, once for each loss."""
    whole = planned(observed(groups=[PLACED], pods=RUNNING))
    written = (whole.actions[0].body or {})["status"]["conditions"]
    owner = a_job(with_status(failed=1, conditions=written))
    given = observed(owner, groups=[PLACED], pods=RUNNING[:1])
    (event,) = planned(given).actions[1:]
    assert ((event.body or {})["type"], (event.body or {})["reason"]) == ("Warning", "MembersLost")
