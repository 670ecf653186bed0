"""What emit_conditions reports of an owner's gangs: placed, waiting since, newly placed, failed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from muster.policy.groups.manifests import FALLBACK
from muster.policy.model import GangGivenUp, GangReport, GangsPlaced, Plan, WaitingGang
from muster.policy.reasons import Reason
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    Modifier,
    Object,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_pod,
    a_pod_group,
    a_replicated_job,
    a_workload,
    annotated,
    bound,
    gated,
    labelled,
    observed,
    pods_of,
    with_spec,
    with_status,
)
from tests.support.conditions import NAME, planned, planned_conditions
from tests.support.planning import Observed, plan_conditions, plan_workload

BEGIN = NOW - timedelta(hours=1)
"""When every owner of these tests is created."""


def at(seconds: float) -> datetime:
    """So many seconds after the owner was created."""
    return BEGIN + timedelta(seconds=seconds)


def text(seconds: float) -> str:
    """The same as the API server writes it."""
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def created(seconds: float) -> Modifier:
    """Set the creationTimestamp."""
    return lambda body: body["metadata"].update(creationTimestamp=text(seconds))


def turned(kind: str, status: str, seconds: float) -> Modifier:
    """Add a condition with its time."""
    condition = {"type": kind, "status": status, "reason": "", "lastTransitionTime": text(seconds)}
    return lambda body: body.setdefault("status", {}).setdefault("conditions", []).append(condition)


def bound_at(seconds: float) -> Modifier:
    """Bind a pod."""

    def modify(pod: Object) -> None:
        bound(pod)
        turned("PodScheduled", "True", seconds)(pod)

    return modify


def placed_at(seconds: float) -> Modifier:
    """Let the scheduler place a group."""
    return turned("PodGroupInitiallyScheduled", "True", seconds)


def with_pods(*pods: Modifier, group: Modifier | None = None, job: Modifier | None = None) -> Observed:
    """The Job of two pods, with one pod for each modifier, and its PodGroup with another."""
    owner = a_job(created(0), *([job] if job else []))
    made = [a_pod(owner, index, created(2), modifier) for index, modifier in enumerate(pods)]
    groups = [a_pod_group(NAME, *([group] if group else []))]
    return observed(owner, workload=a_workload(a_gang("main", 2)), groups=groups, pods=made)


def reported(given: Observed) -> GangReport:
    """The report of the decision."""
    report = plan_conditions(given, NOW).gangs
    assert report is not None
    return report


def placements(given: Observed) -> list[GangsPlaced]:
    """The placements that the decision reports."""
    decision = plan_conditions(given, NOW)
    actions = decision.actions if isinstance(decision, Plan) else ()
    all_milestones = [milestone for action in actions for milestone in action.milestones]
    return [milestone for milestone in all_milestones if isinstance(milestone, GangsPlaced)]


def given_up(decision: object) -> list[str]:
    """The reasons of grouping failures that a plan reports."""
    assert isinstance(decision, Plan)
    all_milestones = [milestone for action in decision.actions for milestone in action.milestones]
    return [milestone.reason for milestone in all_milestones if isinstance(milestone, GangGivenUp)]


FALSE = turned("muster.dev/PodGroupsScheduled", "False", 1)
TRUE = turned("muster.dev/PodGroupsScheduled", "True", 40)
GATED = with_pods(gated("muster.dev/pod-group"), gated("muster.dev/pod-group"))
PLACED = with_pods(bound_at(30), bound_at(31), group=placed_at(30), job=FALSE)


def restarted(*pods: Modifier) -> Observed:
    """A gang that was placed at 30 and lost at 1000, with these pods in place of the former ones."""
    lost = turned("muster.dev/PodGroupsScheduled", "False", 1000)
    return with_pods(*pods, group=placed_at(30), job=lost)


def resumed(*pods: Modifier) -> Observed:
    """A gang that was placed at 30 and suspended, and resumed at 2000."""
    job = a_job(created(0), turned("Suspended", "False", 2000), FALSE)
    made = [a_pod(job, index, created(2003), modifier) for index, modifier in enumerate(pods)]
    return observed(
        job, workload=a_workload(a_gang("main", 2)), groups=[a_pod_group(NAME, placed_at(30))], pods=made
    )


@pytest.mark.parametrize(
    ("given", "reason", "since"),
    [
        pytest.param(GATED, Reason.SCHEDULING_GATED, at(0), id="since the creation of its owner"),
        pytest.param(with_pods(), Reason.WAITING_FOR_PODS, at(0), id="without pods"),
        pytest.param(observed(a_job(created(0))), Reason.WAITING_FOR_POD_GROUP, at(0), id="without a group"),
        pytest.param(resumed(gated(), gated()), Reason.WAITING_FOR_SCHEDULER, at(2000),
                     id="since its owner was resumed"),
        pytest.param(resumed(), Reason.WAITING_FOR_PODS, at(2000), id="resumed, without pods"),
        pytest.param(restarted(created(1010), created(1005)), Reason.SCHEDULING_GATED, at(1005),
                     id="placed before: since its first new pod was created"),
        pytest.param(restarted(bound_at(30), created(1005)), Reason.SCHEDULING_GATED, at(1005),
                     id="one lost pod: since its replacement was created"),
        pytest.param(restarted(), Reason.WAITING_FOR_PODS, at(1000),
                     id="placed before, without pods: since the condition turned False"),
        pytest.param(observed(a_job()), Reason.WAITING_FOR_POD_GROUP, None, id="an owner without a time"),
    ],
)  # fmt: skip
def test_a_gang_waits_since_it_could_have_been_placed(
    given: Observed, reason: Reason, since: datetime | None
) -> None:
    """Each gang that is to run and is not placed has a reason, and the time when it began to wait."""
    assert reported(given) == GangReport(waiting=(WaitingGang(reason, since),))


REFUSED = turned("PodGroupInitiallyScheduled", "False", 3)
LIMITED = PolicySource(PolicySourceKind.OWNER, "home", "workload: {schedulingTimeoutSeconds: 600}")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param(with_pods(bound_at(30), bound_at(31)), Reason.GROUPS_IGNORED,
                     id="the scheduler bound its pods and wrote no status of the group"),
        pytest.param(replace(with_pods(gated(), gated(), group=REFUSED), sources=(LIMITED,)),
                     Reason.SCHEDULING_TIMED_OUT, id="longer without room than its policy allows"),
    ],
)  # fmt: skip
def test_a_reason_that_depends_on_the_time(given: Observed, reason: Reason) -> None:
    """It is that of the owner's condition."""
    assert reported(given) == GangReport(waiting=(WaitingGang(reason, at(0)),))
    assert planned_conditions(given)["PodGroupsScheduled"][1] == reason


@pytest.mark.parametrize(
    ("given", "report"),
    [
        pytest.param(PLACED, GangReport(placed=1), id="placed"),
        pytest.param(with_pods(job=with_spec(suspend=True)), GangReport(), id="a suspended owner"),
        pytest.param(with_pods(job=with_status(succeeded=2, completedIndexes="0,1")), GangReport(),
                     id="all pods have run"),
    ],
)  # fmt: skip
def test_a_gang_that_does_not_wait(given: Observed, report: GangReport) -> None:
    """It counts as placed as long as it has pods."""
    assert reported(given) == report


def test_a_basic_group_is_no_gang() -> None:
    """Neither placed nor waiting."""
    given = observed(a_job(created(0)), groups=[a_pod_group(NAME, min_count=None)], pods=[a_pod()])
    assert reported(given) == GangReport()


def staged(*jobs: Object, pods: tuple[Object, ...] = ()) -> Observed:
    """A JobSet whose `workers` wait until `prepare` is complete, with its groups and these Jobs."""
    groups = [
        a_pod_group("llama-prepare-22222222", placed_at(5), root=STAGES),
        a_pod_group("llama-workers-22222222", root=STAGES),
    ]
    return observed(STAGES, jobs=jobs, groups=groups, pods=pods)


STAGES = a_jobset(
    a_replicated_job("prepare"), a_replicated_job("workers", after=("prepare",)), modifiers=(created(0),)
)
FIRST = a_child_job(STAGES, "prepare", 0, created(1))
SECOND = a_child_job(STAGES, "workers", 0, created(1800))
RUNNING = tuple(pods_of(FIRST, created(2), bound_at(6)))


def test_a_later_stage_waits_since_its_job_was_created() -> None:
    """Before that it waits for the earlier stage, not for a place."""
    assert reported(staged(FIRST, pods=RUNNING)) == GangReport(placed=1)
    waiting = WaitingGang(Reason.WAITING_FOR_PODS, at(1800))
    assert reported(staged(FIRST, SECOND, pods=RUNNING)) == GangReport(placed=1, waiting=(waiting,))


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        pytest.param(PLACED, [31], id="from the creation of the owner to the last binding"),
        pytest.param(with_pods(bound_at(30), bound_at(31), group=placed_at(30)), [31],
                     id="no condition was written before"),
        pytest.param(with_pods(bound_at(30), bound_at(31), group=placed_at(30), job=TRUE), [],
                     id="the condition says so already"),
        pytest.param(with_pods(bound_at(30), gated(), group=placed_at(30), job=FALSE), [],
                     id="a pod is not bound yet"),
        pytest.param(restarted(bound_at(30), bound_at(31)), [],
                     id="nothing was bound since the condition turned False"),
    ],
)  # fmt: skip
def test_a_placement_is_reported_when_the_condition_turns_true(given: Observed, seconds: list[float]) -> None:
    """Once, by the write that turns it."""
    assert placements(given) == [GangsPlaced("Job", wait) for wait in seconds]


def test_another_placement_counts_from_the_new_pods() -> None:
    """A restart a quarter of an hour after the creation took 15 seconds."""

    def new(pod: Object) -> None:
        created(1005)(pod)
        bound_at(1020)(pod)

    assert placements(restarted(created(1005), created(1006))) == []
    assert placements(restarted(new, new)) == [GangsPlaced("Job", 15)]


def test_a_resumed_owner_is_placed_from_its_resumption() -> None:
    """The time for which it was suspended does not count."""
    assert placements(resumed(bound_at(2010), bound_at(2011))) == [GangsPlaced("Job", 11)]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_the_first_and_last_times_are_read(time: str) -> None:
    """The API server accepts them in a condition that a user writes."""
    lost = {"type": "muster.dev/PodGroupsScheduled", "status": "False", "lastTransitionTime": time}
    job = with_status(conditions=[lost])
    placements(with_pods(bound_at(30), bound_at(31), group=placed_at(30), job=job))


def test_the_longest_wait_of_several_gangs_counts() -> None:
    """The second stage was placed 20 seconds after its Job was created, the first after 6."""
    second = tuple(pods_of(SECOND, created(1801), bound_at(1820)))
    groups = [
        a_pod_group("llama-prepare-22222222", placed_at(5), root=STAGES),
        a_pod_group("llama-workers-22222222", placed_at(1819), root=STAGES),
    ]
    given = observed(STAGES, jobs=[FIRST, SECOND], groups=groups, pods=RUNNING + second)
    assert placements(given) == [GangsPlaced("JobSet", 20)]


BROKEN = (PolicySource(PolicySourceKind.OWNER, "home", "workload: {no: such field}"),)


def test_a_grouping_failure_of_an_owner_is_reported_once() -> None:
    """By the step that writes the reason first; another message is no other reason."""
    first = plan_workload(observed(a_job(created(0)), sources=BROKEN), NOW)
    assert given_up(first) == ["InvalidPolicy"]
    reported = turned("muster.dev/PodGroupsReady", "False", 1)
    job = a_job(created(0), reported)
    job["status"]["conditions"][0]["reason"] = "InvalidPolicy"
    again = planned(observed(job, sources=BROKEN))
    assert given_up(again) == []
    assert again.gangs == GangReport(gave_up="InvalidPolicy")


@pytest.mark.parametrize("then", ["Basic", "Hold"])
def test_steps_do_not_take_a_reason_back_from_each_other(then: str) -> None:
    """create_workload finds a stranger's Workload under the name; emit_conditions says the same."""
    stranger = a_workload(modifiers=(labelled({"app.kubernetes.io/managed-by": "web"}),))
    stranger["spec"]["controllerRef"] |= {"kind": "Deployment", "name": "web"}
    held = (PolicySource(PolicySourceKind.OWNER, "home", f"workload: {{onFailure: {then}}}"),)

    def given(*conditions: Object) -> Observed:
        job = a_job(created(0), with_status(conditions=list(conditions)))
        return observed(job, workload=stranger, sources=held)

    first = plan_workload(given(), NOW)
    assert given_up(first) == ["WorkloadNameTaken"]
    second = plan_conditions(given(*written(first)), NOW)
    assert given_up(second) == []
    assert second.gangs == GangReport(gave_up="WorkloadNameTaken")
    assert written(plan_workload(given(*written(second)), NOW)) == []


def written(decision: object) -> list[Object]:
    """The conditions that a decision writes."""
    actions = decision.actions if isinstance(decision, Plan) else ()
    bodies = [action.body or {} for action in actions if action.subresource == "status"]
    return [condition for body in bodies for condition in body["status"]["conditions"]]


def test_another_reason_is_another_change() -> None:
    """What was invalid before has no place under its name now."""
    job = a_job(created(0), turned("muster.dev/PodGroupsReady", "False", 1))
    job["status"]["conditions"][0]["reason"] = "RefusedByApi"
    assert given_up(planned(observed(job, sources=BROKEN))) == ["InvalidPolicy"]


def test_a_fallback_group_has_the_reason_of_its_grouping_failure() -> None:
    """A PodGroup that the API server refused is known by the annotation of its fallback PodGroup alone."""
    fallback_group = a_pod_group(NAME, annotated({FALLBACK: "RefusedByApi: no quota"}), min_count=None)
    plan = planned(observed(a_job(created(0)), groups=[fallback_group], pods=[a_pod()]))
    assert given_up(plan) == ["RefusedByApi"]
    assert plan.gangs == GangReport(gave_up="RefusedByApi")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(observed(a_job(created(0))), id="the group is not there yet"),
        pytest.param(
            observed(a_job(created(0)), workload=a_workload(), groups=[
                a_pod_group(NAME, labelled({"muster.dev/owner-uid": "other"}), min_count=99)
            ]),
            id="a PodGroup of another controller has the name",
        ),
    ],
)  # fmt: skip
def test_a_group_that_may_still_be_created_is_no_grouping_failure(given: Observed) -> None:
    """The next sweep makes it."""
    plan = planned(given)
    assert given_up(plan) == []
    assert plan.gangs is not None
    assert plan.gangs.gave_up == ""
