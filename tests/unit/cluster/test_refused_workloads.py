"""Steps whose Workload, fallback PodGroup or runtime the API server refuses."""

from __future__ import annotations

from contextlib import suppress

import pytest

from muster.cluster import errors
from muster.cluster.interface import Object
from muster.cluster.observe.snapshot import Snapshot
from muster.policy import limits
from muster.policy.model import Action, NoOp, Plan
from muster.policy.reasons import Reason
from muster.policy.sources.source import ANNOTATION
from muster.runtime.step import Step
from muster.runtime.steps import step_named
from tests.support.builders import NOW, a_job, a_pod_group, annotated, ref, template_labelled, with_condition
from tests.support.runtimes import a_runtime

STEP = step_named("create_workload")
QUOTA = errors.Forbidden('"llama" is forbidden: exceeded quota: q', status=403, reason="Forbidden")
INVALID = errors.Invalid('"llama" is invalid: spec: too odd', status=422, reason="Invalid")
GROUP = "llama-main-33333333"


class RefusingKinds(Snapshot):
    """Refuses to create a kind; what exists already answers 409."""

    def __init__(self, owner: Object, error: errors.ClusterError = INVALID, *kinds: str) -> None:
        super().__init__([owner])
        self.kinds = kinds
        self.error = error
        self.written: dict[tuple[str, str], Object] = {}

    def write(self, action: Action, manager: str) -> Object:
        """Return the object that was written."""
        key = (action.target.kind, action.target.name)
        if action.target.kind in self.kinds:
            raise self.error
        if key in self.written and not action.patch:
            raise errors.AlreadyExists(f"{manager}: {key} exists")
        self.written[key] = dict(action.body or {})
        return self.written[key]


def run(cluster: RefusingKinds, owner: Object, step: Step = STEP) -> Plan | NoOp:
    """Run a step on an object."""
    decision = step.plan(step.observe(cluster, ref(owner)), NOW)
    return decision if isinstance(decision, NoOp) else step.execute(cluster, decision, step.manager)


def events(cluster: RefusingKinds) -> list[str]:
    """Return the reasons of the Events that were created."""
    return [body["reason"] for (kind, _), body in cluster.written.items() if kind == "Event"]


def test_a_refused_workload_leaves_fallback_groups_and_an_event() -> None:
    """It will never be accepted: the pods run one by one, and an Event on the owner says why."""
    job = a_job()
    cluster = RefusingKinds(job, INVALID, "Workload")
    done = run(cluster, job)
    assert isinstance(done, Plan)
    assert done.reason == Reason.REFUSED_BY_API
    assert done.reply is not None
    assert done.reply.type_suffix == "gave-up"
    group = cluster.written["PodGroup", GROUP]
    assert group["spec"]["schedulingPolicy"] == {"basic": {}}
    assert "too odd" in group["metadata"]["annotations"]["muster.dev/stand-in"]
    assert events(cluster) == [Reason.REFUSED_BY_API]


@pytest.mark.parametrize("error", [INVALID, QUOTA])
def test_a_long_refusal_is_cut_in_the_event(error: errors.ClusterError) -> None:
    """The account policy of create-workload refuses an Event with a text of more than 1,024 characters."""
    job = a_job()
    cluster = RefusingKinds(job, type(error)("no " * 1000, status=error.status), "Workload")
    with suppress(errors.Forbidden):
        run(cluster, job)
    ((_, event),) = (item for item in cluster.written.items() if item[0][0] == "Event")
    assert len(event["message"]) == 1024
    groups = [body for (kind, _), body in cluster.written.items() if kind == "PodGroup"]
    assert {len(group["metadata"]["annotations"]["muster.dev/stand-in"]) for group in groups} <= {1024}


def test_pods_wait_while_a_quota_refuses_their_workload() -> None:
    """A quota may be freed and a role granted: the event comes again, and an Event on the owner says why."""
    job = a_job()
    cluster = RefusingKinds(job, QUOTA, "Workload")
    with pytest.raises(errors.Forbidden):
        run(cluster, job)
    assert events(cluster) == [Reason.REFUSED_BY_API]
    assert ("PodGroup", GROUP) not in cluster.written


def test_fallback_groups_beyond_the_limit_are_created_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An owner of many groups gets them in several deliveries."""
    job = a_job(template_labelled({"muster.dev/group-size": "1"}), pods=7)
    cluster = RefusingKinds(job, INVALID, "Workload")
    monkeypatch.setattr(limits, "WRITES", 4)
    created: list[int] = []
    for _ in range(4):
        run(cluster, job)
        created.append(sum(kind == "PodGroup" for kind, _ in cluster.written))
    assert created == [2, 5, 7, 7]


def test_another_delivery_writes_nothing_more() -> None:
    """The group and the Event have fixed names."""
    job = a_job()
    cluster = RefusingKinds(job, INVALID, "Workload")
    run(cluster, job)
    before = dict(cluster.written)
    done = run(cluster, job)
    assert isinstance(done, Plan)
    assert (done.reason, done.actions) == (Reason.REFUSED_BY_API, ())
    assert cluster.written == before


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        pytest.param(("main",), Reason.REFUSED_BY_API, id="all groups are fallback PodGroups"),
        pytest.param((), Reason.WORKLOAD_CREATED, id="one is missing, as after a deletion"),
    ],
)
def test_a_workload_is_not_tried_again_without_use(groups: tuple[str, ...], reason: Reason) -> None:
    """Pods stay in their fallback PodGroups, so neither sweeps nor a freed quota need its Workload."""
    job = a_job(with_condition("muster.dev/PodGroupsReady", "False", "RefusedByApi"))
    stand_in = annotated(
        {"muster.dev/stand-in": "RefusedByApi: Workload llama-86f65b7bb7: exceeded quota: q"}
    )
    existing = [a_pod_group(GROUP, stand_in, min_count=None) for _ in groups]
    done = STEP.plan(STEP.observe(Snapshot([job, *existing]), ref(job)), NOW)
    assert done.reason == reason


def test_held_pods_of_a_refused_workload_keep_their_gate() -> None:
    """`onFailure: Hold` asks for that; the Event says why they wait."""
    job = a_job(annotated({ANNOTATION: "workload: {onFailure: Hold}"}))
    cluster = RefusingKinds(job, INVALID, "Workload")
    run(cluster, job)
    assert events(cluster) == [Reason.REFUSED_BY_API]
    assert ("PodGroup", GROUP) not in cluster.written


def test_a_refused_fallback_group_is_reported_with_the_condition() -> None:
    """The condition is written although the group could not be created."""
    job = a_job(annotated({ANNOTATION: "workload: {groups: [{name: typo}]}"}))
    cluster = RefusingKinds(job, QUOTA, "PodGroup")
    done = run(cluster, job)
    assert isinstance(done, Plan)
    assert done.reason == Reason.INVALID_POLICY
    assert sorted(events(cluster)) == [Reason.INVALID_POLICY, Reason.REFUSED_BY_API]
    assert ("Job", "llama") in cluster.written


def test_a_created_workload_is_reported_as_created() -> None:
    """The reason of the plan stays."""
    job = a_job()
    done = run(RefusingKinds(job), job)
    assert isinstance(done, Plan)
    assert done.reason == Reason.WORKLOAD_CREATED


@pytest.mark.parametrize("error", [INVALID, QUOTA])
def test_a_refused_runtime_is_told_by_an_event(error: errors.ClusterError) -> None:
    """A stricter CRD or a webhook refuses the runtime as it is: nothing claims that it was labelled."""
    runtime = a_runtime("workload: {}")
    cluster = RefusingKinds(runtime, error, runtime["kind"])
    done = run(cluster, runtime, step_named("mark_runtime"))
    assert isinstance(done, Plan)
    assert done.reason == Reason.REFUSED_BY_API
    assert done.reply is not None
    assert done.reply.type_suffix == "refused"
    assert events(cluster) == [Reason.REFUSED_BY_API]
