"""create_workload: the Workload of an owner, and existing objects of the same name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.objects.patches import PatchType
from muster.objects.pods import Namespace
from muster.objects.scheduling import Workload
from muster.policy import group_labels
from muster.policy.model import Action, GangGivenUp, NoOp, Plan, Reply, Verb
from muster.policy.reasons import Reason
from tests.support.builders import (
    NOW,
    TRAINJOB_UID,
    Object,
    a_basic,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_jobset_of_trainjob,
    a_namespace,
    a_pod,
    a_replicated_job,
    a_trainjob,
    a_users_workload,
    a_workload,
    being_deleted,
    labelled,
    named,
    observed,
    ref,
    template_labelled,
    template_spec,
    with_spec,
    with_status,
)
from tests.support.messages import mentions, without_message
from tests.support.planning import Observed, needs_groups, plan_workload

TORCHTUNE = a_jobset_of_trainjob(
    a_replicated_job("dataset-initializer", step="dataset-initializer", pods=1),
    a_replicated_job("node", step="trainer", pods=3, after=("dataset-initializer",)),
)
CONTROLLED_BY_TRAINJOB = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "name": "llama",
    "uid": TRAINJOB_UID,
    "controller": True,
}


WHOLE: Object = {"disruptionMode": {"all": {}}}


def test_the_workload_of_a_trainjob() -> None:
    """One template per group label in the JobSet's order, initializers basic; owned by the TrainJob alone."""
    body = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": "llama",
            "namespace": "team-a",
            "labels": {"app.kubernetes.io/managed-by": "muster", "muster.dev/owner-uid": TRAINJOB_UID},
            "ownerReferences": [CONTROLLED_BY_TRAINJOB],
        },
        "spec": {
            "controllerRef": {"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob", "name": "llama"},
            "podGroupTemplates": [a_basic("dataset-initializer"), a_gang("trainer", 3, **WHOLE)],
        },
    }
    plan = plan_workload(observed(a_trainjob(), jobset=TORCHTUNE), NOW)
    assert without_message(plan) == Plan(
        Reason.WORKLOAD_CREATED,
        "",
        (Action(Verb.CREATE, replace(ref(body), uid=""), body),),
        Reply("created", ref(a_trainjob()), {"workload": "llama"}),
    )
    assert mentions(plan.message, "llama", "team-a/llama", "dataset-initializer", "trainer", 3)


def _created(given: Observed) -> Object:
    plan = plan_workload(given, NOW)
    assert isinstance(plan, Plan)
    assert plan.reason == Reason.WORKLOAD_CREATED
    (action,) = plan.actions
    return dict(action.body or {})


HIGH = template_spec(priorityClassName="hi")


@pytest.mark.parametrize(
    ("owner", "templates"),
    [
        pytest.param(a_job(pods=4), [a_gang("main", 4, **WHOLE)], id="a Job is a gang of its pods"),
        pytest.param(a_job(pods=0), [a_gang("main", 1, **WHOLE)], id="minCount is at least 1"),
        pytest.param(
            a_job(template_labelled({group_labels.GROUP_SIZE: "2"}), pods=0),
            [a_gang("main", 1, **WHOLE)],
            id="also where no block has a pod yet: templates cannot be added later",
        ),
        pytest.param(
            a_job(template_labelled({group_labels.GROUP_SIZE: "4"}), pods=6),
            [a_gang("main", 4, **WHOLE)],
            id="the largest of several PodGroups counts",
        ),
        pytest.param(
            a_jobset(a_replicated_job("a", HIGH), a_replicated_job("b", HIGH)),
            [a_gang(name, 2, priorityClassName="hi", **WHOLE) for name in "ab"],
            id="a priority class that all groups share stands in the templates",
        ),
        pytest.param(
            a_jobset(a_replicated_job("a", HIGH), a_replicated_job("b")),
            [a_gang("a", 2, **WHOLE), a_gang("b", 2, **WHOLE)],
            id="classes that differ stand in no template",
        ),
    ],
)
def test_templates(owner: Object, templates: list[Object]) -> None:
    """The templates of a Workload are the owner's groups."""
    assert _created(observed(owner))["spec"]["podGroupTemplates"] == templates


def test_the_workload_of_a_job_has_the_job_controllers_name() -> None:
    """So that each finds what the other made."""
    assert _created(observed())["metadata"]["name"] == "llama-86f65b7bb7"


OURS = a_workload()
EARLIER = a_workload(modifiers=[labelled({"muster.dev/owner-uid": "an-earlier-uid"})])


@pytest.mark.parametrize(
    ("given", "decision", "names"),
    [
        pytest.param(
            observed(workload=OURS),
            NoOp(Reason.UP_TO_DATE),
            ("team-a/llama-86f65b7bb7",),
            id="ours is there: done",
        ),
        pytest.param(
            observed(workload=a_workload(modifiers=[being_deleted])),
            NoOp(Reason.BEING_DELETED, requeue=True),
            ("team-a/llama-86f65b7bb7",),
            id="one on its way out: come again",
        ),
        pytest.param(
            observed(workload=EARLIER),
            Plan(Reason.LEFTOVER_REMOVED, "", (Action(Verb.DELETE, ref(EARLIER)),), requeue=True),
            ("team-a/llama-86f65b7bb7",),
            id="an earlier owner's: deleted by UID, then come again",
        ),
        pytest.param(
            observed(others=[a_users_workload()]),
            NoOp(Reason.OWN_WORKLOAD),
            ("mine",),
            id="the user's own: never written",
        ),
        pytest.param(
            observed(a_trainjob()),
            NoOp(Reason.AWAITING_JOBSET),
            ("team-a/llama",),
            id="no JobSet yet: its event continues",
        ),
    ],
)
def test_an_existing_object_of_the_name(
    given: Observed, decision: Plan | NoOp, names: tuple[str, ...]
) -> None:
    """A Workload is created once and never updated."""
    planned = plan_workload(given, NOW)
    assert without_message(planned) == decision
    assert mentions(planned.message, *names)


STRANGER = a_workload(
    modifiers=[with_spec(controllerRef={"apiGroup": "apps", "kind": "Deployment", "name": "web"})]
)
STRANGER["metadata"]["labels"] = {}


def fallback_group(name: str, owner: Object, annotation: str, priority: str = "") -> Object:
    """A basic PodGroup that takes a gang's place."""
    metadata = owner["metadata"]
    spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    if priority:
        spec["priorityClassName"] = priority
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "labels": {"app.kubernetes.io/managed-by": "muster", "muster.dev/owner-uid": metadata["uid"]},
            "ownerReferences": [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                }
            ],
            "annotations": {"muster.dev/stand-in": annotation},
        },
        "spec": spec,
    }


def test_a_grouping_failure_leaves_fallback_groups_a_condition_and_an_event() -> None:
    """A stranger under our name: fallback groups for all groups, the owner's condition, then an Event."""
    job = a_job(HIGH)
    plan = plan_workload(observed(job, workload=STRANGER), NOW)
    assert isinstance(plan, Plan)
    why = plan.message
    assert mentions(why, "llama-86f65b7bb7", "Deployment", "web")
    group, condition, event = plan.actions
    wanted = fallback_group("llama-main-33333333", job, f"WorkloadNameTaken: {why}", "hi")
    (refused,) = group.if_refused
    assert replace(group, if_refused=()) == Action(Verb.CREATE, replace(ref(wanted), uid=""), wanted)
    assert (refused.body or {})["reason"] == Reason.REFUSED_BY_API
    assert condition == Action(
        Verb.PATCH,
        ref(job),
        {
            "metadata": {"resourceVersion": "7"},
            "status": {
                "conditions": [
                    {
                        "type": "muster.dev/PodGroupsReady",
                        "status": "False",
                        "reason": "WorkloadNameTaken",
                        "message": why,
                        "lastTransitionTime": "2026-11-21T08:00:00Z",
                    }
                ]
            },
        },
        patch=PatchType.MERGE,
        subresource="status",
        milestones=(GangGivenUp(Reason.WORKLOAD_NAME_TAKEN),),
    )
    assert event.optional
    assert event.body is not None
    assert (event.body["type"], event.body["reason"], event.body["message"]) == (
        "Warning",
        "WorkloadNameTaken",
        why,
    )
    assert plan.reason == Reason.WORKLOAD_NAME_TAKEN
    assert plan.reply == Reply("gave-up", ref(job), {"reason": "WorkloadNameTaken", "message": why})


def test_a_repeated_grouping_failure_writes_nothing() -> None:
    """Once the fallback groups exist and the condition says so, there is nothing left to do."""
    first = plan_workload(observed(workload=STRANGER), NOW)
    assert isinstance(first, Plan)
    assert first.actions[1].body is not None
    job = a_job(with_status(**first.actions[1].body["status"]))
    group = fallback_group("llama-main-33333333", job, "x")
    group["metadata"]["uid"] = "made"
    again = plan_workload(observed(job, workload=STRANGER, groups=[group]), NOW)
    assert again == NoOp(Reason.WORKLOAD_NAME_TAKEN, first.message)


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        pytest.param(observed(), False, id="not for a Workload that can be had"),
        pytest.param(observed(workload=STRANGER), True, id="to give up"),
        pytest.param(observed(a_job(with_spec(managedBy="x"))), True, id="managedBy is unknown to admission"),
        pytest.param(observed(a_job(with_spec(scheduling={}))), True, id="upstream's field is, too"),
        pytest.param(
            observed(a_job(label=None)), False, id="not for an unlabelled Job: its pods are not stamped"
        ),
        pytest.param(
            observed(a_jobset(), namespace=a_namespace(enabled=False)),
            True,
            id="for a JobSet whose namespace lost its label: its Jobs may be labelled",
        ),
        pytest.param(observed(a_trainjob()), False, id="not before there is a JobSet"),
    ],
)
def test_when_groups_and_pods_are_read(given: Observed, needed: bool) -> None:
    """Pods are listed only where fallback groups may be needed."""
    assert needs_groups(given) == needed


MANAGED = a_jobset(a_replicated_job("a", HIGH), modifiers=[with_spec(managedBy="kueue.x-k8s.io/multikueue")])
MANAGED_JOB = a_child_job(MANAGED, "a", 0)
MANAGED_FACTS = ("JobSet", "team-a/llama", "spec.managedBy", "kueue.x-k8s.io/multikueue")


def test_stamped_pods_of_a_skipped_owner_get_fallback_groups() -> None:
    """No stamped pod is left without a PodGroup, and the owner hears why it has no gang."""
    pods = [a_pod(MANAGED_JOB, 0), a_pod(MANAGED_JOB, 1)]
    plan = plan_workload(observed(MANAGED, pods=pods), NOW)
    assert isinstance(plan, Plan)
    group, condition, event = plan.actions
    skipped = plan_workload(observed(MANAGED), NOW)
    assert skipped.reason == Reason.MANAGED_ELSEWHERE
    assert mentions(skipped.message, *MANAGED_FACTS)
    assert group.body == fallback_group(
        "llama-a-22222222", MANAGED, f"ManagedElsewhere: {skipped.message}", "hi"
    )
    assert condition.body is not None
    written = condition.body["status"]["conditions"][0]
    assert (written["type"], written["status"], written["reason"]) == (
        "PodGroupsReady",
        "False",
        "ManagedElsewhere",
    )
    assert mentions(written["message"], "llama-a-22222222", *MANAGED_FACTS)
    assert event.optional
    assert plan.reason == Reason.STAND_INS_CREATED
    assert mentions(plan.message, *MANAGED_FACTS)


@pytest.mark.parametrize(
    "modifier",
    [
        pytest.param(being_deleted, id="it is on its way out"),
        pytest.param(lambda pod: pod.update(status={"phase": "Failed"}), id="it has ended"),
        pytest.param(
            with_spec(schedulingGroup={"podGroupName": "theirs"}), id="it names a group of the user's own"
        ),
        pytest.param(lambda pod: pod["spec"].pop("schedulingGroup"), id="it has no stamp"),
    ],
)
def test_a_pod_that_needs_no_fallback_group(modifier: Any) -> None:
    """A fallback group is only for a pod that stamp-pods stamped and that is still to run."""
    decision = plan_workload(observed(MANAGED, pods=[a_pod(MANAGED_JOB, 0, modifier)]), NOW)
    assert without_message(decision) == NoOp(Reason.MANAGED_ELSEWHERE)


def test_a_skipped_owner_whose_groups_exist_needs_nothing() -> None:
    """Whichever client created the groups."""
    group = fallback_group("llama-a-22222222", MANAGED, "x")
    group["metadata"]["uid"] = "made"
    given = observed(MANAGED, pods=[a_pod(MANAGED_JOB, 0)], groups=[group])
    assert without_message(plan_workload(given, NOW)) == NoOp(Reason.MANAGED_ELSEWHERE)


def test_a_finished_owner_gets_no_fallback_groups() -> None:
    """Nothing of it will run again."""
    job = a_job(lambda body: body.update(status={"conditions": [{"type": "Complete", "status": "True"}]}))
    decision = plan_workload(observed(job, pods=[a_pod(job)]), NOW)
    assert without_message(decision) == NoOp(Reason.FINISHED)


def test_labelled_pods_of_a_namespace_that_opted_out_get_fallback_groups() -> None:
    """Jobs labelled before keep making stamped pods after the namespace lost its label."""
    jobset = a_jobset()
    given = observed(
        jobset, namespace=a_namespace(enabled=False), pods=[a_pod(a_child_job(jobset, "workers", 0))]
    )
    plan = plan_workload(given, NOW)
    assert isinstance(plan, Plan)
    assert [action.target.name for action in plan.actions[:1]] == ["llama-workers-22222222"]


def test_an_orphan_is_another_question() -> None:
    """A sweep asks about a Workload whose owner may be gone."""
    orphan = Workload.read(a_workload(modifiers=[named("left")]))
    plan = plan_workload(Observed(orphan.ref, orphan=orphan, namespace=Namespace.read(a_namespace())), NOW)
    assert isinstance(plan, Plan)
    assert plan.reason == Reason.ORPHANS_REMOVED
