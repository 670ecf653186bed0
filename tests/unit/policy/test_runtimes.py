"""mark_runtime: the fields that it writes into a runtime; tests/contract stores them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muster.policy import group_labels
from muster.policy.model import NoOp, Plan
from tests.support.builders import NOW, Object
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_runtime
from tests.support.runtimes import REF, a_runtime, ours

GROUP, SIZE = group_labels.GROUP, group_labels.GROUP_SIZE


def decided(body: Object, **rest: Any) -> Plan | NoOp:
    """The decision, for which the runtime was not changed."""
    before = copy.deepcopy(body)
    decision = plan_runtime(Observed(REF, runtime=body, **rest), NOW)
    assert body == before
    return decision


def marks(body: Any) -> list[dict[str, Any]]:
    """Labels and schedulerName of each pod template of a runtime."""
    entries = body["spec"]["template"]["spec"]["replicatedJobs"]
    pods = [entry["template"]["spec"]["template"] for entry in entries]
    return [
        dict((pod.get("metadata") or {}).get("labels") or {})
        | {key: value for key, value in pod["spec"].items() if key == "schedulerName"}
        for pod in pods
    ]


KAI = {"schedulerName": "kai-scheduler"}


@pytest.mark.parametrize(
    ("body", "node", "launcher"),
    [
        (
            a_runtime("workload: {groups: [{name: workers, replicatedJobs: [node]}]}"),
            {GROUP: "workers"},
            {GROUP: "launcher"},
        ),
        (a_runtime("kaiScheduler: {}"), KAI, KAI),
        (
            a_runtime(None, spec={"podGroupPolicy": {"coscheduling": {}}}),
            {GROUP: "none"},
            {GROUP: "none"},
        ),
        (
            a_runtime(None, pods={"schedulerName": "yunikorn"}),
            {GROUP: "none", "schedulerName": "yunikorn"},
            {},
        ),
        (ours(a_runtime(None, labels={GROUP: "a", "team": "x"}), GROUP), {"team": "x"}, {}),
        (
            a_runtime("workload: {}", labels={GROUP: "mine", SIZE: "2"}),
            {GROUP: "mine", SIZE: "2"},
            {GROUP: "launcher"},
        ),
    ],
)
def test_a_runtime_is_put_back_with_these_labels(body: Object, node: Object, launcher: Object) -> None:
    """For groups of Muster's, KAI (its queue is optional), coscheduling, YuniKorn, and without a policy."""
    decision = decided(body)
    assert isinstance(decision, Plan), decision
    update = decision.actions[0].body
    assert update is not None
    assert update["metadata"]["resourceVersion"] == "7"
    assert marks(update) == [node, launcher]


def test_a_scheduler_chosen_by_a_user_stays_and_is_reported() -> None:
    """It was there before, and is not in our record."""
    decision = decided(a_runtime("kaiScheduler: {}", pods={"schedulerName": "mine"}))
    assert mentions(decision.message, "node", "schedulerName", "mine", "kai-scheduler")
