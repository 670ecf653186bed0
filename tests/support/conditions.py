"""The only PodGroup of the Job `llama` in every state, and what emit_conditions plans for it."""

from __future__ import annotations

from muster.policy.model import Plan
from tests.support.builders import (
    NOW,
    Object,
    a_pod,
    a_pod_group,
    bound,
    gated,
    placed,
    with_condition,
)
from tests.support.planning import Observed, plan_conditions

NAME = "llama-main-33333333"
PLACED = a_pod_group(NAME, placed)
FREE = [a_pod(None, index, gated()) for index in range(2)]
RUNNING = [a_pod(None, index, bound) for index in range(2)]
NO_ROOM = "minCount (2) cannot be satisfied: 0 scheduled, 2 remaining"


def planned(observed: Observed) -> Plan:
    """Return the plan of emit_conditions; fails if it decides to do nothing."""
    plan = plan_conditions(observed, NOW)
    assert isinstance(plan, Plan)
    return plan


def planned_conditions(observed: Observed) -> dict[str, tuple[str, str, str]]:
    """Return status, reason and message of the planned conditions by type, without the prefix on Jobs."""
    body = planned(observed).actions[0].body or {}
    return {
        condition["type"].removeprefix("muster.dev/"): (
            condition["status"],
            condition["reason"],
            condition["message"],
        )
        for condition in body["status"]["conditions"]
    }


def refused(reason: str, message: str) -> Object:
    """Return the Job's PodGroup with PodGroupInitiallyScheduled=False, for this reason and message."""
    return a_pod_group(NAME, with_condition("PodGroupInitiallyScheduled", "False", reason, message))
