"""emit_conditions: what an owner's conditions say of its groups."""

from __future__ import annotations

import pytest

from muster.policy.conditions import plan_conditions
from muster.policy.model import Nothing, Observed
from muster.policy.reasons import Reason
from tests.support.builders import (
    NOW,
    a_basic,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_jobset_of_trainjob,
    a_pod,
    a_pod_group,
    a_replicated_job,
    a_trainjob,
    a_users_workload,
    annotated,
    being_deleted,
    bound,
    gated,
    observed,
    placed,
    pods_of,
    ref,
    succeeded,
    unstamped,
    with_condition,
    with_spec,
    with_status,
)
from tests.support.conditions import FREE, NAME, NO_ROOM, PLACED, RUNNING, refused, said

UNFIT = with_condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")


@pytest.mark.parametrize(
    ("given", "status", "reason", "told"),
    [
        pytest.param(
            observed(pods=RUNNING),
            "False",
            "WaitingForPodGroup",
            f"{NAME}: the PodGroup does not exist yet",
            id="a group is missing",
        ),
        pytest.param(
            observed(groups=[refused("Unschedulable", NO_ROOM)], pods=FREE),
            "False",
            "Unschedulable",
            f"{NAME}: 0 of 2 pods bound; {NO_ROOM}",
            id="there is no room, in the scheduler's words",
        ),
        pytest.param(
            observed(groups=[refused("SchedulerError", "priorities differ")], pods=FREE),
            "False",
            "SchedulerError",
            f"{NAME}: 0 of 2 pods bound; priorities differ",
            id="the scheduler cannot handle the group",
        ),
        pytest.param(
            observed(groups=[refused("Odd", "")], pods=FREE),
            "False",
            "Unschedulable",
            f"{NAME}: 0 of 2 pods bound; Odd",
            id="a reason unknown to us without a message",
        ),
        pytest.param(
            observed(groups=[a_pod_group()], pods=pods_of(a_job())),
            "False",
            "SchedulingGated",
            f"{NAME}: 0 of 2 pods bound; scheduling gates: Muster's, about to be lifted",
            id="our gates",
        ),
        pytest.param(
            observed(
                groups=[a_pod_group()], pods=[FREE[0], a_pod(None, 1, gated("kueue.x-k8s.io/admission", "b"))]
            ),
            "False",
            "SchedulingGated",
            f"{NAME}: 0 of 2 pods bound; scheduling gates: b, kueue.x-k8s.io/admission",
            id="other people's gates are named",
        ),
        pytest.param(
            observed(groups=[a_pod_group()], pods=FREE[:1]),
            "False",
            "WaitingForPods",
            f"{NAME}: 0 of 2 pods bound; 1 exist",
            id="a pod is missing",
        ),
        pytest.param(
            observed(groups=[a_pod_group()], pods=FREE[:1], failed_create="exceeded quota"),
            "False",
            "WaitingForPods",
            f"{NAME}: 0 of 2 pods bound; 1 exist; pods could not be created: exceeded quota",
            id="a pod is missing, and the Job controller said why",
        ),
        pytest.param(
            observed(groups=[a_pod_group()], pods=FREE),
            "False",
            "WaitingForScheduler",
            f"{NAME}: 0 of 2 pods bound",
            id="the scheduler has not spoken yet",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], FREE[1]]),
            "False",
            "WaitingForScheduler",
            f"{NAME}: 1 of 2 pods bound",
            id="placed, one is not bound yet",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], a_pod(None, 1, gated(), UNFIT)]),
            "False",
            "Unschedulable",
            f"{NAME}: 1 of 2 pods bound; 0/3 nodes are available",
            id="a replacement finds no room while the group still says it was placed",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], a_pod(None, 1, bound, being_deleted)]),
            "False",
            "WaitingForPods",
            f"{NAME}: 1 of 2 pods bound; 1 exist",
            id="a restart: the member on its way out does not count",
        ),
        pytest.param(
            observed(
                a_job(with_status(completedIndexes="0")),
                groups=[PLACED],
                pods=[a_pod(None, 0, succeeded), RUNNING[1]],
            ),
            "True",
            "Scheduled",
            f"{NAME}: 1 of 1 pods bound",
            id="a member that has finished is not missed",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[a_pod(None, index, succeeded) for index in range(2)]),
            "True",
            "Scheduled",
            f"{NAME}: no pod of it is still to run",
            id="all have finished, and their Job does not say so yet",
        ),
        pytest.param(
            observed(a_job(pods=0), groups=[a_pod_group()]),
            "True",
            "Scheduled",
            f"{NAME}: no pod of it is still to run",
            id="no pod is to run",
        ),
        pytest.param(
            observed(
                groups=[a_pod_group()], pods=[a_pod(None, index, unstamped, bound) for index in range(2)]
            ),
            "True",
            "Scheduled",
            f"{NAME}: no pod of it is still to run",
            id="bare pods are in no group",
        ),
    ],
)
def test_where_a_group_stands(given: Observed, status: str, reason: str, told: str) -> None:
    """The message names the group and the counts."""
    done = 1 if status == "True" else 0
    assert said(given)["PodGroupsScheduled"] == (status, reason, f"{done} of 1 groups scheduled; {told}")


TRAINJOB = a_trainjob()
JOBSET = a_jobset_of_trainjob(
    a_replicated_job("dataset-initializer", step="dataset-initializer", pods=1),
    a_replicated_job("node", step="trainer", after=("dataset-initializer",)),
)
INITIALIZER = a_child_job(JOBSET, "dataset-initializer", 0)
GROUPS = [
    a_pod_group("llama-dataset-initializer-22222222", placed, root=TRAINJOB, min_count=None),
    a_pod_group("llama-trainer-22222222", root=TRAINJOB),
]


def test_a_later_stage_waits_for_its_pods() -> None:
    """What dependsOn holds back is told, with what runs already counted."""
    given = observed(
        TRAINJOB, jobset=JOBSET, jobs=[INITIALIZER], groups=GROUPS, pods=[a_pod(INITIALIZER, 0, bound)]
    )
    assert said(given) == {
        "PodGroupsReady": ("True", "PodGroupsExist", "2 of 2 PodGroups exist"),
        "PodGroupsScheduled": (
            "False",
            "WaitingForPods",
            "1 of 2 groups scheduled; llama-trainer-22222222: 0 of 2 pods bound; 0 exist",
        ),
    }


def test_the_worst_is_the_reason_and_every_waiting_group_is_told() -> None:
    """A missing group comes before one that lacks pods; a quota is told beside another group's trouble."""
    given = observed(TRAINJOB, jobset=JOBSET, groups=GROUPS[:1], failed_create="exceeded quota")
    assert said(given)["PodGroupsScheduled"] == (
        "False",
        "WaitingForPodGroup",
        (
            "0 of 2 groups scheduled; llama-trainer-22222222: the PodGroup does not exist yet; "
            "llama-dataset-initializer-22222222: 0 of 1 pods bound; 0 exist; "
            "pods could not be created: exceeded quota"
        ),
    )


@pytest.mark.parametrize(
    ("given", "ready"),
    [
        pytest.param(
            observed(TRAINJOB, jobset=JOBSET, groups=GROUPS[1:]),
            (
                "False",
                "WaitingForPodGroup",
                "1 of 2 PodGroups exist; missing: llama-dataset-initializer-22222222",
            ),
            id="a group is missing",
        ),
        pytest.param(
            observed(
                groups=[
                    a_pod_group(NAME, annotated({"muster.dev/stand-in": "RefusedByApi: no such: class"}))
                ],
            ),
            ("False", "RefusedByApi", f"stand-ins {NAME}: no such: class"),
            id="a stand-in says why it is one",
        ),
        pytest.param(
            observed(others=[a_users_workload(a_basic("x"))], groups=[a_pod_group()]),
            (
                "False",
                "WorkloadDoesNotFit",
                "Workload mine has no template for main, groups that pods are stamped with",
            ),
            id="the groups cannot be had",
        ),
    ],
)
def test_what_is_not_ready(given: Observed, ready: tuple[str, str, str]) -> None:
    """PodGroupsReady says which objects are missing, or why they are not what was wanted."""
    assert said(given)["PodGroupsReady"] == ready


@pytest.mark.parametrize(
    ("given", "nothing"),
    [
        pytest.param(
            observed(a_job(with_spec(managedBy="x"))),
            Nothing(Reason.MANAGED_ELSEWHERE, "Job team-a/llama: spec.managedBy is x"),
            id="skipped",
        ),
        pytest.param(
            Observed(ref(a_job())),
            Nothing(Reason.OBJECT_GONE, "Job team-a/llama does not exist, or another one has its name"),
            id="gone",
        ),
    ],
)
def test_owners_without_conditions(given: Observed, nothing: Nothing) -> None:
    """An owner that is not Muster's hears nothing from this step."""
    assert plan_conditions(given, NOW) == nothing


def test_only_groups_of_the_live_jobset_count() -> None:
    """The group of a JobSet that was rebuilt stays behind and says nothing."""
    old = a_pod_group("llama-workers-99999999", placed, root=a_jobset())
    given = observed(a_jobset(), groups=[old], pods=[a_pod(a_child_job(a_jobset(), "workers", 0))])
    assert said(given)["PodGroupsReady"][:2] == ("False", "WaitingForPodGroup")


def test_the_mark_of_a_users_own_workload_is_told_too() -> None:
    """Its groups stand like all others."""
    given = observed(others=[a_users_workload(a_gang("main", 2))], groups=[PLACED], pods=RUNNING)
    assert said(given)["PodGroupsScheduled"][:2] == ("True", "Scheduled")
