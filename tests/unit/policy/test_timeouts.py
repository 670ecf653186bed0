"""schedulingTimeoutSeconds: when a gang has waited too long for room, and what then happens."""

from __future__ import annotations

from datetime import timedelta

import pytest

from muster.policy.groups.manifests import FALLBACK
from muster.policy.groups.wanted_groups import scheduling_timeout
from muster.policy.model import Action, NoOp, Plan, Verb
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    Modifier,
    Object,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_pod,
    a_pod_group,
    a_replicated_job,
    a_workload,
    annotated,
    bound,
    gated,
    observed,
    placed,
    pods_of,
    with_condition,
    with_spec,
    with_status,
)
from tests.support.conditions import planned_conditions
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_conditions, plan_resize, resolve

LIMIT = 600
NAME = "llama-main-33333333"


def sources_of(then: str) -> tuple[PolicySource, ...]:
    """A policy of the owner with a timeout."""
    policy = f"workload: {{schedulingTimeoutSeconds: {LIMIT}, onTimeout: {then}}}"
    return (PolicySource(PolicySourceKind.OWNER, "home", policy),)


def given_waiting(
    seconds: float,
    then: str = "Report",
    group: Modifier | None = None,
    pod: Modifier | None = None,
    owner: Object | None = None,
) -> Observed:
    """A gang of two that the scheduler refused so many seconds ago, with modifiers of its group and pods."""
    modifiers = [pod] if pod else [gated()]
    pods = [a_pod(None, index, created(seconds + 60), *modifiers) for index in range(2)]
    pod_group = a_pod_group(NAME, group or refused(seconds))
    workload = a_workload(a_gang("main", 2))
    return observed(owner, workload=workload, groups=[pod_group], pods=pods, sources=sources_of(then))


def refused(seconds: float) -> Modifier:
    """The scheduler's condition, written so many seconds ago."""

    def modify(group: Object) -> None:
        with_condition("PodGroupInitiallyScheduled", "False", "Unschedulable", "no room")(group)
        group["status"]["conditions"][-1]["lastTransitionTime"] = ago(seconds)

    return modify


def foreign(group: Object) -> None:
    """Refused as long ago as the limit, and not made by Muster."""
    refused(LIMIT)(group)
    del group["metadata"]["labels"]


def created(seconds: float) -> Modifier:
    """Created so many seconds ago."""
    return lambda body: body["metadata"].update(creationTimestamp=ago(seconds))


def ago(seconds: float) -> str:
    """A time before NOW as the API server writes it."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def timed_out(given: Observed) -> frozenset[str]:
    """The PodGroups that have waited too long."""
    resolved = resolve(given)
    assert isinstance(resolved, ResolvedOwner)
    timeout = scheduling_timeout(resolved, given.members, NOW)
    return timeout.groups if timeout else frozenset()


@pytest.mark.parametrize(
    ("given", "late"),
    [
        pytest.param(given_waiting(LIMIT), True, id="refused for as long as the limit"),
        pytest.param(given_waiting(LIMIT - 1), False, id="a second less"),
        pytest.param(given_waiting(LIMIT, pod=gated("kueue.x-k8s.io/topology")), False, id="gates hold it"),
        pytest.param(given_waiting(LIMIT, pod=bound), False, id="its pods have nodes"),
        pytest.param(given_waiting(LIMIT, group=foreign), False, id="a user's own group"),
        pytest.param(given_waiting(LIMIT, group=placed), True, id="restarted: the pods' creation counts"),
        pytest.param(given_waiting(LIMIT - 61, group=placed), False, id="restarted a moment ago"),
        pytest.param(given_waiting(LIMIT - 60, group=refused(LIMIT + 1)), True, id="resumed"),
        pytest.param(given_waiting(LIMIT - 61, group=refused(LIMIT + 1)), False, id="resumed a moment ago"),
    ],
)
def test_a_gang_waits_from_the_schedulers_first_refusal(given: Observed, late: bool) -> None:
    """The time behind gates does not count; after a restart the pods' creation does."""
    assert timed_out(given) == ({NAME} if late else set())


def test_the_owner_says_so() -> None:
    """By its condition and an Event; nothing else happens by default."""
    given = given_waiting(LIMIT)
    status, reason, message = planned_conditions(given)["PodGroupsScheduled"]
    assert (status, reason) == ("False", "SchedulingTimedOut")
    assert mentions(message, NAME, LIMIT, "no room")
    plan = plan_conditions(given, NOW)
    assert isinstance(plan, Plan)
    assert [action.target.kind for action in plan.actions] == ["Job", "Event"]
    assert plan_resize(given, NOW).reason == Reason.UP_TO_DATE


def test_basic_lowers_min_count_to_one_and_says_why_on_the_group() -> None:
    """So its pods are scheduled one by one; the name that they are stamped with stays."""
    plan = plan_resize(given_waiting(LIMIT, "Basic"), NOW)
    assert isinstance(plan, Plan)
    (patch,) = [action for action in plan.actions if action.target.kind == "PodGroup"]
    assert patch.body is not None
    assert patch.body["spec"] == {"schedulingPolicy": {"gang": {"minCount": 1}}}
    assert patch.body["metadata"]["annotations"][FALLBACK].startswith("SchedulingTimedOut: ")
    assert patch.body["metadata"]["resourceVersion"] == "7"


def test_min_count_of_a_timed_out_gang_is_not_raised_again() -> None:
    """Also when all its pods run: a restart would wait for the whole gang otherwise."""
    group = a_pod_group(NAME, placed, annotated({FALLBACK: "SchedulingTimedOut: it waited"}), min_count=1)
    pods = [a_pod(None, index, bound) for index in range(2)]
    sources = sources_of("Basic")
    given = observed(workload=a_workload(a_gang("main", 1)), groups=[group], pods=pods, sources=sources)
    assert plan_resize(given, NOW).reason == Reason.UP_TO_DATE
    assert planned_conditions(given)["PodGroupsReady"][:2] == ("False", "SchedulingTimedOut")


def test_suspend_suspends_the_owner_once() -> None:
    """With a precondition; if Muster may not, an Event says so instead."""
    plan = plan_resize(given_waiting(LIMIT, "Suspend"), NOW)
    assert isinstance(plan, Plan)
    event, suspend = plan.actions
    assert (_reason(event), event.optional) == ("SchedulingTimedOut", True)
    assert (suspend.verb, suspend.target.kind, suspend.subresource) == (Verb.PATCH, "Job", "")
    assert suspend.body == {"metadata": {"resourceVersion": "7"}, "spec": {"suspend": True}}
    assert [_reason(action) for action in suspend.if_refused] == ["RefusedByApi"]
    job = a_job(with_spec(suspend=True))
    again = plan_resize(given_waiting(LIMIT, "Suspend", owner=job), NOW)
    assert isinstance(again, NoOp)
    assert again.reason == Reason.UP_TO_DATE


def test_other_gangs_of_an_owner_that_may_not_be_suspended_are_resized() -> None:
    """Otherwise the replacement of a pod of theirs would wait for pods that have ended."""
    first, second = (a_replicated_job(name, pods=2) for name in ("a", "b"))
    jobset = a_jobset(first, second)
    half = a_child_job(jobset, "b", 0, with_status(succeeded=1, completedIndexes="0"))
    jobs = [a_child_job(jobset, "a", 0), half]
    groups = [
        a_pod_group("llama-a-22222222", refused(LIMIT), root=jobset),
        a_pod_group("llama-b-22222222", placed, root=jobset),
    ]
    given = observed(
        jobset,
        jobs=jobs,
        workload=a_workload(a_gang("a", 2), a_gang("b", 2), root=jobset),
        groups=groups,
        pods=[*pods_of(jobs[0], gated(), created(LIMIT)), *pods_of(half, bound)],
        sources=sources_of("Suspend"),
    )
    plan = plan_resize(given, NOW)
    assert isinstance(plan, Plan)
    assert [action.target.kind for action in plan.actions] == ["Event", "JobSet", "Workload", "PodGroup"]


def _reason(action: Action) -> str:
    assert action.body is not None
    reason: str = action.body["reason"]
    return reason
