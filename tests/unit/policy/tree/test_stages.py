"""Groups that hold their nodes while pods of another group wait for them to be Ready."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from muster.policy.model import Plan
from muster.policy.resolve import ResolvedOwner
from tests.support.builders import Object, a_jobset, a_replicated_job, observed, with_spec
from tests.support.planning import plan_workload, resolve

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def a_launcher(status: str) -> Object:
    """A launcher that waits for the nodes to be Ready, or Complete."""
    return {**a_replicated_job("launcher"), "dependsOn": [{"name": "node", "status": status}]}


@pytest.mark.parametrize(
    ("jobset", "stages"),
    [
        pytest.param(
            a_jobset(a_replicated_job("node"), a_launcher("Ready")),
            [("node", "launcher")],
            id="dependsOn Ready",
        ),
        pytest.param(a_jobset(a_replicated_job("node"), a_launcher("Complete")), [], id="dependsOn Complete"),
        pytest.param(a_jobset(a_replicated_job("a"), a_replicated_job("b")), [], id="all start at once"),
        pytest.param(
            a_jobset(
                a_replicated_job("a"),
                a_replicated_job("b"),
                a_replicated_job("c"),
                modifiers=[with_spec(startupPolicy={"startupPolicyOrder": "InOrder"})],
            ),
            [("a", "b"), ("a", "c"), ("b", "c")],
            id="InOrder",
        ),
    ],
)
def test_a_group_that_keeps_running_holds_its_nodes(jobset: Object, stages: list[tuple[str, str]]) -> None:
    """A stage that has ended holds nothing."""
    resolved = resolve(observed(jobset))
    assert isinstance(resolved, ResolvedOwner)
    assert [(stage.holds, stage.waits) for stage in resolved.stages] == stages


def test_the_owner_gets_an_event_when_its_workload_is_created() -> None:
    """Optional, so that a refused Event stops nothing."""
    plan = plan_workload(observed(a_jobset(a_replicated_job("node"), a_launcher("Ready"))), NOW)
    assert isinstance(plan, Plan)
    workload, event = plan.actions
    assert (workload.target.kind, event.target.kind, event.optional) == ("Workload", "Event", True)
    assert event.body is not None
    assert (event.body["reason"], event.body["type"]) == ("HoldsWhileWaiting", "Warning")
