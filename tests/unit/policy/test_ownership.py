"""Which owners Muster does not group and why, and whose Workload is used for the others."""

from __future__ import annotations

import pytest

from muster.objects.meta import ObjectRef
from muster.policy import group_labels
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from tests.support.builders import (
    Object,
    a_basic,
    a_gang,
    a_job,
    a_jobset,
    a_jobset_of_trainjob,
    a_namespace,
    a_replicated_job,
    a_trainjob,
    a_users_workload,
    an_object,
    annotated,
    being_deleted,
    labelled,
    named,
    observed,
    owned_by,
    ref,
    template_annotated,
    template_labelled,
    template_spec,
    with_condition,
    with_spec,
)
from tests.support.planning import Observed, resolve

MULTIKUEUE = with_spec(managedBy="kueue.x-k8s.io/multikueue")
UPSTREAM = annotated({group_labels.UPSTREAM_TEMPLATE: "trainer"})
CRON_JOB = an_object("batch/v1", "CronJob", "nightly", "cron-uid")
GONE = Observed(ObjectRef("batch/v1", "Job", "team-a", "llama", "an-older-uid"))
COMPLETE = with_condition("Complete")
COSCHEDULING = template_labelled({"scheduling.x-k8s.io/pod-group": "x"})
VOLCANO = template_annotated({"scheduling.k8s.io/group-name": "x"})
RESPONDERS = template_spec(evictionResponders=[{"name": "x"}])
REBUILT = a_jobset_of_trainjob(modifiers=[being_deleted])
ELSEWHERE = a_jobset_of_trainjob(modifiers=[MULTIKUEUE])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (GONE, Reason.OBJECT_GONE),
        (observed(a_job(being_deleted)), Reason.DELETED),
        (observed(a_job(), namespace=a_namespace(being_deleted)), Reason.DELETED),
        (observed(a_trainjob(), jobset=REBUILT), Reason.DELETED),
        (observed(a_job(named("j" * 64))), Reason.NAME_TOO_LONG),
        (observed(a_job(COMPLETE)), Reason.FINISHED),
        (observed(a_jobset(modifiers=[with_condition("Completed")])), Reason.FINISHED),
        (observed(a_job(MULTIKUEUE)), Reason.MANAGED_ELSEWHERE),
        (observed(a_trainjob(MULTIKUEUE)), Reason.MANAGED_ELSEWHERE),
        (observed(a_trainjob(), jobset=ELSEWHERE), Reason.MANAGED_ELSEWHERE),
        (observed(a_trainjob()), Reason.AWAITING_JOBSET),
        (observed(a_job(with_spec(scheduling={}))), Reason.UPSTREAM_GROUPS),
        (observed(a_jobset(modifiers=[UPSTREAM])), Reason.UPSTREAM_GROUPS),
        (observed(a_jobset(a_replicated_job("a", UPSTREAM))), Reason.UPSTREAM_GROUPS),
        (observed(a_job(template_spec(schedulingGroup={"podGroupName": "x"}))), Reason.BRING_YOUR_OWN_GROUP),
        (observed(a_job(template_spec(schedulerName="kai-scheduler"))), Reason.OTHER_SCHEDULER),
        (observed(a_job(COSCHEDULING)), Reason.OTHER_SCHEDULER),
        (observed(a_job(VOLCANO)), Reason.OTHER_SCHEDULER),
        (observed(a_job(RESPONDERS)), Reason.EVICTION_RESPONDERS),
        (observed(a_job(template_spec(nodeName="node-1"))), Reason.NODE_NAMED),
        (observed(a_job(template_spec(priorityClassName="system-node-critical"))), Reason.PRIORITY_TOO_HIGH),
        (observed(a_job(label="none")), Reason.OPTED_OUT),
        (observed(a_job(label=None)), Reason.NOT_MARKED),
        (observed(a_job(owned_by(CRON_JOB), label=None)), Reason.OWNED_BY_ANOTHER),
    ],
)
def test_left_alone(given: Observed, reason: Reason) -> None:
    """An owner that is not Muster's to group is skipped, and the reason is named."""
    decision = resolve(given)
    assert isinstance(decision, NoOp)
    assert decision.reason == reason
    assert "team-a/llama" in decision.message or "team-a/jjj" in decision.message


THEIRS = a_users_workload(a_basic("llama-pgt-0"), name="llama-86f65b7bb7")


def test_the_workload_of_the_job_controller_is_left_alone() -> None:
    """With the gate WorkloadWithJob it groups all plain Jobs, also beside a user's own Workload."""
    decision = resolve(observed(workload=THEIRS, others=[a_users_workload(), THEIRS]))
    assert isinstance(decision, NoOp)
    assert decision.reason == Reason.UPSTREAM_GROUPS


def with_label(label: str, value: str) -> Object:
    """A user's Workload with one of the two labels of Muster's."""
    own = a_users_workload()
    labelled({label: value})(own)
    return own


def of_owner(group: str, kind: str, name: str) -> Object:
    """A Workload whose controllerRef names an owner."""
    own = a_users_workload()
    own["spec"]["controllerRef"] = {"apiGroup": group, "kind": kind, "name": name}
    return own


@pytest.mark.parametrize(
    ("workloads", "is_used", "reason"),
    [
        ([a_users_workload(a_basic("main"))], True, None),
        ([a_users_workload(name="llama-86f65b7bb7")], True, None),
        ([with_label(group_labels.MANAGED_BY, group_labels.MUSTER)], True, None),
        ([with_label(group_labels.OWNER_UID, ref(a_job()).uid)], True, None),
        ([of_owner("batch", "Job", "other")], False, None),
        ([of_owner("batch.volcano.sh", "Job", "llama")], False, None),
        ([a_users_workload(a_basic("llama-pgt-0"), name="llama-785fd98b5c")], False, None),
        ([a_users_workload(), a_users_workload(name="also")], False, Reason.TWO_WORKLOADS),
        ([a_users_workload(a_gang("other", 2), a_basic("x"))], True, Reason.WORKLOAD_DOES_NOT_FIT),
    ],
)
def test_a_workload_of_the_users_own(workloads: list[Object], is_used: bool, reason: Reason | None) -> None:
    """One whose controllerRef names the owner and that lacks Muster's labels takes the place of Muster's."""
    resolved = resolve(observed(others=workloads))
    assert isinstance(resolved, ResolvedOwner)
    assert ((resolved.own is not None), resolved.failure and resolved.failure.reason) == (is_used, reason)
