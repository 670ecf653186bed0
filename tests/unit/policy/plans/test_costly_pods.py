"""patch_pods: pods that keep the API server busy at each change keep their gate."""

from __future__ import annotations

import pytest

from muster.policy.model import Plan
from muster.policy.reasons import Reason
from tests.support.builders import NOW, a_gang, a_job, a_pod_group, a_workload, observed, pods_of
from tests.support.conditions import planned_conditions
from tests.support.planning import plan_pods
from tests.unit.policy.plans.test_pods import GATE, lifted


@pytest.mark.parametrize(
    ("field", "entry", "most"), [("schedulingGates", "example.com/", 16), ("tolerations", "key-", 500)]
)
def test_pods_of_many_gates_or_tolerations_stay_gated(field: str, entry: str, most: int) -> None:
    """Each change of such a pod keeps the API server busy; other pods of the group are not held up."""
    gate = [{"name": GATE}] if field == "schedulingGates" else []
    for number, stays in ((most - len(gate), False), (most - len(gate) + 1, True)):
        pods = pods_of(a_job())
        entries = [{"name" if gate else "key": f"{entry}{index}"} for index in range(number)]
        pods[0]["spec"][field] = [*gate, *entries]
        plan = plan_pods(observed(groups=[a_pod_group()], pods=pods), NOW)
        assert isinstance(plan, Plan)
        assert plan.actions == tuple(lifted(*pods[stays:]))
    alone = plan_pods(observed(groups=[a_pod_group()], pods=pods[:1]), NOW)
    assert alone.reason == Reason.POD_TOO_LARGE


def test_a_pod_of_many_labels_stays_gated() -> None:
    """The admission policy of patch-pods takes quadratic time to go through them."""
    pods = pods_of(a_job())
    pods[0]["metadata"]["labels"] |= {f"example.com/{number}": "" for number in range(500)}
    plan = plan_pods(observed(groups=[a_pod_group()], pods=pods), NOW)
    assert isinstance(plan, Plan)
    assert plan.actions == tuple(lifted(*pods[1:]))


def test_the_condition_names_the_pod_that_stays_gated() -> None:
    """Also where other pods of its group are without gates."""
    pods = pods_of(a_job())
    for pod in pods:
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
    pods[0]["spec"]["tolerations"] = [{"key": f"key-{number}"} for number in range(501)]
    job = a_job()
    given = observed(job, workload=a_workload(a_gang("main", 2)), groups=[a_pod_group()], pods=pods)
    _, reason, message = planned_conditions(given)["PodGroupsScheduled"]
    assert reason == Reason.SCHEDULING_GATED
    assert f"Pod team-a/{pods[0]['metadata']['name']}" in message
