"""A Workload under an owner's name that has the labels of another owner."""

from __future__ import annotations

import pytest

from muster.policy.model import NoOp, Plan
from muster.policy.owners.job import Job
from muster.policy.owners.trainjob import TrainJob
from muster.policy.reasons import Reason
from tests.support.builders import (
    NOW,
    Modifier,
    a_job,
    a_jobset,
    a_trainjob,
    a_workload,
    being_deleted,
    labelled,
    named,
    observed,
)
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_conditions, plan_workload

FOR_ANOTHER = labelled({"muster.dev/owner-uid": "another"})


def a_job_beside(*modifiers: Modifier) -> Observed:
    """A Job whose Workload's name has a Workload with the labels of the Job `other`."""
    other = Job.read(a_job(named("other"), *modifiers))
    return observed(workload=a_workload(modifiers=[FOR_ANOTHER]), other_owner=other)


@pytest.mark.parametrize(
    "modifiers",
    [pytest.param((), id="it runs"), pytest.param((being_deleted,), id="a finalizer keeps it")],
)
def test_a_workload_with_the_labels_of_another_owner_is_a_strangers(modifiers: tuple[Modifier, ...]) -> None:
    """Muster makes no two Workloads of one name: the pods run one by one, and the condition says why."""
    given = a_job_beside(*modifiers)
    plan = plan_workload(given, NOW)
    assert isinstance(plan, Plan)
    assert (plan.reason, plan.requeue) == (Reason.WORKLOAD_NAME_TAKEN, False)
    assert [action.target.kind for action in plan.actions] == ["PodGroup", "Job", "Event"]
    assert mentions(plan.message, "llama-86f65b7bb7", "team-a/other")
    reported = plan_conditions(given, NOW)
    assert isinstance(reported, Plan)
    ready, *_ = (reported.actions[0].body or {})["status"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", Reason.WORKLOAD_NAME_TAKEN)


def test_the_workload_of_an_earlier_trainjob_of_the_name_goes_with_it() -> None:
    """Both make a Workload of their own name: a JobSet that comes in the TrainJob's place waits for it."""
    jobset = a_jobset()
    earlier = TrainJob.read(a_trainjob(being_deleted))
    leftover = a_workload(root=jobset, modifiers=[FOR_ANOTHER])
    decision = plan_workload(observed(jobset, workload=leftover, other_owner=earlier), NOW)
    assert isinstance(decision, NoOp)
    assert (decision.reason, decision.requeue) == (Reason.WORKLOAD_NAME_TAKEN, True)
    assert mentions(decision.message, "team-a/llama", "TrainJob")
