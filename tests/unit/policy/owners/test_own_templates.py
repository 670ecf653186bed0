"""The templates of a user's own Workload: which group each belongs to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from muster.policy.model import NoOp, Plan
from muster.policy.resolve import ResolvedOwner
from tests.support.builders import Object, a_basic, a_gang, a_users_workload, a_workload, observed, with_spec
from tests.support.planning import plan_pod_groups, plan_resize, resolve

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("template", "gang", "min_count"),
    [
        pytest.param(a_gang("other", 2), True, 2, id="a gang"),
        pytest.param(a_basic("job-pgt-0"), False, None, id="basic, which opts the Job out"),
    ],
)
def test_its_only_template_is_that_of_the_only_group(
    template: Object, gang: bool, min_count: int | None
) -> None:
    """The name of a template is the user's choice; nothing else can be meant."""
    given = observed(others=[a_users_workload(template)])
    resolved = resolve(given)
    assert isinstance(resolved, ResolvedOwner)
    (group,) = resolved.tree
    assert resolved.failure is None
    assert (group.name, group.template_name) == ("main", template["name"])
    assert (group.gang, group.pinned) == (gang, min_count)
    plan = plan_pod_groups(given, NOW)
    assert isinstance(plan, Plan)
    (created,) = [action.body for action in plan.actions if action.body]
    assert created["metadata"]["name"] == resolved.pod_sets.pod_group_name("main", "")
    assert created["spec"]["workloadRef"]["templateName"] == template["name"]
    assert created["spec"]["schedulingPolicy"] == template["schedulingPolicy"]


def test_a_forged_composite_template_of_a_group_of_pods_makes_nothing() -> None:
    """Its CompositePodGroup is not among those that are read, so it would be created again in each round."""
    composite = {
        "name": "main",
        "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        "podGroupTemplates": [a_gang("leaf", 2)],
    }
    forged = with_spec(podGroupTemplates=[], compositePodGroupTemplates=[composite])
    decision = plan_pod_groups(observed(workload=a_workload(modifiers=[forged])), NOW)
    assert isinstance(decision, NoOp)


def test_a_forged_composite_template_keeps_its_count() -> None:
    """resize_gang knows counts by the kind of a group, not by its name alone."""
    composite = {
        "name": "main",
        "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        "podGroupTemplates": [a_gang("leaf", 1)],
    }
    forged = with_spec(podGroupTemplates=[a_gang("main", 1)], compositePodGroupTemplates=[composite])
    plan = plan_resize(observed(workload=a_workload(modifiers=[forged])), NOW)
    assert isinstance(plan, Plan)
    (patch,) = plan.actions
    assert [operation["path"] for operation in patch.operations] == [
        "/metadata/resourceVersion",
        "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount",
    ]
