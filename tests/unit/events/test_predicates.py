"""Which events each step handles, decided by the event alone, without a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from muster.events.model import Happened, ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime.steps import step_named, step_names
from tests.support.builders import (
    Modifier,
    Object,
    a_job,
    a_jobset,
    a_pod,
    a_pod_group,
    a_trainjob,
    a_workload,
    an_object,
    being_deleted,
    bound,
    labelled,
    placed,
    ref,
    with_condition,
    with_spec,
    with_status,
)
from tests.support.runtimes import a_runtime

Predicate = Callable[[ResourceEvent], ObjectRef | NoOp]
ADD, UPDATE = Happened.ADD, Happened.UPDATE
STEPS: dict[str, Predicate] = {name: step_named(name).predicate for name in step_names()}
OBJECTS = {
    "TrainingRuntime": {**a_runtime("workload: {}"), "kind": "TrainingRuntime"},
    "ClusterTrainingRuntime": a_runtime("workload: {}"),
    "TrainJob": a_trainjob(),
    "JobSet": a_jobset(modifiers=[with_status(restarts=1)]),
    "Job": a_job(with_spec(suspend=True)),
    "Workload": a_workload(),
    "PodGroup": a_pod_group("llama-main-33333333", placed),
    "CompositePodGroup": an_object("scheduling.k8s.io/v1alpha3", "CompositePodGroup", "llama-all", "cpg-uid"),
    "Pod": a_pod(),
}
HEARD = {
    "mark_runtime": {*product(("TrainingRuntime", "ClusterTrainingRuntime"), (ADD, UPDATE))},
    "create_workload": {("TrainJob", ADD), ("TrainJob", UPDATE), ("JobSet", ADD), ("Job", ADD)},
    "create_pod_groups": {("Workload", ADD), ("JobSet", ADD), ("Job", ADD)},
    "patch_pods": {("PodGroup", ADD), ("PodGroup", UPDATE), ("CompositePodGroup", ADD), ("Pod", ADD)},
    "resize_gang": {("Job", UPDATE), ("JobSet", UPDATE)},
    "emit_conditions": {("PodGroup", ADD), ("PodGroup", UPDATE), ("Job", UPDATE), ("JobSet", UPDATE)},
}


RESTART = "jobset.sigs.k8s.io/restart-attempt"


def unchanged(body: Object) -> None:
    """Say that its spec was never changed."""
    body["metadata"].update(generation=1)


def written_by(*managers: str) -> Modifier:
    """Set metadata.managedFields as the API server does."""
    return lambda body: body["metadata"].update(managedFields=[{"manager": manager} for manager in managers])


@pytest.mark.parametrize("step", STEPS)
def test_the_events_of_each_step(step: str) -> None:
    """The table above, in both modes; all other events are not for the step."""
    for (kind, body), happened in product(OBJECTS.items(), Happened):
        named = replace(ref(body), uid="")
        for event in (ResourceEvent("id", happened, ref(body), body), ResourceEvent("id", happened, named)):
            subject = STEPS[step](event)
            if (kind, happened) in HEARD[step]:
                assert str(subject) == str(event.ref)
            else:
                assert isinstance(subject, NoOp)
                assert subject.reason == Reason.NOT_FOR_THIS_STEP


GROUP = "llama-main-33333333"
MADE_BY = "muster-create-pod-groups"
SCHEDULED = with_condition("muster.dev/PodGroupsScheduled")


@pytest.mark.parametrize(
    ("step", "happened", "body", "reason"),
    [
        ("create_workload", ADD, a_job(being_deleted), Reason.DELETED),
        ("create_workload", UPDATE, a_trainjob(with_condition("Complete")), Reason.FINISHED),
        ("create_workload", ADD, a_job(label=None), Reason.NOT_MARKED),
        ("create_workload", UPDATE, a_trainjob(with_condition("PodGroupsReady")), Reason.UP_TO_DATE),
        ("create_workload", UPDATE, a_trainjob(with_condition("PodGroupsReady", "False")), None),
        ("patch_pods", ADD, a_pod(None, 0, bound), Reason.UP_TO_DATE),
        ("patch_pods", UPDATE, a_pod_group(GROUP), Reason.UP_TO_DATE),
        ("patch_pods", UPDATE, a_pod_group(GROUP, placed, written_by(MADE_BY)), Reason.UP_TO_DATE),
        ("patch_pods", UPDATE, a_pod_group(GROUP, placed, written_by(MADE_BY, "muster-resize-gang")), None),
        ("patch_pods", UPDATE, a_pod_group(GROUP, with_spec(parentCompositePodGroupName="all")), None),
        ("resize_gang", UPDATE, a_jobset(modifiers=[with_condition("Completed")]), Reason.FINISHED),
        ("resize_gang", UPDATE, a_job(unchanged), Reason.UP_TO_DATE),
        ("resize_gang", UPDATE, a_job(unchanged, with_status(succeeded=1)), None),
        ("resize_gang", UPDATE, a_job(unchanged, labelled({RESTART: "0"})), Reason.UP_TO_DATE),
        ("resize_gang", UPDATE, a_job(unchanged, labelled({RESTART: "1"})), None),
        ("resize_gang", UPDATE, a_jobset(modifiers=[unchanged]), Reason.UP_TO_DATE),
        ("resize_gang", UPDATE, a_jobset(modifiers=[unchanged, with_status(restarts=1)]), None),
        ("emit_conditions", UPDATE, a_job(with_condition("Suspended", "False")), None),
        ("emit_conditions", UPDATE, a_job(with_status(ready=1)), Reason.UP_TO_DATE),
        ("emit_conditions", UPDATE, a_job(with_status(ready=1, succeeded=1)), None),
        ("emit_conditions", UPDATE, a_job(with_status(ready=2), SCHEDULED), Reason.UP_TO_DATE),
        ("emit_conditions", UPDATE, a_job(with_condition("Failed")), None),
        ("emit_conditions", UPDATE, a_jobset(modifiers=[with_spec(suspend=True)]), None),
        ("emit_conditions", UPDATE, a_job(with_spec(suspend=True), label=None), Reason.NOT_MARKED),
    ],
)
def test_what_the_object_in_an_event_says(
    step: str, happened: Happened, body: Object, reason: Reason | None
) -> None:
    """A step reads nothing where the object in the event says that there is nothing to do; None: it looks."""
    subject = STEPS[step](ResourceEvent("id", happened, ref(body), body))
    assert (subject.reason if isinstance(subject, NoOp) else None) == reason
