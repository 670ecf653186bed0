"""CompositePodGroups that are refused or resized; tests/examples/golden has those that are made."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.scheduling import CompositePodGroup
from muster.policy import group_labels
from muster.policy.model import Plan
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support import builders as b
from tests.support.builders import Object
from tests.support.planning import Observed, plan_pod_groups, plan_resize
from tests.support.trees import a_composite, below

IN_ZONE = "schedulingConstraints: {topology: [{key: zone}]}"
POLICY = f"workload: {{groups: [{{name: zone, {IN_ZONE}, groups: [{{name: main, size: 2}}]}}]}}"
SOURCES = (PolicySource(PolicySourceKind.OWNER, "home", POLICY),)


def blocks(pods: int = 5, *modifiers: Any) -> Object:
    """A Job in blocks of two."""
    return b.a_job(b.template_labelled({group_labels.GROUP_SIZE: "2"}), *modifiers, pods=pods)


NAME = "llama-zone-33333333"
BLOCKS = [f"llama-main-33333333-{block}" for block in range(3)]
ZONE = {
    "name": "zone",
    "schedulingPolicy": {"gang": {"minGroupCount": 3}},
    "podGroupTemplates": [b.a_gang("main", 2)],
}


def stored() -> Object:
    """The Workload as the API server keeps it: the unset list comes back as null."""
    workload = b.a_workload(root=blocks())
    workload["spec"] |= {"podGroupTemplates": None, "compositePodGroupTemplates": [ZONE]}
    return workload


def test_a_refused_composite_leaves_fallback_groups_for_all_below() -> None:
    """Its children would wait for a parent for ever."""
    plan = plan_pod_groups(b.observed(blocks(), workload=stored(), sources=SOURCES), b.NOW)
    assert isinstance(plan, Plan), plan
    event, *fallback = plan.actions[0].if_refused
    assert [action.target.name for action in fallback] == BLOCKS
    assert all(action.body["spec"]["schedulingPolicy"] == {"basic": {}} for action in fallback if action.body)
    assert event.target.kind == "Event"


def in_blocks(completed: str, *, pods: list[Object], groups: int = 3) -> Observed:
    """The Job in three blocks with indexes that have ended, its groups and its composite."""
    job = blocks(5, b.with_status(completedIndexes=completed))
    made = [b.a_pod_group(name, b.placed, below(NAME), root=job) for name in BLOCKS]
    zone = CompositePodGroup.read(a_composite(NAME, groups, root=blocks()))
    return b.observed(
        job, workload=stored(), sources=SOURCES, groups=made, composites=(zone,) if groups else (), pods=pods
    )


def min_group_counts(given: Observed) -> list[tuple[str, int]]:
    """What is done about the CompositePodGroup, and its minGroupCount after."""
    decision = plan_resize(given, b.NOW)
    actions = decision.actions if isinstance(decision, Plan) else ()
    composites = (action for action in actions if action.target.kind == "CompositePodGroup")
    specs = ((str(action.verb), (action.body or {}).get("spec")) for action in composites)
    return [(verb, spec["schedulingPolicy"]["gang"]["minGroupCount"] if spec else 0) for verb, spec in specs]


RUNNING = b.a_pod(blocks(5), 4, b.bound)
GOING = b.a_pod(blocks(5), 4, b.bound, b.being_deleted)
REPLACED, RESTARTED = ([("delete", 0), ("create", count)] for count in (2, 3))


@pytest.mark.parametrize(
    ("given", "done"),
    [
        pytest.param(in_blocks("", pods=[RUNNING]), [], id="all blocks have something to run"),
        pytest.param(in_blocks("0", pods=[RUNNING]), [], id="one of a block has ended, the other has not"),
        pytest.param(in_blocks("0,1", pods=[RUNNING]), REPLACED, id="a whole block has ended"),
        pytest.param(in_blocks("0,x,1", pods=[RUNNING]), REPLACED, id="an index is no number"),
        pytest.param(in_blocks("", pods=[RUNNING], groups=1), [], id="all count again, but one runs"),
        pytest.param(in_blocks("", pods=[], groups=1), RESTARTED, id="restarted: none runs"),
        pytest.param(in_blocks("", pods=[GOING], groups=1), RESTARTED, id="restarted: what runs is going"),
        pytest.param(in_blocks("0,1", pods=[RUNNING], groups=0), [("create", 2)], id="stopped in between"),
    ],
)
def test_child_groups_that_ended_are_no_longer_waited_for(given: Observed, done: list[Any]) -> None:
    """Else the replacement of a pod in another child would never be placed; the spec itself never changes."""
    assert min_group_counts(given) == done


def test_a_group_of_groups_without_any_pods_is_made() -> None:
    """Of a Job of no pods there is no block; its Workload takes no templates later."""
    plan = plan_pod_groups(b.observed(blocks(0), workload=stored(), sources=SOURCES), b.NOW)
    assert isinstance(plan, Plan)
    assert [action.target.name for action in plan.actions] == [NAME]
