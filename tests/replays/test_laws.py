"""Each law of `laws` fails for a step that breaks it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from muster.events.parse import ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.model import Action, Decision, NoOp, PatchType, Plan, Verb
from muster.policy.plans.create_workload import WorkloadInputs
from muster.policy.reasons import Reason
from muster.runtime.step import Step
from muster.testing import Case, laws
from tests.replays.golden import cases, excerpt

CASE = next(case for case in cases() if case.folder.name == "a-TrainJob-that-has-its-Workload-is-left")
"""A TrainJob that has all its groups; every law holds for create_workload."""

NEW = next(case for case in cases() if case.folder.name == "a-TrainJob-gets-a-Workload")
"""The first event of a TrainJob, for which create_workload plans."""

UPDATED = excerpt("1-torch", "before create_pod_groups", "TrainJob update", 2)
"""The newest of several events of that TrainJob."""

_GROUP = ObjectRef("scheduling.k8s.io/v1beta1", "PodGroup", "team-a", "made-up")


def a_plan(message: str = "") -> Plan:
    """A plan that creates a PodGroup."""
    body = {
        "apiVersion": _GROUP.api_version,
        "kind": _GROUP.kind,
        "metadata": {"name": _GROUP.name, "namespace": _GROUP.namespace},
        "spec": {"schedulingPolicy": {"basic": {}}},
    }
    return Plan(Reason.POD_GROUPS_CREATED, message, (Action(Verb.CREATE, _GROUP, body),))


def that_ignores_the_event(good: Step) -> Step:
    """A step whose predicate accepts nothing."""
    return replace(good, predicate=lambda _: NoOp(Reason.NOT_FOR_THIS_STEP))


def whose_plans_differ(good: Step) -> Step:
    """A step whose plan depends on the number of its runs."""
    runs = itertools.count()
    return replace(good, plan=lambda *_: NoOp(Reason.UP_TO_DATE, str(next(runs))))


def that_changes_its_inputs(good: Step) -> Step:
    """A step that changes the observed owner."""

    def plan(inputs: WorkloadInputs, now: datetime) -> Decision:
        assert inputs.live.owner is not None
        inputs.live.owner.metadata.labels["muster.dev/seen"] = "true"
        return good.plan(inputs, now)

    return replace(good, plan=plan)


def that_acts_for_what_is_gone(good: Step) -> Step:
    """A step that does not check whether the object exists."""
    return replace(good, plan=lambda *_: a_plan())


def that_takes_any_uid(good: Step) -> Step:
    """A step that looks objects up by name, without the UID."""

    def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
        subject = good.predicate(event)
        return subject if isinstance(subject, NoOp) else replace(subject, uid="")

    return replace(good, predicate=predicate)


def that_never_has_enough(good: Step) -> Step:
    """A step that ignores the objects it created before."""
    return replace(good, plan=lambda *_: a_plan(), execute=lambda _cluster, plan, _manager: plan)


def that_believes_events(good: Step) -> Step:
    """A step that writes from the event's data instead of the live object."""
    entries: list[ResourceEvent] = []

    def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
        entries.append(event)
        return event.ref

    def plan(inputs: WorkloadInputs, now: datetime) -> Decision:  # noqa: ARG001 - the signature of a plan
        version = (entries[-1].object or {}).get("metadata", {}).get("resourceVersion", "")
        owner = inputs.live.owner
        if owner is None or owner.metadata.annotations.get("seen") == version or not version:
            return NoOp(Reason.UP_TO_DATE)
        body = {"metadata": {"annotations": {"seen": version}}}
        return Plan(Reason.UP_TO_DATE, "", (Action(Verb.PATCH, owner.ref, body, patch=PatchType.MERGE),))

    return replace(good, predicate=predicate, plan=plan)


BROKEN: dict[Any, Callable[[Step], Step]] = {
    laws.event_is_for_the_step: that_ignores_the_event,
    laws.same_input_same_plan: whose_plans_differ,
    laws.arguments_unchanged: that_changes_its_inputs,
    laws.gone_is_nothing: that_acts_for_what_is_gone,
    laws.another_uid_is_nothing: that_takes_any_uid,
    laws.executed_twice_is_nothing: that_never_has_enough,
    laws.older_after_newer_changes_nothing: that_believes_events,
}


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__.replace("_", " "))
def test_a_law_notices_the_step_that_breaks_it(law: laws.Law) -> None:
    """The law holds for the good step, and fails for the broken one."""
    others: dict[Any, Case] = {
        laws.another_uid_is_nothing: NEW.case,
        laws.older_after_newer_changes_nothing: UPDATED,
    }
    case = others.get(law, CASE.case)
    law(CASE.step, case)
    with pytest.raises(AssertionError):
        law(BROKEN[law](CASE.step), case)


def test_every_law_has_a_step_that_breaks_it() -> None:
    """Every law has a broken step above."""
    assert set(BROKEN) == set(laws.LAWS)
