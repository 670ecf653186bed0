"""Which events each step handles, decided by the event alone, without a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from muster.events.parse import Happened, ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime.steps import step_named, step_names
from tests.support.builders import (
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
    "create_workload": {("JobSet", ADD), ("Job", ADD)},
    "create_pod_groups": {("Workload", ADD)},
    "patch_pods": {("PodGroup", ADD), ("CompositePodGroup", ADD), ("Pod", ADD)},
    "resize_gang": {("Job", UPDATE), ("JobSet", UPDATE)},
    "emit_conditions": {("PodGroup", UPDATE)},
}


RESTART = "jobset.sigs.k8s.io/restart-attempt"


def unchanged(body: Object) -> None:
    """Say that its spec was never changed."""
    body["metadata"].update(generation=1)


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


SCHEDULED = with_condition("muster.dev/PodGroupsScheduled")


@pytest.mark.parametrize(
    ("step", "happened", "body", "reason"),
    [
        ("create_workload", ADD, a_job(being_deleted), Reason.DELETED),
        ("create_workload", ADD, a_job(label=None), Reason.NOT_MARKED),
        ("patch_pods", ADD, a_pod(None, 0, bound), Reason.UP_TO_DATE),
        ("resize_gang", UPDATE, a_jobset(modifiers=[with_condition("Completed")]), Reason.FINISHED),
        ("resize_gang", UPDATE, a_job(unchanged), Reason.UP_TO_DATE),
        ("resize_gang", UPDATE, a_job(unchanged, with_status(succeeded=1)), None),
        ("resize_gang", UPDATE, a_job(unchanged, labelled({RESTART: "0"})), Reason.UP_TO_DATE),
        ("resize_gang", UPDATE, a_job(unchanged, labelled({RESTART: "1"})), None),
        ("resize_gang", UPDATE, a_jobset(modifiers=[unchanged]), Reason.UP_TO_DATE),
        ("resize_gang", UPDATE, a_jobset(modifiers=[unchanged, with_status(restarts=1)]), None),
    ],
)
def test_what_the_object_in_an_event_says(
    step: str, happened: Happened, body: Object, reason: Reason | None
) -> None:
    """A step reads nothing where the object in the event says that there is nothing to do; None: it looks."""
    subject = STEPS[step](ResourceEvent("id", happened, ref(body), body))
    assert (subject.reason if isinstance(subject, NoOp) else None) == reason


@pytest.mark.parametrize(
    ("body", "looks"),
    [
        (a_job(with_condition("Suspended", "False")), True),
        (a_job(with_status(active=2, ready=1)), False),
        (a_job(with_status(active=1)), True),
        (a_job(with_status(active=1, ready=1, succeeded=1)), True),
        (a_job(with_status(active=2, ready=2), SCHEDULED), False),
        (a_job(with_condition("Failed")), True),
        (a_jobset(modifiers=[with_spec(suspend=True)]), True),
        (a_job(with_spec(suspend=True), label=None), False),
    ],
)
def test_what_resize_gang_passes_on(body: Object, looks: bool) -> None:
    """emit_conditions looks at what stopped or started, lost pods or lacks some, or runs unreported."""
    reply = step_named("resize_gang").passed_on(ResourceEvent("id", UPDATE, ref(body), body))
    assert (reply is not None) == looks
