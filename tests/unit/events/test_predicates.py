"""What a step decides by the event alone, without a request; tests/manifests has which kinds it hears."""

from __future__ import annotations

from collections.abc import Callable

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
    being_deleted,
    bound,
    labelled,
    ref,
    with_condition,
    with_spec,
    with_status,
)

Predicate = Callable[[ResourceEvent], ObjectRef | NoOp]
ADD, UPDATE = Happened.ADD, Happened.UPDATE
STEPS: dict[str, Predicate] = {name: step_named(name).predicate for name in step_names()}
RESTART = "jobset.sigs.k8s.io/restart-attempt"


def unchanged(body: Object) -> None:
    """Say that its spec was never changed."""
    body["metadata"].update(generation=1)


SCHEDULED = with_condition("muster.dev/PodGroupsScheduled")


@pytest.mark.parametrize(
    ("step", "happened", "body", "reason"),
    [
        ("create_workload", ADD, a_job(being_deleted), Reason.DELETED),
        ("create_workload", ADD, a_job(label=None), Reason.NOT_MARKED),
        ("patch_pods", ADD, a_pod(None, 0, bound), Reason.UP_TO_DATE),
        ("resize_gang", UPDATE, a_jobset(modifiers=[with_condition("Completed")]), None),
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
