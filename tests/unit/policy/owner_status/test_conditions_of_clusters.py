"""Conditions of owners on clusters that cannot do what the groups need: 1.36, or gates that are off."""

from __future__ import annotations

import pytest

from muster.objects.resources import SchedulingApi
from muster.objects.versions import GATES_OF_THE_SCHEDULER, HOW_TO_SWITCH_ON
from muster.policy.model import Plan
from muster.policy.reasons import Reason
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_job,
    a_jobset,
    a_pod,
    a_pod_group,
    a_replicated_job,
    bound,
    gated,
    observed,
    placed,
    pods_of,
    succeeded,
    unstamped,
    with_condition,
    with_spec,
    with_status,
)
from tests.support.conditions import FREE, NAME, PLACED, RUNNING, planned, planned_conditions, refused
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_workload

OLD = SchedulingApi("v1alpha2", composites=False)
OFF = SchedulingApi("", composites=False)
TRIO = [a_pod(None, index, bound) for index in range(3)]


def _events(given: Observed) -> list[tuple[str, str]]:
    """Type and reason of each Event."""
    manifests = [action.body or {} for action in planned(given).actions[1:]]
    return [(body["type"], body["reason"]) for body in manifests]


def _grown(scheduling: SchedulingApi) -> Observed:
    """A JobSet's Job was scaled from two pods to three, and all three run."""
    jobset = a_jobset(a_replicated_job("workers", pods=2))
    child = a_child_job(jobset, "workers", 0, with_spec(parallelism=3, completions=3))
    group = a_pod_group("llama-workers-22222222", placed, root=jobset)
    pods = [a_pod(child, index, bound) for index in range(3)]
    return observed(jobset, jobs=[child], groups=[group], pods=pods, scheduling=scheduling)


def test_a_gang_that_cannot_grow() -> None:
    """It stays scheduled; a reason and a Normal Event say that the new pods run beside it."""
    given = _grown(OLD)
    *condition, message = planned_conditions(given)["PodGroupsReady"]
    assert condition == ["True", "GangSizeFixed"]
    assert mentions(message, "llama-workers-22222222", "v1alpha2", 2, 3)
    assert planned_conditions(given)["PodGroupsScheduled"][:2] == ("True", "Scheduled")
    assert _events(given) == [("Normal", "GangSizeFixed"), ("Normal", "Scheduled")]


def test_growth_is_not_reported_where_min_count_follows_it() -> None:
    """1.37: resize_gang writes it."""
    assert planned_conditions(_grown(SchedulingApi()))["PodGroupsReady"][:2] == ("True", "PodGroupsExist")


ONE_DONE = a_job(with_status(completedIndexes="0"))


def _replaced(*modifiers: object) -> list[Object]:
    """Index 0 has finished, index 1 failed and was replaced."""
    return [a_pod(None, 0, succeeded), a_pod(None, 1, *modifiers)]  # type: ignore[arg-type]  # modifiers are


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(PLACED, id="the group still says it was placed"),
        pytest.param(refused("Unschedulable", "minCount (2) cannot be satisfied"), id="it was refused"),
    ],
)
def test_a_gang_that_cannot_shrink_never_places_a_replacement(group: Object) -> None:
    """Muster's gate stays and would not help: the owner's condition says what to do, as the worst of all."""
    given = observed(ONE_DONE, groups=[group], pods=_replaced(gated()), scheduling=OLD)
    *condition, message = planned_conditions(given)["PodGroupsScheduled"]
    assert condition == ["False", "GangSizeFixed"]
    assert mentions(message, NAME, "v1alpha2", 2)
    assert ("Warning", "GangSizeFixed") in _events(given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param(
            observed(ONE_DONE, groups=[PLACED], pods=_replaced(bound), scheduling=OLD),
            "Scheduled",
            id="members finish: a gang that shrinks in peace is as it should be",
        ),
        pytest.param(
            observed(ONE_DONE, groups=[PLACED], pods=_replaced(gated())),
            "WaitingForScheduler",
            id="1.37: minCount follows, so the replacement is placed",
        ),
        pytest.param(
            observed(groups=[PLACED], pods=[RUNNING[0], FREE[1]], scheduling=OLD),
            "WaitingForScheduler",
            id="as many are still to run as minCount says",
        ),
        pytest.param(
            observed(a_job(pods=0), groups=[PLACED], scheduling=OLD),
            "Scheduled",
            id="nothing is still to run",
        ),
    ],
)
def test_a_fixed_size_without_effect_is_not_reported(given: Observed, reason: str) -> None:
    """Every gang of 1.36 is larger than what is left of it when its members finish."""
    assert planned_conditions(given)["PodGroupsScheduled"][1] == reason
    assert planned_conditions(given)["PodGroupsReady"][1] == "PodGroupsExist"


BARE = [a_pod(None, index, unstamped) for index in range(2)]


def test_where_the_api_is_not_served_both_conditions_name_the_gates() -> None:
    """Bare pods that all run are not called scheduled groups; one Event says so."""
    running = [a_pod(None, index, unstamped, bound) for index in range(2)]
    given = observed(pods=running, scheduling=OFF)
    for kind in ("PodGroupsReady", "PodGroupsScheduled"):
        *condition, message = planned_conditions(given)[kind]
        assert condition == ["False", "ApiNotServed"]
        assert HOW_TO_SWITCH_ON in message
    assert _events(given) == [("Warning", "ApiNotServed")]


def test_where_the_api_is_not_served_the_first_step_reports_it_on_the_owner() -> None:
    """create_workload: a condition and an Event, and no fallback group, which could not be made."""
    plan = plan_workload(observed(pods=BARE, scheduling=OFF), NOW)
    assert isinstance(plan, Plan)
    assert plan.reason == Reason.API_NOT_SERVED
    status, event = plan.actions
    (condition,) = (status.body or {})["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("muster.dev/PodGroupsReady", "ApiNotServed")
    assert ((event.body or {})["type"], (event.body or {})["reason"]) == ("Warning", "ApiNotServed")


def _bound_at(when: str) -> list[Object]:
    pods = pods_of(a_job(), bound, with_condition("PodScheduled"))
    for pod in pods:
        pod["status"]["conditions"][-1]["lastTransitionTime"] = when
    return pods


@pytest.mark.parametrize(
    ("group", "since", "reason"),
    [
        pytest.param(
            a_pod_group(),
            "2026-11-21T07:59:50Z",
            "GroupsIgnored",
            id="bound long ago, and the scheduler never spoke of the group",
        ),
        pytest.param(
            a_pod_group(),
            "2026-11-21T07:59:57Z",
            "WaitingForScheduler",
            id="bound a moment ago: its word on the group may be on the way",
        ),
        pytest.param(PLACED, "2026-11-21T07:59:50Z", "Scheduled", id="it placed the group first"),
        pytest.param(
            refused("Unschedulable", "no room"),
            "2026-11-21T07:59:50Z",
            "WaitingForScheduler",
            id="it refused the group before, so it knows groups",
        ),
    ],
)
def test_a_scheduler_without_the_gates(group: Object, since: str, reason: str) -> None:
    """It binds pods one by one and writes nothing on their PodGroup; one with the gates always does."""
    assert (
        planned_conditions(observed(groups=[group], pods=_bound_at(since)))["PodGroupsScheduled"][1] == reason
    )


def test_groups_that_are_ignored_are_named() -> None:
    """With what to set where, and a Warning Event once."""
    given = observed(groups=[a_pod_group()], pods=_bound_at("2026-11-21T07:00:00Z"))
    _, _, message = planned_conditions(given)["PodGroupsScheduled"]
    assert mentions(message, NAME, GATES_OF_THE_SCHEDULER)
    assert _events(given) == [("Warning", "GroupsIgnored")]
