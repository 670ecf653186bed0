"""mark_runtime leaves runtimes alone whose pods upstream or the user groups."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import group_labels
from muster.policy.model import NoOp, Plan
from muster.policy.plans.mark_runtime import up_to_date
from muster.policy.reasons import Reason
from muster.policy.sources import source as sources
from muster.policy.sources.source import PolicySourceKind, resolve_policy
from tests.support.builders import NOW, Object, a_jobset_of_trainjob, a_trainjob, a_users_workload, observed
from tests.support.messages import mentions, without_message
from tests.support.planning import Observed, plan_runtime, plan_workload, resolve
from tests.support.runtimes import REF, a_runtime, ours

SCHEDULING: Object = {"schedulingPolicy": {"gang": {}}}
POLICY = "workload: {}"
KIND = ("ClusterTrainingRuntime", "mpi")


def with_field(body: Object, *path: str | int, value: Any) -> Object:
    """The runtime with one more field."""
    at: Any = body
    for part in path[:-1]:
        at = at[part] if isinstance(part, int) else at.setdefault(part, {})
    at[path[-1]] = value
    return body


RUNTIME = ("spec", "scheduling")
JOBSET = ("spec", "template", "spec", "scheduling")
ON_JOBSET = ("spec", "template", "metadata", "annotations", group_labels.UPSTREAM_TEMPLATE)
NODE = ("spec", "template", "spec", "replicatedJobs", 0, "template")
JOB = (*NODE, "spec", "scheduling")
ON_JOB = (*NODE, "metadata", "annotations", group_labels.UPSTREAM_TEMPLATE)
OWN_GROUP = (*NODE, "spec", "template", "spec", "schedulingGroup")

WHOLE = [
    pytest.param(RUNTIME, SCHEDULING, ("spec.scheduling",), id="spec.scheduling of the runtime (KEP-3015)"),
    pytest.param(JOBSET, SCHEDULING, ("spec.template.spec.scheduling",), id="of its JobSet (KEP-969)"),
    pytest.param(
        ON_JOBSET,
        "trainer",
        ("spec.template.metadata.annotations", group_labels.UPSTREAM_TEMPLATE),
        id="the annotation on its JobSet",
    ),
]
FIELD_OR_ANNOTATION = ("spec.scheduling", group_labels.UPSTREAM_TEMPLATE)
ONE_TEMPLATE = [
    pytest.param(
        JOB, SCHEDULING, Reason.UPSTREAM_GROUPS, FIELD_OR_ANNOTATION, id="spec.scheduling of a Job (1.37)"
    ),
    pytest.param(
        ON_JOB, "sim", Reason.UPSTREAM_GROUPS, FIELD_OR_ANNOTATION, id="the annotation on a Job template"
    ),
    pytest.param(
        OWN_GROUP,
        {"podGroupName": "mine"},
        Reason.BRING_YOUR_OWN_GROUP,
        ("schedulingGroup",),
        id="a schedulingGroup in the pod template",
    ),
]


def decided(body: Object, **rest: Any) -> Plan | NoOp:
    """What mark_runtime does."""
    return plan_runtime(Observed(REF, runtime=body, **rest), NOW)


@pytest.mark.parametrize(("path", "value", "facts"), WHOLE)
class TestAWholeRuntime:
    """All pods of its TrainJobs are grouped upstream."""

    def test_without_a_policy_nothing_is_done(
        self, path: tuple[str, ...], value: Any, facts: tuple[str, ...]
    ) -> None:
        """The reason names the field; the event alone is enough to know."""
        body = with_field(a_runtime(None), *path, value=value)
        decision = decided(body)
        assert up_to_date(body) == decision
        assert without_message(decision) == NoOp(Reason.UPSTREAM_GROUPS)
        assert mentions(decision.message, *facts, *KIND)

    def test_a_policy_labels_nothing_and_an_event_says_why(
        self, path: tuple[str, ...], value: Any, facts: tuple[str, ...]
    ) -> None:
        """Whatever the policy asks for; reported once."""
        body = with_field(a_runtime(POLICY), *path, value=value)
        plan = decided(body)
        assert up_to_date(body) is None
        assert isinstance(plan, Plan)
        (event,) = plan.actions
        assert event.body is not None
        assert (event.body["type"], event.body["reason"]) == ("Warning", "UpstreamGroups")
        assert mentions(event.body["message"], *facts, *KIND)
        assert isinstance(decided(body, event_names=frozenset({event.target.name})), NoOp)

    def test_earlier_group_labels_are_removed(
        self, path: tuple[str, ...], value: Any, facts: tuple[str, ...]
    ) -> None:
        """The field came later than the policy."""
        before = ours(a_runtime(POLICY, labels={group_labels.GROUP: "node"}), group_labels.GROUP)
        plan = decided(with_field(before, *path, value=value))
        assert isinstance(plan, Plan)
        assert mentions(plan.message, *facts, *KIND, "node", group_labels.GROUP)
        assert group_labels.GROUP not in str((plan.actions[0].body or {})["spec"])

    def test_no_policy_reaches_its_trainjobs(
        self, path: tuple[str, ...], value: Any, facts: tuple[str, ...]
    ) -> None:
        """Above every policy source: not even the policy of a TrainJob groups what upstream groups."""
        found = sources.sources_of_runtime(with_field(a_runtime(POLICY), *path, value=value))
        assert [source.kind for source in found] == [PolicySourceKind.UPSTREAM, PolicySourceKind.RUNTIME]
        given = observed(a_trainjob(), jobset=a_jobset_of_trainjob(), sources=found)
        decision = plan_workload(given, NOW)
        assert resolve(given) == decision
        assert without_message(decision) == NoOp(Reason.UPSTREAM_GROUPS)
        assert mentions(decision.message, *facts, *KIND)
        policy = resolve_policy(found)
        assert not isinstance(policy, sources.InvalidPolicy)
        assert policy.workload is None
        assert mentions(policy.where, *facts, *KIND)


def test_a_workload_that_the_trainer_made_is_no_users_own() -> None:
    """KEP-3015 gives it a controllerRef to the TrainJob and templates that fit no group label of ours."""
    given = observed(
        a_trainjob(),
        jobset=a_jobset_of_trainjob(),
        others=[a_users_workload(root=a_trainjob(), name="llama-5d4f")],
        sources=sources.sources_of_runtime(with_field(a_runtime(None), *RUNTIME, value=SCHEDULING)),
    )
    decision = plan_workload(given, NOW)
    assert isinstance(decision, NoOp)
    assert decision.reason == Reason.UPSTREAM_GROUPS


@pytest.mark.parametrize(("path", "value", "reason", "facts"), ONE_TEMPLATE)
class TestOneTemplate:
    """Muster labels the others of the runtime."""

    def test_it_is_not_labelled(
        self,
        path: tuple[str, ...],
        value: Any,
        reason: Reason,
        facts: tuple[str, ...],
    ) -> None:
        """The Event on the runtime says which and why."""
        plan = decided(with_field(a_runtime(POLICY), *path, value=value))
        assert isinstance(plan, Plan)
        assert mentions(plan.message, sources.ANNOTATION, *KIND, "launcher", group_labels.GROUP)
        assert mentions(plan.message, "node", reason, *facts)
        assert plan.actions[1].body is not None
        assert plan.actions[1].body["message"] == plan.message

    def test_an_event_reports_it_where_it_is_the_only_template(
        self,
        path: tuple[str, ...],
        value: Any,
        reason: Reason,
        facts: tuple[str, ...],
    ) -> None:
        """The policy labels nothing at all."""
        body = with_field(a_runtime(POLICY), *path, value=value)
        del body["spec"]["template"]["spec"]["replicatedJobs"][1]
        plan = decided(body)
        assert up_to_date(body) is None
        assert isinstance(plan, Plan)
        assert (plan.reason, [action.target.kind for action in plan.actions]) == (reason, ["Event"])
        assert mentions(plan.message, *KIND, "node", reason, *facts)


@pytest.mark.parametrize(
    ("path", "value"), [pytest.param(*case.values[:2], id=case.id) for case in ONE_TEMPLATE]
)
def test_kai_gets_none_of_its_pods(path: tuple[str, ...], value: Any) -> None:
    """A schedulerName beside another controller's group would leave them to neither."""
    plan = decided(with_field(a_runtime("kaiScheduler: {queue: a}"), *path, value=value))
    assert isinstance(plan, Plan)
    assert plan.actions[0].body is not None
    node, launcher = plan.actions[0].body["spec"]["template"]["spec"]["replicatedJobs"]
    assert "kai" not in str(node)
    assert launcher["template"]["spec"]["template"]["spec"]["schedulerName"] == "kai-scheduler"
