"""emit_conditions: the conditions of an owner for the states of its groups."""

from __future__ import annotations

import pytest

from muster.policy.model import NoOp, Plan
from muster.policy.owners.job import Job
from muster.policy.reasons import Reason
from muster.policy.sources.source import PolicySource, PolicySourceKind
from muster.policy.status.conditions import MESSAGE_LIMIT
from tests.support import conditions as c
from tests.support.builders import (
    NOW,
    Object,
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
    a_workload,
    annotated,
    being_deleted,
    bound,
    gated,
    labelled,
    named,
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
from tests.support.conditions import FREE, NAME, NO_ROOM, PLACED, RUNNING, planned_conditions, refused
from tests.support.messages import mentions, without_message
from tests.support.planning import Observed, plan_conditions

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


def _both_bound_at(second: int) -> list[Object]:
    return [_bound_at(second, index) for index in range(2)]


def _refused_at(second: int, index: int) -> Object:
    pod = a_pod(None, index, gated(), UNFIT)
    pod["status"]["conditions"][0] |= _at(second)
    return pod


@pytest.mark.parametrize(
    ("given", "status", "reason", "facts"),
    [
        pytest.param(
            observed(pods=RUNNING),
            "False",
            "WaitingForPodGroup",
            (),
            id="a group is missing",
        ),
        pytest.param(
            observed(groups=[refused("Unschedulable", NO_ROOM)], pods=FREE),
            "False",
            "Unschedulable",
            (NO_ROOM,),
            id="there is no room, in the scheduler's words",
        ),
        pytest.param(
            observed(groups=[refused("SchedulerError", "priorities differ")], pods=FREE),
            "False",
            "SchedulerError",
            ("priorities differ",),
            id="the scheduler cannot handle the group",
        ),
        pytest.param(
            observed(groups=[refused("Odd", "")], pods=FREE),
            "False",
            "Unschedulable",
            ("Odd",),
            id="a reason unknown to us without a message",
        ),
        pytest.param(
            observed(groups=[a_pod_group()], pods=pods_of(a_job())),
            "False",
            "SchedulingGated",
            (),
            id="our gates",
        ),
        pytest.param(
            observed(
                groups=[a_pod_group()], pods=[FREE[0], a_pod(None, 1, gated("kueue.x-k8s.io/admission", "b"))]
            ),
            "False",
            "SchedulingGated",
            ("b", "kueue.x-k8s.io/admission"),
            id="other people's gates are named",
        ),
        pytest.param(
            observed(groups=[a_pod_group()], pods=FREE[:1]),
            "False",
            "WaitingForPods",
            (),
            id="a pod is missing",
        ),
        pytest.param(
            observed(groups=[a_pod_group()], pods=FREE[:1], failed_create="exceeded quota"),
            "False",
            "WaitingForPods",
            ("exceeded quota",),
            id="a pod is missing, and the Job controller said why",
        ),
        pytest.param(
            observed(groups=[a_pod_group()], pods=FREE),
            "False",
            "WaitingForScheduler",
            (0, 2),
            id="the scheduler has not spoken yet",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], FREE[1]]),
            "False",
            "WaitingForScheduler",
            (1, 2),
            id="placed, one is not bound yet",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], a_pod(None, 1, gated(), UNFIT)]),
            "False",
            "Unschedulable",
            ("0/3 nodes are available",),
            id="a replacement finds no room while the group still says it was placed",
        ),
        pytest.param(
            observed(groups=[refused("Unschedulable", NO_ROOM)], pods=[RUNNING[0], FREE[1]]),
            "False",
            "WaitingForScheduler",
            (1, 2),
            id="the group's refusal is over: a pod is bound, the other one follows",
        ),
        pytest.param(
            observed(groups=[_placed_at(9)], pods=[_bound_at(9, 0), _refused_at(3, 1)]),
            "False",
            "WaitingForScheduler",
            (1, 2),
            id="the pods' refusal is over: the group was placed since",
        ),
        pytest.param(
            observed(groups=[_placed_at(1)], pods=[_bound_at(9, 0), _refused_at(3, 1)]),
            "False",
            "WaitingForScheduler",
            (1, 2),
            id="the pods' refusal is over: another pod was bound since the restart",
        ),
        pytest.param(
            observed(groups=[_placed_at(1)], pods=[_bound_at(1, 0), _refused_at(3, 1)]),
            "False",
            "Unschedulable",
            ("0/3 nodes are available",),
            id="a replacement was refused after the others were bound",
        ),
        pytest.param(
            observed(a_job(pods=3), groups=[_placed_at(9)], pods=[*_both_bound_at(9), _refused_at(3, 2)]),
            "False",
            "Unschedulable",
            ("0/3 nodes are available",),
            id="the gang is whole, and a pod beyond its minCount finds no room",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], a_pod(None, 1, bound, being_deleted)]),
            "False",
            "WaitingForPods",
            (1, 2),
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
            (),
            id="a member that has finished is not missed",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[a_pod(None, index, succeeded) for index in range(2)]),
            "True",
            "Scheduled",
            (),
            id="all have finished, and their Job does not say so yet",
        ),
        pytest.param(
            observed(a_job(pods=0), groups=[a_pod_group()]),
            "True",
            "Scheduled",
            (),
            id="no pod is to run",
        ),
        pytest.param(
            observed(
                groups=[a_pod_group()], pods=[a_pod(None, index, unstamped, bound) for index in range(2)]
            ),
            "True",
            "Scheduled",
            (),
            id="bare pods are in no group",
        ),
    ],
)
def test_the_reason_and_message_of_a_waiting_group(
    given: Observed, status: str, reason: str, facts: tuple[object, ...]
) -> None:
    """The message names the group, and quotes what others say of it."""
    *condition, message = planned_conditions(given)["PodGroupsScheduled"]
    assert condition == [status, reason]
    assert mentions(message, NAME, *facts)


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


def test_the_condition_says_why_pods_keep_their_gate() -> None:
    """Those of a gang that was placed before wait for the others, of which one could not be created."""
    given = observed(groups=[PLACED], pods=[a_pod(None, 0)], failed_create="exceeded quota")
    status, reason, message = planned_conditions(given)["PodGroupsScheduled"]
    assert (status, reason) == ("False", "SchedulingGated")
    assert mentions(message, NAME, "1 of 2 pods exist", "exceeded quota")


def test_the_reply_repeats_no_more_than_the_condition() -> None:
    """What others wrote about a pod may have a quarter of a megabyte."""
    evicted = with_condition("DisruptionTarget", "True", "Drain", "\x1b" * 250_000)
    lost = a_pod(None, 0, being_deleted, evicted)
    plan = plan_conditions(observed(groups=[PLACED], pods=[lost, RUNNING[1]]), NOW)
    assert isinstance(plan, Plan)
    assert plan.reply is not None
    assert len(plan.reply.data["message"]) == MESSAGE_LIMIT


def test_a_later_stage_waits_for_its_pods() -> None:
    """Pods that dependsOn holds back are reported; running ones are counted."""
    given = observed(
        TRAINJOB, jobset=JOBSET, jobs=[INITIALIZER], groups=GROUPS, pods=[a_pod(INITIALIZER, 0, bound)]
    )
    ready, scheduled = (
        planned_conditions(given)["PodGroupsReady"],
        planned_conditions(given)["PodGroupsScheduled"],
    )
    assert (ready[:2], scheduled[:2]) == (("True", "PodGroupsExist"), ("False", "WaitingForPods"))
    assert mentions(scheduled[2], "llama-trainer-22222222")
    assert not mentions(scheduled[2], "llama-dataset-initializer-22222222")


def test_the_worst_reason_wins_and_every_waiting_group_is_named() -> None:
    """A missing group comes before one that lacks pods; a quota is reported beside another group's reason."""
    given = observed(TRAINJOB, jobset=JOBSET, groups=GROUPS[:1], failed_create="exceeded quota")
    *condition, message = planned_conditions(given)["PodGroupsScheduled"]
    assert condition == ["False", "WaitingForPodGroup"]
    groups = ("llama-trainer-22222222", "llama-dataset-initializer-22222222")
    assert mentions(message, *groups, "exceeded quota")


@pytest.mark.parametrize(
    ("given", "reason", "facts"),
    [
        pytest.param(
            observed(TRAINJOB, jobset=JOBSET, groups=GROUPS[1:]),
            "WaitingForPodGroup",
            ("llama-dataset-initializer-22222222",),
            id="a group is missing",
        ),
        pytest.param(
            observed(
                groups=[
                    a_pod_group(NAME, annotated({"muster.dev/stand-in": "RefusedByApi: no such: class"}))
                ],
            ),
            "RefusedByApi",
            (NAME, "no such: class"),
            id="a fallback group has its reason",
        ),
        pytest.param(
            observed(groups=[c.FALLBACK]),
            "RefusedByApi",
            (NAME, "no such: class"),
            id="one for the pods of another owner too",
        ),
        pytest.param(
            observed(others=[a_users_workload(a_basic("x"), a_basic("y"))], groups=[a_pod_group()]),
            "WorkloadDoesNotFit",
            ("mine", "main"),
            id="the groups cannot be had",
        ),
        pytest.param(
            observed(
                workload=a_workload(modifiers=[labelled({"muster.dev/owner-uid": "another"})]),
                other_owner=Job.read(a_job(named("other"))),
                sources=(PolicySource(PolicySourceKind.OWNER, "home", "workload: {onFailure: Hold}"),),
            ),
            "WorkloadNameTaken",
            ("llama-86f65b7bb7", "team-a/other"),
            id="another living owner's Workload has the name, and the pods are held",
        ),
    ],
)
def test_pod_groups_ready_is_false_with_the_cause(
    given: Observed, reason: str, facts: tuple[str, ...]
) -> None:
    """PodGroupsReady says which objects are missing, or why they are not what was wanted."""
    *condition, message = planned_conditions(given)["PodGroupsReady"]
    assert condition == ["False", reason]
    assert mentions(message, *facts)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param(
            observed(a_job(with_spec(managedBy="x"))),
            Reason.MANAGED_ELSEWHERE,
            id="skipped",
        ),
        pytest.param(
            Observed(ref(a_job())),
            Reason.OBJECT_GONE,
            id="gone",
        ),
    ],
)
def test_owners_without_conditions(given: Observed, reason: Reason) -> None:
    """An owner that is not Muster's hears nothing from this step."""
    decision = plan_conditions(given, NOW)
    assert without_message(decision) == NoOp(reason)
    assert mentions(decision.message, "team-a/llama")


def test_only_groups_of_the_live_jobset_count() -> None:
    """The group of a JobSet that was rebuilt stays behind and says nothing."""
    old = a_pod_group("llama-workers-99999999", placed, root=a_jobset())
    given = observed(a_jobset(), groups=[old], pods=[a_pod(a_child_job(a_jobset(), "workers", 0))])
    assert planned_conditions(given)["PodGroupsReady"][:2] == ("False", "WaitingForPodGroup")


def test_groups_of_a_users_own_workload_are_reported_too() -> None:
    """Its groups stand like all others."""
    given = observed(others=[a_users_workload(a_gang("main", 2))], groups=[PLACED], pods=RUNNING)
    assert planned_conditions(given)["PodGroupsScheduled"][:2] == ("True", "Scheduled")
