"""What emit_conditions says of the Job `llama`: its one group in every state, and the plan in short."""

from __future__ import annotations

from muster.policy.model import Plan
from tests.support.builders import NOW, Object, a_pod, a_pod_group, bound, gated, placed, with_condition
from tests.support.planning import Observed, plan_conditions

NAME = "llama-main-33333333"
SINCE = "2026-11-21T08:00:00Z"
PLACED = a_pod_group(NAME, placed)
FREE = [a_pod(None, index, gated()) for index in range(2)]
RUNNING = [a_pod(None, index, bound) for index in range(2)]
NO_ROOM = "minCount (2) cannot be satisfied: 0 scheduled, 2 remaining"


def planned(given: Observed) -> Plan:
    """The plan of emit_conditions, which must be one."""
    plan = plan_conditions(given, NOW)
    assert isinstance(plan, Plan)
    return plan


def said(given: Observed) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of our conditions by type, without a Job's prefix."""
    body = planned(given).actions[0].body or {}
    return {
        condition["type"].removeprefix("muster.dev/"): (
            condition["status"],
            condition["reason"],
            condition["message"],
        )
        for condition in body["status"]["conditions"]
    }


def refused(reason: str, message: str) -> Object:
    """The group of the Job, for which the scheduler has no place."""
    return a_pod_group(NAME, with_condition("PodGroupInitiallyScheduled", "False", reason, message))
