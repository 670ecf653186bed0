"""create_pod_groups: the PodGroups of a stored Workload, whole, parents' references in order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.policy import group_labels
from muster.policy.model import Action, NoOp, Plan, Reply, Verb
from muster.policy.plans.create_pod_groups import as_executed
from muster.policy.reasons import Reason
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    TRAINJOB_UID,
    WORKLOAD_UID,
    Object,
    a_basic,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_jobset_of_trainjob,
    a_pod_group,
    a_replicated_job,
    a_trainjob,
    a_users_workload,
    a_workload,
    being_deleted,
    labelled,
    named,
    observed,
    of_uid,
    ref,
    template_labelled,
    template_spec,
    with_spec,
    with_status,
)
from tests.support.messages import mentions, without_message
from tests.support.planning import Observed, plan_pod_groups

LONG = "w" * 70
HOLDING = "workload: {onFailure: Hold, groups: [{name: x}]}"
WHOLE = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {
        "name": "llama-trainer-22222222",
        "namespace": "team-a",
        "labels": {
            "app.kubernetes.io/managed-by": "muster",
            "muster.dev/owner-uid": TRAINJOB_UID,
            "muster.dev/workload": "llama",
        },
        "ownerReferences": [
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "name": "llama",
                "uid": TRAINJOB_UID,
                "controller": True,
            },
            {
                "apiVersion": "scheduling.k8s.io/v1beta1",
                "kind": "Workload",
                "name": "llama",
                "uid": WORKLOAD_UID,
            },
        ],
    },
    "spec": {
        "workloadRef": {"templateName": "trainer", "workloadName": "llama"},
        "schedulingPolicy": {"gang": {"minCount": 2}},
    },
}


def _made(given: Observed) -> list[Action]:
    plan = plan_pod_groups(given, NOW)
    assert isinstance(plan, Plan)
    assert plan.reason == Reason.POD_GROUPS_CREATED
    return list(plan.actions)


def _specs(given: Observed) -> dict[str, Object]:
    return {action.target.name: dict((action.body or {})["spec"]) for action in _made(given)}


def _min_counts(given: Observed) -> dict[str, int]:
    return {name: spec["schedulingPolicy"]["gang"]["minCount"] for name, spec in _specs(given).items()}


def test_the_pod_group_of_a_trainjob() -> None:
    """Owned by the TrainJob, then the Workload; refused, a fallback group and an Event take its place."""
    trainjob = a_trainjob()
    workload = a_workload(a_gang("trainer", 2), root=trainjob)
    given = observed(trainjob, jobset=a_jobset_of_trainjob(), workload=workload)
    plan = plan_pod_groups(given, NOW)
    assert isinstance(plan, Plan)
    (action,) = plan.actions
    event, fallback_group = action.if_refused
    assert replace(action, if_refused=()) == Action(Verb.CREATE, replace(ref(WHOLE), uid=""), WHOLE)
    assert fallback_group.target == action.target
    assert fallback_group.body is not None
    assert fallback_group.body["spec"] == {"schedulingPolicy": {"basic": {}}}
    assert fallback_group.body["metadata"]["annotations"] == {
        "muster.dev/stand-in": "RefusedByApi: {refusal}"
    }
    assert event.body is not None
    assert (event.optional, event.body["type"]) == (True, "Warning")
    assert event.body["message"] == "{refusal}"
    assert mentions(plan.message, "team-a/llama", "llama-trainer-22222222")
    assert plan.reply == Reply(
        "created", ref(trainjob), {"workload": "llama", "podGroups": ["llama-trainer-22222222"]}
    )


def test_the_reply_names_the_created_groups() -> None:
    """Where all was refused and the policy holds the pods, only Events are left: nothing was created."""
    workload = a_workload(a_gang("left", 2), a_gang("right", 1), root=PAIR)
    plan = plan_pod_groups(observed(PAIR, workload=workload), NOW)
    assert isinstance(plan, Plan)
    left, right = plan.actions
    one = as_executed(replace(plan, actions=(left.if_refused[0], right)))
    assert (one.reason, one.reply and one.reply.data["podGroups"]) == (
        Reason.POD_GROUPS_CREATED,
        ["llama-right-22222222"],
    )
    none = as_executed(replace(plan, actions=(left.if_refused[0], right.if_refused[0])))
    assert (none.reason, none.reply) == (Reason.REFUSED_BY_API, None)
    assert mentions(none.message, "team-a/llama", "llama-left-22222222", "llama-right-22222222")


PAIR = a_jobset(a_replicated_job("a", pods=2, label="left"), a_replicated_job("b", pods=1, label="right"))
PER_JOB = template_labelled({group_labels.GROUP_PER: "job"})
TWO_JOBS = a_jobset(a_replicated_job("a", PER_JOB, pods=3, replicas=2, label="g"))


def test_one_pod_group_for_each_job_or_block() -> None:
    """A template makes as many PodGroups as the group labels ask for; the last block asks for fewer pods."""
    per_job = observed(TWO_JOBS, workload=a_workload(a_gang("g", 3), root=TWO_JOBS))
    assert _min_counts(per_job) == {"llama-g-22222222-0": 3, "llama-g-22222222-1": 3}
    blocks = a_job(template_labelled({group_labels.GROUP_SIZE: "2"}), pods=5)
    given = observed(blocks, workload=a_workload(a_gang("main", 2), root=blocks))
    names = [f"llama-main-33333333-{block}" for block in range(3)]
    assert _min_counts(given) == dict(zip(names, (2, 2, 1), strict=True))


def test_pod_groups_follow_the_stored_workload() -> None:
    """What stands in the Workload is materialised, not what the planner would have written."""
    assert _specs(observed(workload=a_workload(a_basic("main"))))["llama-main-33333333"][
        "schedulingPolicy"
    ] == {"basic": {}}
    pinned = "workload: {groups: [{name: main, schedulingPolicy: {gang: {minCount: 1}}}]}"
    sources = (PolicySource(PolicySourceKind.OWNER, "home", pinned),)
    given = observed(workload=a_workload(a_gang("main", 1)), sources=sources)
    assert _min_counts(given) == {"llama-main-33333333": 1}


def test_a_jobset_that_is_made_again_gets_whole_gangs() -> None:
    """The minCount of the template was lowered as pods of the former JobSet ended."""
    jobset = a_jobset(a_replicated_job("workers"))
    given = observed(jobset, workload=a_workload(a_gang("workers", 1), root=jobset))
    assert _min_counts(given) == {"llama-workers-22222222": 2}


def test_settings_of_a_template_are_copied() -> None:
    """The API server compares a group with its template never, so its creator must copy."""
    settings = {
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "disruptionMode": {"all": {}},
        "preemptionPolicy": "Never",
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}],
    }
    own = a_users_workload(a_gang("main", 2, **settings))
    spec = _specs(observed(others=[own]))["llama-main-33333333"]
    assert spec == {
        "workloadRef": {"templateName": "main", "workloadName": "mine"},
        "schedulingPolicy": {"gang": {"minCount": 2}},
        **settings,
    }


@pytest.mark.parametrize(
    ("given", "min_count"),
    [
        pytest.param(
            observed(
                a_job(with_status(completedIndexes="0"), pods=4), workload=a_workload(a_gang("main", 4))
            ),
            3,
            id="a finished index will not come back",
        ),
        pytest.param(
            observed(
                a_job(with_status(completedIndexes="0-2"), pods=3), workload=a_workload(a_gang("main", 3))
            ),
            1,
            id="never below 1",
        ),
        pytest.param(
            observed(a_job(pods=4), others=[a_users_workload(a_gang("main", 3))]),
            3,
            id="a user's own minCount stays",
        ),
        pytest.param(
            observed(
                a_job(with_status(completedIndexes="0-1"), pods=4),
                others=[a_users_workload(a_gang("main", 4))],
            ),
            4,
            id="also when members have finished: it is never resized",
        ),
        pytest.param(
            observed(a_job(pods=4), others=[a_users_workload(a_gang("main", 9))]),
            4,
            id="but for more pods than there can be",
        ),
    ],
)
def test_no_group_asks_for_more_pods_than_will_come(given: Observed, min_count: int) -> None:
    """The number in the Workload is old when a Job has moved on."""
    assert _min_counts(given) == {"llama-main-33333333": min_count}


@pytest.mark.parametrize(
    ("template", "pods", "priority"),
    [
        pytest.param(a_gang("main", 2), "hi", "hi", id="the template has none, the pods have one"),
        pytest.param(a_gang("main", 2, priorityClassName="lo"), "hi", "hi", id="the pods' rules"),
        pytest.param(a_gang("main", 2, priorityClassName="lo"), "", None, id="pods without one rule too"),
    ],
)
def test_the_priority_class_is_the_pods(template: Object, pods: str, priority: str | None) -> None:
    """The scheduler places no group whose priority is not exactly that of its pods."""
    job = a_job(*([template_spec(priorityClassName=pods)] if pods else []))
    spec = _specs(observed(job, others=[a_users_workload(template)]))["llama-main-33333333"]
    assert spec.get("priorityClassName") == priority


def test_the_workload_label_is_cut_to_a_label_value() -> None:
    """A Workload's name may be longer than a label may be."""
    (action,) = _made(observed(workload=a_workload(modifiers=[named(LONG)])))
    assert action.body is not None
    assert action.body["metadata"]["labels"]["muster.dev/workload"] == "w" * 63
    assert action.body["spec"]["workloadRef"]["workloadName"] == LONG


OURS = a_workload(a_gang("g", 3), root=TWO_JOBS)
FIRST = a_pod_group("llama-g-22222222-0", root=TWO_JOBS)
SECOND = a_pod_group("llama-g-22222222-1", root=TWO_JOBS)
GOING = a_pod_group("llama-g-22222222-0", being_deleted, root=TWO_JOBS)


def test_only_missing_pod_groups_are_created() -> None:
    """What is there serves the pods of its name, whichever client created it."""
    assert list(_specs(observed(TWO_JOBS, workload=OURS, groups=[FIRST]))) == ["llama-g-22222222-1"]


def test_a_group_being_deleted_does_not_hold_up_the_others() -> None:
    """The others are made now; the event comes again for the one whose name is still taken."""
    plan = plan_pod_groups(observed(TWO_JOBS, workload=OURS, groups=[GOING]), NOW)
    assert isinstance(plan, Plan)
    assert ([action.target.name for action in plan.actions], plan.requeue) == (
        ["llama-g-22222222-1"],
        True,
    )


def test_a_group_label_added_after_the_workload_gets_a_fallback_group() -> None:
    """A Workload takes no new templates, and pods that are stamped all the same must not wait for ever."""
    jobset = a_jobset(a_replicated_job("a"), a_replicated_job("b", template_spec(priorityClassName="hi")))
    given = observed(jobset, workload=a_workload(a_gang("a", 2), root=jobset))
    made = {action.target.name: action for action in _made(given)}
    late = made["llama-b-22222222"].body
    assert late is not None
    reason, _, why = late["metadata"]["annotations"]["muster.dev/stand-in"].partition(": ")
    assert reason == "WorkloadDoesNotFit"
    assert mentions(why, "llama", "b")
    assert late["spec"] == {"schedulingPolicy": {"basic": {}}, "priorityClassName": "hi"}
    assert "workloadRef" in dict(made["llama-a-22222222"].body or {})["spec"]


@pytest.mark.parametrize(
    ("given", "decision", "facts"),
    [
        pytest.param(
            observed(TWO_JOBS, workload=OURS, groups=[FIRST, SECOND]),
            NoOp(Reason.UP_TO_DATE),
            ("team-a/llama",),
            id="all exist",
        ),
        pytest.param(
            observed(TWO_JOBS, workload=OURS, groups=[GOING, SECOND]),
            NoOp(Reason.BEING_DELETED, requeue=True),
            ("llama-g-22222222-0",),
            id="the last one's name is still taken",
        ),
        pytest.param(
            observed(),
            NoOp(Reason.AWAITING_WORKLOAD),
            ("team-a/llama",),
            id="no Workload yet",
        ),
        pytest.param(
            observed(workload=a_workload(modifiers=[being_deleted])),
            NoOp(Reason.AWAITING_WORKLOAD),
            ("team-a/llama",),
            id="the Workload is on its way out",
        ),
        pytest.param(
            observed(workload=a_workload(modifiers=[labelled({"muster.dev/owner-uid": "earlier"})])),
            NoOp(Reason.NOT_MUSTERS),
            ("team-a/llama-86f65b7bb7", "team-a/llama"),
            id="the Workload is an earlier owner's",
        ),
        pytest.param(
            observed(a_job(label=None)),
            NoOp(Reason.NOT_MARKED),
            ("team-a/llama",),
            id="the owner is skipped",
        ),
        pytest.param(
            observed(others=[a_users_workload(a_basic("x"), a_basic("y"))]),
            NoOp(Reason.WORKLOAD_DOES_NOT_FIT),
            ("mine", "main", "fallback"),
            id="a grouping failure in create_workload",
        ),
        pytest.param(
            observed(sources=(PolicySource(PolicySourceKind.OWNER, "home", HOLDING),)),
            NoOp(Reason.INVALID_POLICY),
            ("keep their gate",),
            id="the policy holds the pods",
        ),
    ],
)
def test_nothing_to_make(given: Observed, decision: NoOp, facts: tuple[str, ...]) -> None:
    """No PodGroup is made, and the reason says who continues."""
    planned = plan_pod_groups(given, NOW)
    assert without_message(planned) == decision
    assert mentions(planned.message, *facts)


def test_a_recreated_jobset_gets_groups_with_new_names() -> None:
    """The old PodGroups stay with the old JobSet's pods."""
    rebuilt = a_jobset_of_trainjob(modifiers=[of_uid("99999999-aaaa")])
    trainjob = a_trainjob()
    old = a_pod_group("llama-trainer-22222222", root=trainjob)
    given = observed(
        trainjob, jobset=rebuilt, workload=a_workload(a_gang("trainer", 2), root=trainjob), groups=[old]
    )
    assert list(_specs(given)) == ["llama-trainer-99999999"]


def test_jobs_that_are_not_born_yet_count_in_full() -> None:
    """One Job of two lives and has one pod done."""
    jobset = a_jobset(a_replicated_job("a", pods=3, replicas=2))
    live = a_child_job(jobset, "a", 0, with_status(completedIndexes="0"))
    given = observed(jobset, jobs=[live], workload=a_workload(a_gang("a", 6), root=jobset))
    assert _min_counts(given) == {"llama-a-22222222": 5}


def test_templates_of_the_users_own_without_pods_make_nothing() -> None:
    """A group that no pod is stamped for would never be placed."""
    own = a_users_workload(a_gang("main", 2), a_gang("spare", 2))
    assert list(_specs(observed(a_job(with_spec(suspend=True)), others=[own]))) == ["llama-main-33333333"]
