"""Sizes under a policy: pinned counts, scaling with onScale Flag, pods held by onFailure Hold."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy.model import NoOp, Plan, Verb
from muster.policy.reasons import Reason
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    Object,
    a_gang,
    a_job,
    a_jobset_of_trainjob,
    a_pod_group,
    a_trainjob,
    a_workload,
    bound,
    observed,
    placed,
    pods_of,
    with_spec,
    with_status,
)
from tests.support.messages import mentions
from tests.support.planning import plan_conditions, plan_pods, plan_resize, plan_workload

PINNED = "workload: {groups: [{name: main, schedulingPolicy: {gang: {minCount: %s}}}]}"


def kept(text: str) -> tuple[PolicySource, ...]:
    """The policy that the Workload was made under."""
    return (PolicySource(PolicySourceKind.STORED, "home", text),)


def sizes(decision: Plan | NoOp) -> list[int]:
    """The minCounts that a plan writes to PodGroups."""
    assert isinstance(decision, Plan), decision
    groups = [action.body for action in decision.actions if action.target.kind == "PodGroup" and action.body]
    return [body["spec"]["schedulingPolicy"]["gang"]["minCount"] for body in groups]


def test_a_pinned_gang_starts_with_fewer_than_all() -> None:
    """Elastic torch: four pods, one is enough."""
    decision = plan_workload(
        observed(a_job(pods=4), sources=(PolicySource(PolicySourceKind.OWNER, "home", PINNED % 1),)), NOW
    )
    assert isinstance(decision, Plan)
    assert decision.actions[0].body is not None
    (template,) = decision.actions[0].body["spec"]["podGroupTemplates"]
    assert template["schedulingPolicy"] == {"gang": {"minCount": 1}}


@pytest.mark.parametrize(
    ("pinned", "before", "pods", "after"),
    [
        pytest.param(1, 1, 6, None, id="scaled up: one stays enough"),
        pytest.param(3, 3, 6, None, id="scaled up: three stay enough"),
        pytest.param(3, 3, 2, 2, id="scaled below: no more than there are"),
        pytest.param(3, 2, 4, 3, id="scaled up again: as asked for, not as many as there are"),
        pytest.param(3, 3, 0, 1, id="scaled to nothing: the API wants at least one"),
    ],
)
def test_a_pinned_count_follows_only_downwards(
    pinned: int, before: int, pods: int, after: int | None
) -> None:
    """What a policy asks for is the most that is ever asked for."""
    job = a_job(pods=pods)
    given: dict[str, Any] = {
        "workload": a_workload(a_gang("main", before)),
        "groups": [a_pod_group(min_count=before)],
        "sources": kept(PINNED % pinned),
    }
    decision = plan_resize(observed(job, **given), NOW)
    if after is None:
        assert decision.reason == Reason.UP_TO_DATE
    else:
        assert sizes(decision) == [after]


FLAG = kept("workload: {onScale: Flag}")


def flagged(pods: int) -> dict[str, Any]:
    """A gang of two whose Job has another number of pods, under `onScale: Flag`."""
    job = a_job(pods=pods)
    running = [dict(pod) for pod in pods_of(job, bound)]
    return {
        "owner": job,
        "workload": a_workload(a_gang("main", 2)),
        "groups": [a_pod_group("llama-main-33333333", placed)],
        "pods": running,
        "sources": FLAG,
    }


def test_flagged_scaling_changes_no_size() -> None:
    """resize_gang says what it would have done, and does nothing."""
    decision = plan_resize(observed(**flagged(1)), NOW)
    assert isinstance(decision, NoOp)
    assert decision.reason == Reason.SCALING_FLAGGED
    assert mentions(decision.message, "home", "onScale", "llama-main-33333333", 1)


def test_flagged_scaling_is_said_on_the_owner() -> None:
    """A person who asked for it finds it where the groups are reported."""
    decision = plan_conditions(observed(**flagged(1)), NOW)
    assert isinstance(decision, Plan)
    (status,) = (action for action in decision.actions if action.verb == Verb.PATCH)
    assert status.body is not None
    ready = status.body["status"]["conditions"][0]
    assert (ready["status"], ready["reason"]) == ("True", Reason.SCALING_FLAGGED)
    assert mentions(ready["message"], "onScale", "llama-main-33333333", 2, 1)


def test_the_right_size_is_not_flagged() -> None:
    """Two pods for a gang of two."""
    decision = plan_conditions(observed(**flagged(2)), NOW)
    assert isinstance(decision, Plan)
    assert Reason.SCALING_FLAGGED not in str(decision.actions)


BROKEN = (PolicySource(PolicySourceKind.OWNER, "home", "workload: {bogus: 1}"),)


def reasons(decision: Plan | NoOp) -> list[str]:
    """The reasons of the Events of a plan."""
    assert isinstance(decision, Plan)
    return [
        action.body["reason"] for action in decision.actions if action.target.kind == "Event" and action.body
    ]


def test_an_invalid_policy_has_an_event_whichever_step_writes_the_condition_first() -> None:
    """create_workload's own write may be a conflict, and find the condition there when it comes again."""
    first = plan_conditions(observed(sources=BROKEN), NOW)
    assert reasons(first) == [Reason.INVALID_POLICY]
    assert isinstance(first, Plan)
    status = first.actions[0].body
    assert status is not None
    observation = observed(a_job(with_status(**status["status"])), sources=BROKEN)
    assert plan_conditions(observation, NOW).reason == Reason.UP_TO_DATE


def held(policy: str) -> Plan:
    """What create_workload does under a policy it cannot have."""
    decision = plan_workload(observed(sources=(PolicySource(PolicySourceKind.OWNER, "home", policy),)), NOW)
    assert isinstance(decision, Plan), decision
    return decision


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param("workload: {onFailure: Hold, bogus: 1}", id="unknown field"),
        pytest.param(
            "workload: {onFailure: Hold, groups: [{name: other}]}", id="a group without a group label"
        ),
    ],
)
def test_a_policy_that_holds_makes_no_fallback_groups(policy: str) -> None:
    """The owner gets its condition all the same, and the pods keep their gates."""
    decision = held(policy)
    assert decision.reason == Reason.INVALID_POLICY
    assert [action.target.kind for action in decision.actions] == ["Job", "Event"]
    waiting = plan_pods(observed(pods=pods_of(a_job())), NOW)
    assert waiting.reason == Reason.AWAITING_POD_GROUP


def test_without_hold_the_pods_run_in_a_fallback_group() -> None:
    """A basic group of the name they are stamped with."""
    decision = held("workload: {bogus: 1}")
    assert [action.target.kind for action in decision.actions] == ["PodGroup", "Job", "Event"]
    fallback_group: Object = dict(decision.actions[0].body or {})
    assert fallback_group["spec"] == {"schedulingPolicy": {"basic": {}}}


def test_a_trainjob_that_the_trainer_groups_itself_is_left_to_it() -> None:
    """`spec.scheduling` of KEP-3015, on the TrainJob, not on its JobSet."""
    trainjob = a_trainjob(with_spec(scheduling={"schedulingPolicy": {"gang": {}}}))
    decision = plan_workload(observed(trainjob, jobset=a_jobset_of_trainjob()), NOW)
    assert decision.reason == Reason.UPSTREAM_GROUPS
