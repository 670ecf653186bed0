"""resize_gang: the minCount of a gang follows the pods that are still to run."""

from __future__ import annotations

import pytest

from muster.objects.resources import SchedulingApi
from muster.policy.model import NoOp, Plan
from muster.policy.reasons import Reason
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_pod,
    a_pod_group,
    a_replicated_job,
    a_workload,
    being_deleted,
    bound,
    labelled,
    observed,
    placed,
    succeeded,
    with_status,
)
from tests.support.messages import mentions, without_message
from tests.support.planning import Observed, plan_resize

NAME = "llama-main-33333333"


def _sizes(given: Observed) -> dict[str, int]:
    """The new minCounts of PodGroups, by name; empty where nothing is written."""
    decision = plan_resize(given, NOW)
    actions = decision.actions if isinstance(decision, Plan) else ()
    return {
        action.target.name: (action.body or {})["spec"]["schedulingPolicy"]["gang"]["minCount"]
        for action in actions
        if action.target.kind == "PodGroup"
    }


def _case(job: Object, current: int, pods: list[Object], *, was_placed: bool) -> Observed:
    group = a_pod_group(NAME, *([placed] if was_placed else []), min_count=current)
    return observed(job, workload=a_workload(a_gang("main", current)), groups=[group], pods=pods)


def _running(*indexes: int) -> list[Object]:
    return [a_pod(None, index, bound) for index in indexes]


DONE = with_status(completedIndexes="0")


@pytest.mark.parametrize(
    ("given", "size"),
    [
        pytest.param(_case(a_job(pods=4), 2, [], was_placed=False), 4, id="never placed: up at once"),
        pytest.param(
            _case(a_job(pods=2), 4, _running(0, 1, 2, 3), was_placed=True), 2, id="placed: down at once too"
        ),
        pytest.param(
            _case(a_job(pods=4), 2, [*_running(0, 1), a_pod(None, 2)], was_placed=True),
            None,
            id="placed: not up before new pods are bound",
        ),
        pytest.param(
            _case(a_job(pods=4), 2, _running(0, 1, 2), was_placed=True),
            3,
            id="placed: up as far as pods are bound",
        ),
        pytest.param(
            _case(
                a_job(pods=4),
                2,
                [a_pod(None, index, bound, being_deleted) for index in (0, 1)],
                was_placed=True,
            ),
            4,
            id="a restart: no pod is bound any more, so up at once",
        ),
        pytest.param(
            _case(a_job(DONE, pods=3), 3, [a_pod(None, 0, succeeded), *_running(1)], was_placed=True),
            2,
            id="a replacement after others finished",
        ),
        pytest.param(_case(a_job(pods=0), 2, [], was_placed=False), 1, id="never below 1"),
    ],
)
def test_size(given: Observed, size: int | None) -> None:
    """MinCount is never more than the pods that still run, and a running gang is never held up by growth."""
    assert _sizes(given) == ({} if size is None else {NAME: size})


def test_a_job_being_deleted_counts_in_full() -> None:
    """JobSet makes it anew under its name, so the gang will need all its pods again."""
    jobset = a_jobset(a_replicated_job("a", pods=3))
    job = a_child_job(jobset, "a", 0, with_status(completedIndexes="0"), being_deleted)
    group = a_pod_group("llama-a-22222222", placed, root=jobset)
    given = observed(jobset, jobs=[job], workload=a_workload(a_gang("a", 2), root=jobset), groups=[group])
    assert _sizes(given) == {"llama-a-22222222": 3}


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(a_pod_group(min_count=None), id="a basic group has no number"),
        pytest.param(a_pod_group(NAME, being_deleted), id="one that is being deleted, to a larger size"),
        pytest.param(
            a_pod_group(NAME, labelled({"app.kubernetes.io/managed-by": "someone"})),
            id="one that is not Muster's",
        ),
    ],
)
def test_groups_that_are_not_resized(group: Object) -> None:
    """Only live gangs of Muster's own are written."""
    given = observed(a_job(pods=4), workload=a_workload(a_gang("main", 4)), groups=[group])
    assert _sizes(given) == {}


def test_a_group_that_is_being_deleted_shrinks() -> None:
    """Its pods keep it, and the replacement of one of them would wait for others that have ended."""
    group = a_pod_group(NAME, being_deleted, min_count=4)
    assert _sizes(observed(a_job(pods=2), workload=a_workload(a_gang("main", 4)), groups=[group])) == {
        NAME: 2
    }


def _home(text: str) -> tuple[PolicySource, ...]:
    return (PolicySource(PolicySourceKind.OWNER, "annotation", text),)


GROWN = a_job(pods=4)


@pytest.mark.parametrize(
    ("given", "reason", "facts"),
    [
        pytest.param(
            observed(
                GROWN,
                workload=a_workload(),
                groups=[a_pod_group()],
                scheduling=SchedulingApi("v1alpha2", False),
            ),
            Reason.GANG_SIZE_FIXED,
            ("v1alpha2", NAME, 4),
            id="Kubernetes 1.36 lets minCount not change",
        ),
        pytest.param(
            observed(
                GROWN,
                workload=a_workload(),
                groups=[a_pod_group()],
                sources=_home("{workload: {onScale: Flag}}"),
            ),
            Reason.SCALING_FLAGGED,
            ("annotation", "onScale", NAME, 4),
            id="the policy says Flag: report only",
        ),
    ],
)
def test_nothing_is_resized(given: Observed, reason: Reason, facts: tuple[object, ...]) -> None:
    """The number stays, and the reason says why."""
    decision = plan_resize(given, NOW)
    assert without_message(decision) == NoOp(reason)
    assert mentions(decision.message, *facts)
