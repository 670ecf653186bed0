"""How conditions are written: merged with those of others; and when an Event is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.policy.model import Action, GangReport, NoOp, Reply, Verb
from muster.policy.owners.trainjob import TrainJob
from muster.policy.reasons import Reason
from muster.policy.status.conditions import READY as CONDITION_READY
from muster.policy.status.conditions import Condition, conditions_patch
from tests.support.builders import (
    NOW,
    Modifier,
    Object,
    a_child_job,
    a_job,
    a_jobset,
    a_jobset_of_trainjob,
    a_pod_group,
    a_replicated_job,
    a_trainjob,
    bound,
    observed,
    placed,
    pods_of,
    ref,
    with_status,
)
from tests.support.conditions import (
    FREE,
    NAME,
    NO_ROOM,
    PLACED,
    RUNNING,
    SINCE,
    planned,
    planned_conditions,
    refused,
)
from tests.support.messages import mentions, without_message
from tests.support.planning import Observed, plan_conditions


def _condition(kind: str, reason: str) -> Object:
    message = planned_conditions(observed(groups=[PLACED], pods=RUNNING))[kind.removeprefix("muster.dev/")][2]
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": SINCE}


READY = _condition("muster.dev/PodGroupsReady", "PodGroupsExist")
SCHEDULED = _condition("muster.dev/PodGroupsScheduled", "Scheduled")


def test_a_scheduled_job() -> None:
    """Both conditions in one merge patch of the status with the resourceVersion read, then an Event."""
    plan = planned(observed(groups=[PLACED], pods=RUNNING))
    patch, event = plan.actions
    body = {"metadata": {"resourceVersion": "7"}, "status": {"conditions": [READY, SCHEDULED]}}
    assert patch == Action(Verb.PATCH, ref(a_job()), body, patch=PatchType.MERGE, subresource="status")
    assert event.body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.target.name, "namespace": "team-a"},
        "involvedObject": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": "team-a",
            "name": "llama",
            "uid": a_job()["metadata"]["uid"],
        },
        "type": "Normal",
        "reason": "Scheduled",
        "message": SCHEDULED["message"],
        "source": {"component": "muster-emit-conditions"},
        "reportingComponent": "muster-emit-conditions",
        "reportingInstance": "muster-emit-conditions",
        "firstTimestamp": SINCE,
        "lastTimestamp": SINCE,
        "count": 1,
    }
    assert (plan.reason, plan.message) == (Reason.CONDITIONS_UPDATED, SCHEDULED["message"])
    data = {"reason": "Scheduled", "message": SCHEDULED["message"]}
    assert plan.reply == Reply("scheduled", ref(a_job()), data)
    assert mentions(SCHEDULED["message"], NAME)


OTHERS: list[Object] = [
    {"type": "Suspended", "status": "False", "reason": "Resumed", "odd": [1]},
    {"type": "Mine", "status": "True"},
]


RESUMED = with_status(conditions=[{"type": "Suspended", "status": "False", "reason": "Resumed"}])


def _after(*conditions: Object, owner: Modifier | None = None) -> Observed:
    job = a_job(with_status(conditions=list(conditions)), *([owner] if owner else []))
    return observed(job, groups=[PLACED], pods=RUNNING)


def _written(given: Observed) -> list[Any]:
    return list((planned(given).actions[0].body or {})["status"]["conditions"])


class TestMerge:
    """A status has other writers; the list is sent whole, ours first."""

    def test_others_are_kept_as_they_were(self) -> None:
        """Untouched, in their order, after ours: a TrainJob's last one is its State column."""
        assert _written(_after(*OTHERS)) == [READY, SCHEDULED, *OTHERS]

    def test_unchanged_conditions_are_not_written(self) -> None:
        """Wherever ours stand in the list."""
        decision = plan_conditions(_after(SCHEDULED, *OTHERS, READY), NOW)
        assert without_message(decision) == NoOp(Reason.UP_TO_DATE, gangs=GangReport(placed=1))
        assert mentions(decision.message, "team-a/llama")

    def test_a_time_stays_while_the_status_stays(self) -> None:
        """Only a turn from True to False or back is a transition."""
        before = SCHEDULED | {"message": "older counts", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        assert _written(_after(READY, before)) == [
            READY,
            SCHEDULED | {"lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]

    def test_a_turn_has_the_time_of_now(self) -> None:
        """It was False."""
        before = SCHEDULED | {"status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        assert _written(_after(READY, before)) == [READY, SCHEDULED]

    def test_fields_unknown_to_us_stay_on_ours(self) -> None:
        """A Job's conditions have a lastProbeTime, for example."""
        before = SCHEDULED | {"message": "older", "lastProbeTime": None}
        assert _written(_after(READY, before)) == [READY, SCHEDULED | {"lastProbeTime": None}]

    @pytest.mark.parametrize(
        ("owner", "jobset", "prefix"),
        [
            pytest.param(a_job(), None, "muster.dev/", id="a Job's types carry the prefix"),
            pytest.param(a_jobset(), None, "", id="a JobSet's do not"),
            pytest.param(a_trainjob(RESUMED), a_jobset_of_trainjob(), "", id="nor do a TrainJob's"),
        ],
    )
    def test_types(self, owner: Object, jobset: Object | None, prefix: str) -> None:
        """Condition types of a Job are shared with the whole world."""
        written = _written(observed(owner, jobset=jobset))
        assert [condition["type"] for condition in written][:2] == [
            f"{prefix}PodGroupsReady",
            f"{prefix}PodGroupsScheduled",
        ]

    def test_a_message_is_cut(self) -> None:
        """A long message of the scheduler does not fill the object."""
        given = observed(groups=[refused("Unschedulable", "x" * 5000)], pods=FREE)
        assert len(planned_conditions(given)["PodGroupsScheduled"][2]) == 2048


class TestStateColumn:
    """`kubectl get trainjobs` prints the type of the last condition as STATE, whatever its status."""

    def test_without_a_condition_of_the_trainer_the_last_one_is_true(self) -> None:
        """A TrainJob that waits reads PodGroupsNotScheduled, with the reason of PodGroupsScheduled."""
        ready, scheduled, shown = _written(_waiting_trainjob())
        assert (ready["status"], scheduled["status"]) == ("True", "False")
        assert shown == scheduled | {"type": "PodGroupsNotScheduled", "status": "True"}

    def test_an_unchanged_third_condition_is_not_written(self) -> None:
        """The third condition is compared like the other two."""
        conditions = _written(_waiting_trainjob())
        assert plan_conditions(_waiting_trainjob(*conditions), NOW).reason == Reason.UP_TO_DATE

    def test_it_is_removed_once_the_groups_are_scheduled(self) -> None:
        """PodGroupsScheduled is True then, and last."""
        jobset = a_jobset_of_trainjob(a_replicated_job("node", step="trainer"))
        pods = pods_of(a_child_job(jobset, "node", 0), bound)
        group = a_pod_group("llama-trainer-22222222", placed, root=a_trainjob())
        trainjob = a_trainjob(with_status(conditions=_written(_waiting_trainjob())))
        given = observed(trainjob, jobset=jobset, groups=[group], pods=pods)
        assert [(entry["type"], entry["status"]) for entry in _written(given)] == [
            ("PodGroupsReady", "True"),
            ("PodGroupsScheduled", "True"),
        ]

    def test_a_condition_of_the_trainer_stays_last_and_alone(self) -> None:
        """PodGroupsNotScheduled goes when the Trainer writes its first."""
        foreign = {"type": "Suspended", "status": "True", "reason": "Suspended"}
        written = _written(_waiting_trainjob(*_written(_waiting_trainjob()), foreign))
        assert [entry["type"] for entry in written] == ["PodGroupsReady", "PodGroupsScheduled", "Suspended"]
        assert written[-1] == foreign

    def test_a_wrong_order_is_written_again(self) -> None:
        """Another client may have put its condition in front."""
        ours = _written(_waiting_trainjob(OTHERS[0]))[:2]
        assert [entry["type"] for entry in _written(_waiting_trainjob(OTHERS[0], *ours))] == [
            "PodGroupsReady",
            "PodGroupsScheduled",
            "Suspended",
        ]

    def test_groups_that_failed_are_shown_too(self) -> None:
        """The step with the grouping failure writes PodGroupsReady alone."""
        failed = Condition(CONDITION_READY, true=False, reason="InvalidPolicy", message="no")
        patch = conditions_patch(TrainJob.read(a_trainjob()), (failed,), NOW)
        conditions = ((patch and patch.body) or {})["status"]["conditions"]
        assert [(entry["type"], entry["status"], entry["reason"]) for entry in conditions] == [
            ("PodGroupsReady", "False", "InvalidPolicy"),
            ("PodGroupsNotScheduled", "True", "InvalidPolicy"),
        ]


def _waiting_trainjob(*conditions: Object) -> Observed:
    """A TrainJob with these conditions whose only group waits for its pods."""
    jobset = a_jobset_of_trainjob(a_replicated_job("node", step="trainer"))
    group = a_pod_group("llama-trainer-22222222", root=a_trainjob())
    return observed(a_trainjob(with_status(conditions=list(conditions))), jobset=jobset, groups=[group])


@pytest.mark.parametrize(
    ("given", "news"),
    [
        pytest.param(_after(), ["Scheduled"], id="scheduled for the first time"),
        pytest.param(
            _after(READY, SCHEDULED | {"reason": "Unschedulable"}), ["Scheduled"], id="after a refusal"
        ),
        pytest.param(_after(READY, SCHEDULED | {"message": "1 of 2"}), [], id="counts alone are no news"),
        pytest.param(
            observed(groups=[refused("Unschedulable", NO_ROOM)], pods=FREE),
            ["Unschedulable"],
            id="a refusal",
        ),
        pytest.param(observed(groups=[a_pod_group()], pods=FREE), [], id="waiting is no news"),
    ],
)
def test_events(given: Observed, news: list[str]) -> None:
    """An Event is written when the scheduler's word changes, after the condition that says the same."""
    actions = planned(given).actions
    assert [(action.body or {})["reason"] for action in actions[1:]] == news
    assert all(action.optional for action in actions[1:])


def test_the_same_event_has_the_same_name() -> None:
    """A second delivery adds nothing, another message does."""
    first, again = (planned(_after()).actions[1].target.name for _ in range(2))
    other = planned(observed(groups=[refused("Unschedulable", "no")], pods=FREE)).actions[1].target.name
    assert first == again != other


@pytest.mark.parametrize(
    ("at", "again"),
    [
        pytest.param("2026-11-21T07:59:58Z", True, id="placed a moment ago: its pods are being bound"),
        pytest.param("2026-11-21T07:59:54Z", False, id="placed longer ago: another event reports it"),
    ],
)
def test_a_group_that_was_placed_a_moment_ago_is_checked_again(at: str, again: bool) -> None:
    """The scheduler says so before it binds, and no event of the group follows."""
    group = a_pod_group()
    group["status"] = {
        "conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True", "lastTransitionTime": at}]
    }
    plan = planned(observed(groups=[group], pods=FREE))
    assert plan.requeue == again
    settled = observed(
        a_job(with_status(conditions=list((plan.actions[0].body or {})["status"]["conditions"]))),
        groups=[group],
        pods=FREE,
    )
    nothing = plan_conditions(settled, NOW)
    assert (nothing.reason, nothing.requeue) == (Reason.UP_TO_DATE, again)


def test_a_group_whose_pods_are_bound_is_not_checked_again() -> None:
    """Placed a moment ago, it has all its pods on nodes; what is missing is another group."""
    jobset = a_jobset(a_replicated_job("a"), a_replicated_job("b"))
    jobs = [a_child_job(jobset, name, 0) for name in "ab"]
    moment = "2026-11-21T07:59:58Z"
    group = a_pod_group("llama-a-22222222", root=jobset)
    group["status"] = {
        "conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True", "lastTransitionTime": moment}]
    }
    pods = [*pods_of(jobs[0], bound), *pods_of(jobs[1])]
    assert not planned(observed(jobset, jobs=jobs, groups=[group], pods=pods)).requeue


@pytest.mark.parametrize(
    ("about", "again"),
    [
        pytest.param(NAME, True, id="an event of the group that is being bound"),
        pytest.param("llama-other-33333333", False, id="an event of another one: its own pods are bound"),
    ],
)
def test_an_event_of_one_group_does_not_wait_for_the_others(about: str, again: bool) -> None:
    """Else the first of many groups that are placed one after the other would come again until it is dead."""
    group = a_pod_group()
    moment = "2026-11-21T07:59:58Z"
    group["status"] = {
        "conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True", "lastTransitionTime": moment}]
    }
    given = observed(groups=[group], pods=FREE)
    subject = ObjectRef("scheduling.k8s.io/v1beta1", "PodGroup", "team-a", about)
    assert planned(replace(given, subject=subject)).requeue == again


def test_while_pods_are_bound_their_count_is_not_written() -> None:
    """The event of the group comes again; a sweep, which does not, writes the count."""
    group = a_pod_group(NAME, placed)
    group["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-21T07:59:58Z"
    written = planned(observed(groups=[a_pod_group(NAME)], pods=FREE)).actions[0].body or {}
    job = a_job(with_status(conditions=written["status"]["conditions"]))
    given = observed(job, groups=[group], pods=[RUNNING[0], FREE[1]])
    subject = ObjectRef("scheduling.k8s.io/v1beta1", "PodGroup", "team-a", NAME)
    nothing = plan_conditions(replace(given, subject=subject), NOW)
    assert replace(nothing, gangs=None) == NoOp(
        Reason.WAITING_FOR_SCHEDULER, f"0 of 1 groups scheduled; {NAME}: 1 of 2 pods bound", requeue=True
    )
    assert planned(given).requeue
