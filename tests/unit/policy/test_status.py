"""emit_conditions: what the conditions of an owner say of its groups and pods."""

from __future__ import annotations

import copy

import pytest

from muster.objects.resources import SchedulingApi
from muster.policy import group_labels
from muster.policy.groups.manifests import FALLBACK
from muster.policy.model import Plan
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
    annotated,
    being_deleted,
    bound,
    gated,
    labelled,
    observed,
    pods_of,
    with_condition,
    with_spec,
    with_status,
)
from tests.support.conditions import (
    FREE,
    NAME,
    NO_ROOM,
    PLACED,
    RUNNING,
    planned,
    planned_conditions,
    refused,
)
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_workload

UNFIT = with_condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")


def _at(second: int) -> dict[str, str]:
    return {"lastTransitionTime": f"2026-11-21T07:00:{second:02}Z"}


def _placed_at(second: int) -> Object:
    """The Job's PodGroup, placed at this second."""
    return a_pod_group(
        NAME,
        with_status(conditions=[{"type": "PodGroupInitiallyScheduled", "status": "True", **_at(second)}]),
    )


def _bound_at(second: int, index: int) -> Object:
    return a_pod(
        None,
        index,
        bound,
        with_status(conditions=[{"type": "PodScheduled", "status": "True", **_at(second)}]),
    )


def _refused_at(second: int, index: int) -> Object:
    pod = a_pod(None, index, gated(), UNFIT)
    pod["status"]["conditions"][0] |= _at(second)
    return pod


LOST = a_job(with_status(failed=1))
SUSPENDED = a_job(with_status(failed=1), with_spec(suspend=True))
EVICTION = "preempted by a pod of higher priority"
EVICTED = a_pod(
    None,
    1,
    bound,
    with_condition("DisruptionTarget", "True", "PreemptionByScheduler", EVICTION),
    being_deleted,
)
UNFIT_POD = a_pod(None, 1, gated(), UNFIT)
NODES = "0/3 nodes are available"
ONE_CREATED = observed(groups=[PLACED], pods=[a_pod(None, 0)], failed_create="exceeded quota")


@pytest.mark.parametrize(
    ("given", "reason", "facts"),
    [
        pytest.param(
            observed(groups=[refused("Odd", "")], pods=FREE),
            "Unschedulable",
            ("Odd",),
            id="an unknown reason",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], UNFIT_POD]),
            "Unschedulable",
            (NODES,),
            id="a replacement finds no room while the group still says it was placed",
        ),
        pytest.param(
            observed(groups=[refused("Unschedulable", NO_ROOM)], pods=[RUNNING[0], FREE[1]]),
            "WaitingForScheduler",
            (1, 2),
            id="the group's refusal is over: a pod is bound, the other one follows",
        ),
        pytest.param(
            observed(groups=[_placed_at(9)], pods=[_bound_at(9, 0), _refused_at(3, 1)]),
            "WaitingForScheduler",
            (1, 2),
            id="the pods' refusal is over: the group was placed since",
        ),
        pytest.param(
            observed(groups=[_placed_at(1)], pods=[_bound_at(1, 0), _refused_at(3, 1)]),
            "Unschedulable",
            (NODES,),
            id="a replacement was refused after the others were bound",
        ),
        pytest.param(
            ONE_CREATED,
            "SchedulingGated",
            ("1 of 2 pods exist", "exceeded quota"),
            id="a gang that was placed before waits for a pod that could not be created",
        ),
        pytest.param(
            observed(LOST, groups=[PLACED], pods=RUNNING[:1]),
            "MembersLost",
            (1, 2),
            id="a member was lost, and its Job counts it as failed",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], EVICTED]),
            "MembersLost",
            (1, 2, EVICTION),
            id="a member is being evicted, and its Job does not say so yet",
        ),
        pytest.param(
            observed(SUSPENDED, groups=[PLACED]),
            "WaitingForPods",
            (0, 2),
            id="a suspended Job has lost no member, although it counts one of before",
        ),
    ],
)
def test_the_reason_and_message_of_a_waiting_group(
    given: Observed, reason: str, facts: tuple[object, ...]
) -> None:
    """The message names the group, and quotes what others say of it."""
    *condition, message = planned_conditions(given)["PodGroupsScheduled"]
    assert condition == ["False", reason]
    assert mentions(message, NAME, *facts)


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


TRIO = [a_pod(None, index, bound) for index in range(3)]
OLD_API = SchedulingApi("v1alpha2", composites=False)
ONE_DONE = a_job(with_status(completedIndexes="0"))
STRANGER = labelled({"app.kubernetes.io/managed-by": "someone", "muster.dev/owner-uid": ""})


@pytest.mark.parametrize(
    ("given", "condition", "expected", "facts"),
    [
        pytest.param(
            observed(ONE_DONE, groups=[PLACED], pods=[FREE[1]], scheduling=OLD_API),
            "PodGroupsScheduled",
            ("False", "GangSizeFixed"),
            ("v1alpha2", 2, 1),
            id="1.36: fewer pods are left than minCount, which is immutable",
        ),
        pytest.param(
            observed(a_job(pods=3), workload=a_workload(), groups=[PLACED], pods=TRIO, scheduling=OLD_API),
            "PodGroupsReady",
            ("True", "GangSizeFixed"),
            ("v1alpha2", 2, 3),
            id="1.36: a gang that cannot grow",
        ),
        pytest.param(
            observed(workload=a_workload(), groups=[a_pod_group(NAME, STRANGER)], pods=FREE),
            "PodGroupsReady",
            ("True", "PodGroupsExist"),
            ("Job team-a/llama", NAME),
            id="a group that a user created under the name is adopted",
        ),
        pytest.param(
            observed(workload=a_workload(), groups=[a_pod_group(NAME, STRANGER, min_count=3)], pods=FREE),
            "PodGroupsReady",
            ("False", "NotMusters"),
            (NAME, 3, 2),
            id="a group that a user created and that has fewer pods than its minCount",
        ),
        pytest.param(
            observed(groups=[a_pod_group(NAME, annotated({FALLBACK: "RefusedByApi: no such: class"}))]),
            "PodGroupsReady",
            ("False", "RefusedByApi"),
            (NAME, "no such: class"),
            id="a fallback group has its reason",
        ),
        pytest.param(
            observed(groups=[a_pod_group(NAME, annotated({FALLBACK: "whatever"}))], pods=FREE),
            "PodGroupsReady",
            ("False", "NotMusters"),
            (NAME,),
            id="somebody else wrote why there is no gang, in no words of Muster",
        ),
    ],
)
def test_groups_that_are_not_as_wanted(
    given: Observed, condition: str, expected: tuple[str, str], facts: tuple[object, ...]
) -> None:
    """The condition says what the scheduler will make of them."""
    status, reason, message = planned_conditions(given)[condition]
    assert (status, reason) == expected
    assert mentions(message, *facts)


def test_pods_of_a_template_that_upstream_groups_get_a_fallback_group() -> None:
    """Admission stamps its pods by the group label alone; both steps say the same of it."""
    delegated = annotated({group_labels.UPSTREAM_TEMPLATE: "sim"})
    jobset = a_jobset(a_replicated_job("workers"), a_replicated_job("sim", delegated, label="sim"))
    jobs = [a_child_job(jobset, name, 0) for name in ("workers", "sim")]
    workload = a_workload(a_gang("workers", 2), root=jobset)
    plan = plan_workload(observed(jobset, jobs=jobs, pods=pods_of(jobs[1]), workload=workload), NOW)
    assert isinstance(plan, Plan)
    group, status, event = plan.actions
    reason, _, why = (group.body or {})["metadata"]["annotations"][FALLBACK].partition(": ")
    assert (group.target.name, reason) == ("llama-sim-22222222", "UpstreamGroups")
    (ready,) = (status.body or {})["status"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "UpstreamGroups")
    assert (event.body or {})["message"] == ready["message"]
    groups = [
        a_pod_group("llama-workers-22222222", root=jobset),
        a_pod_group("llama-sim-22222222", annotated({FALLBACK: f"{reason}: {why}"}), root=jobset),
    ]
    given = observed(jobset, jobs=jobs, pods=pods_of(jobs[1]), workload=workload, groups=groups)
    assert planned_conditions(given)["PodGroupsReady"] == ("False", reason, ready["message"])
