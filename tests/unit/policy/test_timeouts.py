"""schedulingTimeoutSeconds: when a gang has waited too long for room; e2e stories show what then happens."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from muster.objects.pods import Pod
from muster.policy.groups.manifests import FALLBACK
from muster.policy.groups.wanted_groups import scheduling_timeout
from muster.policy.model import Plan
from muster.policy.owners.jobset import JobSet
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support import builders as b
from tests.support.builders import Modifier, Object
from tests.support.conditions import planned_conditions
from tests.support.planning import Observed, plan_resize, resolve

LIMIT = 600
NAME = "llama-main-33333333"


def sources_of(then: str) -> tuple[PolicySource, ...]:
    """A policy of the owner with a timeout."""
    policy = f"workload: {{schedulingTimeoutSeconds: {LIMIT}, onTimeout: {then}}}"
    return (PolicySource(PolicySourceKind.OWNER, "home", policy),)


def given_waiting(seconds: float, group: Modifier | None = None, pod: Modifier | None = None) -> Observed:
    """A gang of two that the scheduler refused so many seconds ago, with modifiers of its group and pods."""
    pods = [b.a_pod(None, index, created(seconds + 60), pod or b.gated()) for index in range(2)]
    groups = [b.a_pod_group(NAME, group or refused(seconds))]
    return b.observed(workload=b.a_workload(), groups=groups, pods=pods, sources=sources_of("Report"))


def one_bound(seconds: float) -> tuple[Pod, ...]:
    """An old pod that is bound, and one that was created so many seconds ago."""
    bodies = b.a_pod(None, 0, created(LIMIT * 2), b.bound), b.a_pod(None, 1, created(seconds), b.gated())
    return tuple(map(Pod.read, bodies))


def refused(seconds: float) -> Modifier:
    """The scheduler's condition, written so many seconds ago."""

    def modify(group: Object) -> None:
        b.with_condition("PodGroupInitiallyScheduled", "False", "Unschedulable", "no room")(group)
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
    return (b.NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("given", "late"),
    [
        (given_waiting(LIMIT), True),
        (given_waiting(LIMIT - 1), False),
        (given_waiting(LIMIT, pod=b.gated("kueue.x-k8s.io/topology")), False),
        (given_waiting(LIMIT, pod=b.bound), False),
        (given_waiting(LIMIT, group=foreign), False),
        # Restarted: placed before, the creation of its pods counts; and resumed: refused before.
        (given_waiting(LIMIT, group=b.placed), True),
        (given_waiting(LIMIT - 61, group=b.placed), False),
        (given_waiting(LIMIT - 60, group=refused(LIMIT + 1)), True),
        (given_waiting(LIMIT - 61, group=refused(LIMIT + 1)), False),
        # One of two pods is bound, or there is only one: a replacement without room, a full quota.
        (replace(given_waiting(LIMIT, group=b.placed), pods=one_bound(LIMIT)), True),
        (replace(given_waiting(LIMIT, group=b.placed), pods=one_bound(LIMIT - 1)), False),
        (replace(given_waiting(LIMIT), pods=one_bound(LIMIT)[1:]), True),
    ],
)
def test_a_gang_waits_from_the_schedulers_first_refusal(given: Observed, late: bool) -> None:
    """While fewer pods than it needs are bound; others' gates stop the time."""
    resolved = resolve(given)
    assert isinstance(resolved, ResolvedOwner)
    timeout = scheduling_timeout(resolved, given.members, b.NOW)
    assert (timeout.groups if timeout else frozenset()) == ({NAME} if late else set())


def test_min_count_of_a_timed_out_gang_is_not_raised_again() -> None:
    """Also when all its pods run: a restart would wait for the whole gang otherwise."""
    group = b.a_pod_group(
        NAME, b.placed, b.annotated({FALLBACK: "SchedulingTimedOut: it waited"}), min_count=1
    )
    pods = [b.a_pod(None, index, b.bound) for index in range(2)]
    workload = b.a_workload(b.a_gang("main", 1))
    given = b.observed(workload=workload, groups=[group], pods=pods, sources=sources_of("Basic"))
    assert plan_resize(given, b.NOW).reason == Reason.UP_TO_DATE
    assert planned_conditions(given)["PodGroupsReady"][:2] == ("False", "SchedulingTimedOut")


def test_other_gangs_of_an_owner_that_may_not_be_suspended_are_resized() -> None:
    """Otherwise the replacement of a pod of theirs would wait for pods that have ended."""
    jobset = b.a_jobset(*(b.a_replicated_job(name, label=name) for name in ("a", "b")))
    whole = b.a_child_job(jobset, "a", 0)
    half = b.a_child_job(jobset, "b", 0, b.with_status(succeeded=1, completedIndexes="0"))
    given = b.observed(
        jobset,
        jobs=[whole, half],
        workload=b.a_workload(b.a_gang("a", 2), b.a_gang("b", 2), root=jobset),
        groups=[
            b.a_pod_group("llama-a-22222222", refused(LIMIT), root=jobset),
            b.a_pod_group("llama-b-22222222", b.placed, root=jobset),
        ],
        pods=[*b.pods_of(whole, b.gated(), created(LIMIT)), *b.pods_of(half, b.bound)],
        sources=sources_of("Suspend"),
    )
    plan = plan_resize(given, b.NOW)
    assert isinstance(plan, Plan)
    assert [action.target.kind for action in plan.actions] == ["Workload", "PodGroup"]
    told = b.with_condition("PodGroupsScheduled", "False", "SchedulingTimedOut", "it waited")
    told(jobset)
    plan = plan_resize(replace(given, owner=JobSet.read(jobset)), b.NOW)
    assert isinstance(plan, Plan)
    assert [action.target.kind for action in plan.actions] == ["Event", "JobSet", "Workload", "PodGroup"]
    suspend = plan.actions[1].body
    assert suspend == {"metadata": {"resourceVersion": "7"}, "spec": {"suspend": True}}
    jobset["spec"]["suspend"] = True
    suspended = replace(given, owner=JobSet.read(jobset), jobset=JobSet.read(jobset), pods=())
    assert planned_conditions(suspended)["PodGroupsScheduled"] == ("False", "SchedulingTimedOut", "it waited")
