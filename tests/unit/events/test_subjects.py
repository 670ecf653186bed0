"""Which events each step handles, decided by the event alone, without a request."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.events.model import Happened, ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime.steps import step_named, step_names
from tests.support.builders import (
    Modifier,
    Object,
    a_child_job,
    a_job,
    a_jobset,
    a_pod,
    a_pod_group,
    a_trainjob,
    a_workload,
    an_object,
    annotated,
    being_deleted,
    bound,
    gated,
    labelled,
    owned_by,
    placed,
    ref,
    with_condition,
    with_spec,
    with_status,
)


def a_runtime(kind: str) -> Object:
    """A runtime with a policy and no group label yet."""
    entry = {"name": "node", "template": {"spec": {"template": {"spec": {}}}}}
    return an_object(
        "trainer.kubeflow.org/v1alpha1",
        kind,
        "torch",
        "runtime-uid",
        annotated({"muster.dev/pod-group-policy": "workload: {}"}),
        with_spec(template={"spec": {"replicatedJobs": [entry]}}),
    )


Predicate = Callable[[ResourceEvent], ObjectRef | NoOp]
ADD, UPDATE, DELETE = Happened.ADD, Happened.UPDATE, Happened.DELETE
STEPS: dict[str, Predicate] = {name: step_named(name).predicate for name in step_names()}
OBJECTS = {
    "TrainingRuntime": a_runtime("TrainingRuntime"),
    "ClusterTrainingRuntime": a_runtime("ClusterTrainingRuntime"),
    "TrainJob": a_trainjob(),
    "JobSet": a_jobset(modifiers=[with_status(restarts=1)]),
    "Job": a_job(with_spec(suspend=True)),
    "Workload": a_workload(),
    "PodGroup": a_pod_group("llama-main-33333333", placed),
    "CompositePodGroup": an_object("scheduling.k8s.io/v1alpha3", "CompositePodGroup", "llama-all", "cpg-uid"),
    "Pod": a_pod(),
}
HEARD = {
    "mark_runtime": {
        ("TrainingRuntime", ADD),
        ("TrainingRuntime", UPDATE),
        ("ClusterTrainingRuntime", ADD),
        ("ClusterTrainingRuntime", UPDATE),
    },
    "create_workload": {("TrainJob", ADD), ("TrainJob", UPDATE), ("JobSet", ADD), ("Job", ADD)},
    "create_pod_groups": {("Workload", ADD), ("JobSet", ADD), ("Job", ADD)},
    "patch_pods": {("PodGroup", ADD), ("PodGroup", UPDATE), ("CompositePodGroup", ADD), ("Pod", ADD)},
    "resize_gang": {("Job", UPDATE), ("JobSet", UPDATE)},
    "emit_conditions": {("PodGroup", ADD), ("PodGroup", UPDATE), ("Job", UPDATE), ("JobSet", UPDATE)},
}


def event(body: Object, happened: Happened, *, whole: bool = True) -> ResourceEvent:
    """An event in Resource mode, or in Reference mode, which knows no UID."""
    if whole:
        return ResourceEvent("id", happened, ref(body), body)
    named = ref(body)
    return ResourceEvent(
        "id", happened, ObjectRef(named.api_version, named.kind, named.namespace, named.name)
    )


@pytest.mark.parametrize(
    ("step", "kind", "happened"),
    [
        pytest.param(step, kind, happened, id=f"{step}: {kind} {happened}")
        for step in STEPS
        for kind in OBJECTS
        for happened in Happened
    ],
)
def test_the_events_that_each_step_handles(step: str, kind: str, happened: Happened) -> None:
    """The table of design section 6, in both modes; whatever else arrives is not for this step."""
    for whole in (True, False):
        given = event(OBJECTS[kind], happened, whole=whole)
        subject = STEPS[step](given)
        if (kind, happened) in HEARD[step]:
            assert isinstance(subject, ObjectRef)
            assert (str(subject), subject.uid) == (str(given.ref), given.ref.uid)
        else:
            assert isinstance(subject, NoOp)
            assert subject.reason == Reason.NOT_FOR_THIS_STEP
            assert str(given.ref) in subject.message


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "api_version",
    [
        pytest.param("batch.volcano.sh/v1alpha1", id="Volcano's Job"),
        pytest.param("kueue.x-k8s.io/v1beta1", id="Kueue's Workload"),
        pytest.param("scheduling.x-k8s.io/v1alpha1", id="coscheduling's PodGroup"),
    ],
)
def test_kinds_of_other_groups_are_not_ours(step: str, api_version: str) -> None:
    """A kind alone says nothing."""
    for kind in ("Job", "Workload", "PodGroup"):
        for happened in (ADD, UPDATE):
            subject = STEPS[step](event(an_object(api_version, kind, "x", "u"), happened))
            assert isinstance(subject, NoOp)
            assert subject.reason == Reason.NOT_FOR_THIS_STEP


def test_any_version_of_a_group_is_heard() -> None:
    """Kubernetes 1.36 sends v1alpha2."""
    group = a_pod_group()
    group["apiVersion"] = "scheduling.k8s.io/v1alpha2"
    assert STEPS["patch_pods"](event(group, ADD)) == ref(group)


CRON_JOB = an_object("batch/v1", "CronJob", "nightly", "cron-uid")


@pytest.mark.parametrize(
    ("body", "happened", "reason"),
    [
        pytest.param(
            a_job(being_deleted),
            ADD,
            Reason.DELETED,
            id="on its way out",
        ),
        pytest.param(
            a_trainjob(with_condition("Complete")),
            UPDATE,
            Reason.FINISHED,
            id="ended",
        ),
        pytest.param(
            a_child_job(a_jobset(), "workers", 0),
            ADD,
            Reason.OWNED_BY_ANOTHER,
            id="a Job of a JobSet",
        ),
        pytest.param(
            a_job(label=None),
            ADD,
            Reason.NOT_MARKED,
            id="a Job without a group label",
        ),
        pytest.param(
            a_job(label="none"),
            ADD,
            Reason.NOT_MARKED,
            id="a Job that opted out",
        ),
    ],
)
def test_owners_that_are_skipped_by_the_event_alone(body: Object, happened: Happened, reason: Reason) -> None:
    """create_workload needs no call for these."""
    subject = STEPS["create_workload"](event(body, happened))
    assert isinstance(subject, NoOp)
    assert subject.reason == reason
    assert str(ref(body)) in subject.message


@pytest.mark.parametrize(
    ("happened", "status", "examined"),
    [
        pytest.param(UPDATE, "True", False, id="its groups exist"),
        pytest.param(UPDATE, "False", True, id="they do not yet"),
        pytest.param(ADD, "True", True, id="an adapter that starts adds all objects again"),
    ],
)
def test_updates_of_trainjobs_that_have_their_groups(happened: Happened, status: str, examined: bool) -> None:
    """create_workload reads nothing for the many updates of a TrainJob that runs."""
    body = a_trainjob(with_condition("PodGroupsReady", status))
    subject = STEPS["create_workload"](event(body, happened))
    assert isinstance(subject, ObjectRef) == examined
    assert examined or (isinstance(subject, NoOp) and subject.reason == Reason.UP_TO_DATE)


def test_a_cron_jobs_job_labelled_by_hand_is_handled() -> None:
    """Its controller is not one that Muster groups."""
    job = a_job(owned_by(CRON_JOB))
    assert STEPS["create_workload"](event(job, ADD)) == ref(job)


@pytest.mark.parametrize(
    "modifier",
    [
        pytest.param(bound, id="it runs already"),
        pytest.param(gated("kueue.x-k8s.io/admission"), id="only Kueue holds it"),
    ],
)
def test_pods_without_our_gate(modifier: Modifier) -> None:
    """Most pods of a cluster."""
    pod = a_pod(None, 0, modifier)
    subject = STEPS["patch_pods"](event(pod, ADD))
    assert isinstance(subject, NoOp)
    assert subject.reason == Reason.UP_TO_DATE
    assert "Pod team-a/llama-0" in subject.message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(a_job(label=None), Reason.NOT_MARKED, id="a Job without a group label"),
        pytest.param(
            a_jobset(modifiers=[with_condition("Completed")]), Reason.FINISHED, id="a JobSet that ended"
        ),
        pytest.param(
            a_job(with_condition("Complete")), None, id="not a Job that ended: its JobSet's gang gets smaller"
        ),
        pytest.param(a_child_job(a_jobset(), "workers", 0), None, id="not a Job of a JobSet"),
    ],
)
def test_updates_that_change_no_size(body: Object, reason: Reason | None) -> None:
    """resize_gang looks at labelled Jobs and live JobSets."""
    subject = STEPS["resize_gang"](event(body, UPDATE))
    assert (subject.reason if isinstance(subject, NoOp) else None) == reason


def of_generation(number: int) -> Modifier:
    """Set metadata.generation, which the API server raises with every change of the spec."""
    return lambda body: body["metadata"].update(generation=number)


def of_restart(number: int) -> Modifier:
    """Set JobSet's label with the number of restarts before a Job was made."""
    labels = {"jobset.sigs.k8s.io/restart-attempt": str(number)}
    return lambda body: body["metadata"].setdefault("labels", {}).update(labels)


def written_by(*managers: str) -> Modifier:
    """Set metadata.managedFields as the API server does, with the scheduler's status."""
    entries = [{"manager": manager} for manager in managers]
    entries.append({"manager": "kube-scheduler", "subresource": "status"})
    return lambda body: body["metadata"].update(managedFields=entries)


FIRST = of_generation(1)


@pytest.mark.parametrize(
    ("body", "first_size"),
    [
        pytest.param(a_job(FIRST), True, id="a Job begins"),
        pytest.param(a_job(FIRST, with_status(active=2, ready=2)), True, id="its pods become ready"),
        pytest.param(a_job(of_generation(2)), False, id="it was scaled, suspended or resumed"),
        pytest.param(a_job(), False, id="it has no generation, as in a manifest"),
        pytest.param(a_job(FIRST, with_status(succeeded=1)), False, id="a pod succeeded"),
        pytest.param(a_job(FIRST, with_status(failed=1)), False, id="a pod failed"),
        pytest.param(a_job(FIRST, with_status(terminating=1)), False, id="a pod is being deleted"),
        pytest.param(a_job(FIRST, with_status(completedIndexes="0")), False, id="an index is complete"),
        pytest.param(a_job(FIRST, with_status(failedIndexes="0")), False, id="an index failed for good"),
        pytest.param(a_job(FIRST, of_restart(0)), True, id="a JobSet made it"),
        pytest.param(a_job(FIRST, of_restart(1)), False, id="a JobSet made it anew, when pods had ended"),
        pytest.param(a_jobset(modifiers=[FIRST]), True, id="a JobSet begins"),
        pytest.param(a_jobset(modifiers=[of_generation(2)]), False, id="a JobSet was changed"),
        pytest.param(a_jobset(modifiers=[FIRST, with_status(restarts=1)]), False, id="it was restarted"),
        pytest.param(
            a_jobset(modifiers=[FIRST, with_status(replicatedJobsStatus=[{"name": "a", "succeeded": 1}])]),
            False,
            id="a Job of it succeeded",
        ),
        pytest.param(
            a_jobset(modifiers=[FIRST, with_status(replicatedJobsStatus=[{"name": "a", "active": 1}])]),
            True,
            id="a Job of it runs",
        ),
    ],
)
def test_updates_of_owners_that_have_their_first_size(body: Object, first_size: bool) -> None:
    """resize_gang reads nothing before an owner was changed or restarted, or pods of it have ended."""
    subject = STEPS["resize_gang"](event(body, UPDATE))
    assert isinstance(subject, NoOp) == first_size
    assert not isinstance(subject, NoOp) or subject.reason == Reason.UP_TO_DATE
    assert STEPS["resize_gang"](event(body, UPDATE, whole=False)) == event(body, UPDATE, whole=False).ref


@pytest.mark.parametrize(
    ("modifiers", "examined"),
    [
        pytest.param((), False, id="not placed yet: its pods lose their gates when it is added"),
        pytest.param((placed,), True, id="placed: its minCount may have been changed for waiting pods"),
        pytest.param((placed, written_by("muster-create-pod-groups")), False, id="placed, and never changed"),
        pytest.param(
            (placed, written_by("muster-create-pod-groups", "muster-resize-gang")),
            True,
            id="placed, and resized",
        ),
        pytest.param(
            (placed, labelled({"app.kubernetes.io/managed-by": "me"}), written_by("me")),
            True,
            id="placed, and of a user, who may have written it twice",
        ),
        pytest.param(
            (with_spec(parentCompositePodGroupName="llama-all"),), True, id="another group of its tree may be"
        ),
    ],
)
def test_updates_of_groups_that_free_pods(modifiers: tuple[Modifier, ...], examined: bool) -> None:
    """patch_pods reads nothing for an update of a PodGroup for which no pod can wait."""
    subject = STEPS["patch_pods"](event(a_pod_group("llama-main-33333333", *modifiers), UPDATE))
    assert isinstance(subject, ObjectRef) == examined


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(a_job(with_spec(suspend=True)), id="a Job is suspended"),
        pytest.param(a_job(with_condition("Suspended", "False")), id="it was resumed"),
        pytest.param(a_job(with_status(ready=2)), id="all its pods are ready"),
        pytest.param(a_job(with_status(ready=1, succeeded=1)), id="or some have succeeded already"),
        pytest.param(a_job(with_condition("Failed")), id="it failed"),
        pytest.param(
            a_job(with_status(ready=2), with_condition("muster.dev/PodGroupsScheduled", "False")),
            id="its condition says that they wait",
        ),
        pytest.param(
            a_job(with_status(ready=2, failed=1), with_condition("muster.dev/PodGroupsScheduled")),
            id="a pod of it was replaced",
        ),
        pytest.param(a_job(with_status(failed=1, active=1)), id="a pod of it failed or was evicted"),
        pytest.param(a_job(with_status(terminating=1, active=1)), id="a pod of it is being evicted"),
        pytest.param(a_jobset(modifiers=[with_status(restarts=1)]), id="a JobSet was restarted"),
        pytest.param(a_jobset(modifiers=[with_spec(suspend=True)]), id="a JobSet is suspended"),
    ],
)
def test_updates_that_change_a_condition(body: Object) -> None:
    """emit_conditions looks at stops, starts, restarts and lost pods."""
    assert STEPS["emit_conditions"](event(body, UPDATE)) == ref(body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(a_job(with_status(ready=1)), id="one pod is not ready yet"),
        pytest.param(
            a_job(with_status(ready=2), with_condition("muster.dev/PodGroupsScheduled")),
            id="all its pods are ready, and its condition says so",
        ),
        pytest.param(a_jobset(), id="nothing has started"),
    ],
)
def test_updates_that_change_no_condition(body: Object) -> None:
    """emit_conditions does not look at counts in between."""
    subject = STEPS["emit_conditions"](event(body, UPDATE))
    assert isinstance(subject, NoOp)
    assert subject.reason == Reason.UP_TO_DATE
    assert str(ref(body)) in subject.message


def test_an_unlabelled_job_has_no_conditions() -> None:
    """However it turns."""
    subject = STEPS["emit_conditions"](event(a_job(with_spec(suspend=True), label=None), UPDATE))
    assert isinstance(subject, NoOp)
    assert subject.reason == Reason.NOT_MARKED
