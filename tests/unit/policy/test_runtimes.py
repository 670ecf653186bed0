"""mark_runtime: the fields that it writes into a runtime, and those that it removes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muster.policy import group_labels
from muster.policy.model import NoOp, Plan, Verb
from muster.policy.reasons import Reason
from muster.policy.sources.source import ANNOTATION
from tests.support.builders import NOW, Object
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_runtime
from tests.support.runtimes import REF, a_runtime, ours


def decided(body: Object | None, **rest: Any) -> Plan | NoOp:
    """The decision, for which the runtime was not changed."""
    before = copy.deepcopy(body)
    decision = plan_runtime(Observed(REF, runtime=body, **rest), NOW)
    assert body == before
    return decision


def updated(body: Object) -> dict[str, Any]:
    """The runtime as it is put back: labels and schedulerName per replicatedJob, the JobSet's metadata."""
    decision = decided(body)
    assert isinstance(decision, Plan), decision
    update, event = decision.actions
    assert (update.verb, update.target, event.target.namespace) == (Verb.UPDATE, REF, "default")
    assert update.body is not None
    assert event.body is not None
    assert event.body["type"] == "Normal"
    assert update.body["metadata"]["resourceVersion"] == "7"
    template = update.body["spec"]["template"]
    labels: dict[str, Any] = {}
    for entry in template["spec"]["replicatedJobs"]:
        pod = entry["template"]["spec"]["template"]
        labels[entry["name"]] = dict((pod.get("metadata") or {}).get("labels") or {})
        if "schedulerName" in pod["spec"]:
            labels[entry["name"]]["schedulerName"] = pod["spec"]["schedulerName"]
    if "metadata" in template:
        labels["JobSet"] = template["metadata"]
    return labels


QUEUE = {"kai.scheduler/queue": "team-a"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            a_runtime("workload: {groups: [{name: workers, replicatedJobs: [node]}]}"),
            {"node": {group_labels.GROUP: "workers"}, "launcher": {group_labels.GROUP: "launcher"}},
            id="a group with a name of its own, the others by default",
        ),
        pytest.param(
            a_runtime("kaiScheduler: {queue: team-a}"),
            {
                "node": {**QUEUE, "schedulerName": "kai-scheduler"},
                "launcher": {**QUEUE, "schedulerName": "kai-scheduler"},
                "JobSet": {"labels": QUEUE, "annotations": {"kai.scheduler/batch-min-member": "1"}},
            },
            id="KAI: queue, scheduler, and no waiting for Jobs that wait; no group label",
        ),
        pytest.param(
            ours(
                a_runtime("workload: {}", labels=QUEUE, pods={"schedulerName": "kai-scheduler"}),
                "kai.scheduler/queue",
                "schedulerName",
            ),
            {"node": {group_labels.GROUP: "node"}, "launcher": {group_labels.GROUP: "launcher"}},
            id="from KAI to groups of ours: queue and scheduler go",
        ),
        pytest.param(
            a_runtime(None, spec={"podGroupPolicy": {"coscheduling": {}}}),
            {"node": {group_labels.GROUP: "none"}, "launcher": {group_labels.GROUP: "none"}},
            id="coscheduling is the Trainer's: no group label",
        ),
        pytest.param(
            a_runtime(None, pods={"schedulerName": "yunikorn"}),
            {"node": {group_labels.GROUP: "none", "schedulerName": "yunikorn"}, "launcher": {}},
            id="YuniKorn by its schedulerName: no group label",
        ),
        pytest.param(
            ours(a_runtime(None, labels={group_labels.GROUP: "a", "team": "x"}), group_labels.GROUP),
            {"node": {"team": "x"}, "launcher": {}},
            id="the policy was removed: the group label goes, other labels stay",
        ),
        pytest.param(
            a_runtime("workload: {}", labels={group_labels.GROUP: "mine", group_labels.GROUP_SIZE: "2"}),
            {
                "node": {group_labels.GROUP: "mine", group_labels.GROUP_SIZE: "2"},
                "launcher": {group_labels.GROUP: "launcher"},
            },
            id="a template labelled by hand keeps all its group labels",
        ),
    ],
)
def test_a_runtime_is_put_back_with_these_labels(body: Object, expected: dict[str, Any]) -> None:
    """Labels and schedulerName of each pod template."""
    assert updated(body) == expected


def test_a_scheduler_chosen_by_a_user_stays_and_is_reported() -> None:
    """It was there before, and is not in our record."""
    decision = decided(a_runtime("kaiScheduler: {}", pods={"schedulerName": "mine"}))
    assert mentions(decision.message, "node", "schedulerName", "mine", "kai-scheduler")


def test_an_invalid_policy_is_reported_once_and_changes_nothing() -> None:
    """A Warning on the runtime, with policy source and path; group labels stay as they are."""
    policy = "workload: {groups: [{name: a, replicatedJobs: [nod]}]}"
    body = ours(a_runtime(policy, labels={group_labels.GROUP: "before"}), group_labels.GROUP)
    decision = decided(body)
    assert isinstance(decision, Plan)
    (event,) = decision.actions
    assert event.body is not None
    assert (decision.reason, event.body["type"]) == (Reason.INVALID_POLICY, "Warning")
    facts = ("workload.groups[0].replicatedJobs[0]", "nod", "node", "launcher")
    assert mentions(event.body["message"], ANNOTATION, "ClusterTrainingRuntime", "mpi", *facts)
    again = decided(body, event_names=frozenset({event.target.name}))
    assert isinstance(again, NoOp)
    assert again.reason == Reason.INVALID_POLICY
