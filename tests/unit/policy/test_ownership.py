"""Which owners Muster does not group and why, and whose Workload is used for the others."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.meta import ObjectRef
from muster.policy import group_labels
from muster.policy.groups.manifests import FALLBACK
from muster.policy.model import NoOp, Plan, Verb
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from tests.support import builders as b
from tests.support.builders import Object
from tests.support.planning import Observed, plan_resize, resolve

MULTIKUEUE = b.with_spec(managedBy="kueue.x-k8s.io/multikueue")
UPSTREAM = b.annotated({group_labels.UPSTREAM_TEMPLATE: "trainer"})
CRON_JOB = b.an_object("batch/v1", "CronJob", "nightly", "cron-uid")
COSCHEDULING = b.template_labelled({"scheduling.x-k8s.io/pod-group": "x"})
VOLCANO = b.template_annotated({"scheduling.k8s.io/group-name": "x"})
REBUILT = b.a_jobset_of_trainjob(modifiers=[b.being_deleted])
ELSEWHERE = b.a_jobset_of_trainjob(modifiers=[MULTIKUEUE])
BY_TEMPLATE: list[tuple[dict[str, Any], Reason]] = [
    ({"schedulingGroup": {"podGroupName": "x"}}, Reason.BRING_YOUR_OWN_GROUP),
    ({"schedulerName": "kai-scheduler"}, Reason.OTHER_SCHEDULER),
    ({"schedulerName": "yunikorn"}, Reason.OTHER_SCHEDULER),
    ({"evictionResponders": [{"name": "x"}]}, Reason.CANNOT_BE_GROUPED),
    ({"nodeName": "node-1"}, Reason.CANNOT_BE_GROUPED),
    ({"priorityClassName": "system-node-critical"}, Reason.CANNOT_BE_GROUPED),
]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Observed(ObjectRef("batch/v1", "Job", "team-a", "llama", "an-older-uid")), Reason.DELETED),
        (b.observed(b.a_job(b.being_deleted)), Reason.DELETED),
        (b.observed(namespace=b.a_namespace(b.being_deleted)), Reason.DELETED),
        (b.observed(b.a_trainjob(), jobset=REBUILT), Reason.DELETED),
        (b.observed(b.a_job(b.named("llama" * 13))), Reason.CANNOT_BE_GROUPED),
        (b.observed(b.a_job(b.with_condition("Complete"))), Reason.FINISHED),
        (b.observed(b.a_jobset(modifiers=[b.with_condition("Completed")])), Reason.FINISHED),
        (b.observed(b.a_job(MULTIKUEUE)), Reason.MANAGED_ELSEWHERE),
        (b.observed(b.a_trainjob(MULTIKUEUE)), Reason.MANAGED_ELSEWHERE),
        (b.observed(b.a_trainjob(), jobset=ELSEWHERE), Reason.MANAGED_ELSEWHERE),
        (b.observed(b.a_trainjob()), Reason.AWAITING_JOBSET),
        (b.observed(b.a_job(b.with_spec(scheduling={}))), Reason.UPSTREAM_GROUPS),
        (b.observed(b.a_jobset(modifiers=[UPSTREAM])), Reason.UPSTREAM_GROUPS),
        (b.observed(b.a_jobset(b.a_replicated_job("a", UPSTREAM))), Reason.UPSTREAM_GROUPS),
        *((b.observed(b.a_job(b.template_spec(**spec))), reason) for spec, reason in BY_TEMPLATE),
        (b.observed(b.a_job(COSCHEDULING)), Reason.OTHER_SCHEDULER),
        (b.observed(b.a_job(VOLCANO)), Reason.OTHER_SCHEDULER),
        (b.observed(b.a_job(label="none")), Reason.NOT_MARKED),
        (b.observed(b.a_job(label=None)), Reason.NOT_MARKED),
        (b.observed(b.a_job(b.owned_by(CRON_JOB), label=None)), Reason.NOT_MARKED),
    ],
)
def test_left_alone(given: Observed, reason: Reason) -> None:
    """An owner that is not Muster's to group is skipped, and the reason is named."""
    decision = resolve(given)
    assert isinstance(decision, NoOp)
    assert decision.reason == reason
    assert "team-a/llama" in decision.message


THEIRS = b.a_users_workload(b.a_basic("llama-pgt-0"), name="llama-86f65b7bb7")


def test_the_workload_of_the_job_controller_is_left_alone() -> None:
    """With the gate WorkloadWithJob it groups all plain Jobs, also beside a user's own Workload."""
    decision = resolve(b.observed(workload=THEIRS, others=[b.a_users_workload(), THEIRS]))
    assert isinstance(decision, NoOp)
    assert decision.reason == Reason.UPSTREAM_GROUPS


def with_label(label: str, value: str) -> Object:
    """A user's Workload with one of the two labels of Muster's."""
    own = b.a_users_workload()
    b.labelled({label: value})(own)
    return own


def of_owner(group: str, kind: str, name: str) -> Object:
    """A Workload whose controllerRef names an owner."""
    own = b.a_users_workload()
    own["spec"]["controllerRef"] = {"apiGroup": group, "kind": kind, "name": name}
    return own


@pytest.mark.parametrize(
    ("workloads", "is_used", "reason"),
    [
        ([b.a_users_workload(b.a_basic("main"))], True, None),
        ([b.a_users_workload(name="llama-86f65b7bb7")], True, None),
        ([with_label(group_labels.MANAGED_BY, group_labels.MUSTER)], True, None),
        ([with_label(group_labels.OWNER_UID, b.ref(b.a_job()).uid)], True, None),
        ([of_owner("batch", "Job", "other")], False, None),
        ([of_owner("batch.volcano.sh", "Job", "llama")], False, None),
        ([b.a_users_workload(b.a_basic("llama-pgt-0"), name="llama-785fd98b5c")], False, None),
        ([b.a_users_workload(), b.a_users_workload(name="also")], False, Reason.WORKLOAD_DOES_NOT_FIT),
        ([b.a_users_workload(b.a_gang("other", 2), b.a_basic("x"))], True, Reason.WORKLOAD_DOES_NOT_FIT),
    ],
)
def test_a_workload_of_the_users_own(workloads: list[Object], is_used: bool, reason: Reason | None) -> None:
    """One whose controllerRef names the owner and that lacks Muster's labels takes the place of Muster's."""
    resolved = resolve(b.observed(others=workloads))
    assert isinstance(resolved, ResolvedOwner)
    assert ((resolved.own is not None), resolved.failure and resolved.failure.reason) == (is_used, reason)


@pytest.mark.parametrize(
    ("group", "pods", "goes"),
    [
        (b.a_pod_group(), [], True),
        (b.a_pod_group(), [b.a_pod(None, 0, b.succeeded)], True),
        (b.a_pod_group(), [b.a_pod(None, 0, b.bound, b.being_deleted)], False),
        (b.a_pod_group("llama-main-33333333", b.being_deleted), [], False),
        (b.a_pod_group("llama-main-33333333", b.annotated({FALLBACK: "InvalidPolicy: x"})), [], False),
        (b.a_pod_group("llama-main-33333333", b.labelled({group_labels.MANAGED_BY: "me"})), [], False),
    ],
)
@pytest.mark.parametrize("own", [False, True], ids=["Muster's Workload", "a user's own Workload"])
def test_groups_of_a_suspended_owner_that_go(
    group: Object, pods: list[Object], goes: bool, own: bool
) -> None:
    """Those that Muster made of a Workload, once no pod names them; the Workload and users' groups stay."""
    workload = {"others": [b.a_users_workload()]} if own else {"workload": b.a_workload()}
    plan = plan_resize(
        b.observed(b.a_job(b.with_spec(suspend=True)), groups=[group], pods=pods, **workload), b.NOW
    )
    deleted = plan.actions if isinstance(plan, Plan) else ()
    assert [(action.verb, action.target.uid) for action in deleted] == [
        (Verb.DELETE, "llama-main-33333333-uid")
    ] * goes


def test_groups_that_a_running_owner_lacks_are_made() -> None:
    """As after a resumption, or when a Job in blocks grows: create_pod_groups gets their names."""
    job = b.a_job(b.template_labelled({group_labels.GROUP_SIZE: "2"}), pods=4)
    given = b.observed(job, workload=b.a_workload(), groups=[b.a_pod_group("llama-main-33333333-0")])
    reply = plan_resize(given, b.NOW).reply
    assert reply is not None
    assert (reply.type_suffix, reply.data) == ("missing", {"podGroups": ["llama-main-33333333-1"]})
