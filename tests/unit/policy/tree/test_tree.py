"""The tree of groups in a policy, compared with the groups that the group labels on pod templates make."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import group_labels
from muster.policy.model import GroupingFailure
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.policy.owners.kind import OwnerPodSets
from muster.policy.reasons import Reason
from muster.policy.sources import schema
from muster.policy.tree.groups import Group
from muster.policy.tree.policy_tree import policy_tree
from tests.support.builders import (
    Object,
    a_job,
    a_jobset,
    a_replicated_job,
    annotated,
    template_labelled,
    template_spec,
    with_spec,
)
from tests.support.messages import mentions
from tests.support.planning import pod_sets_of

LEADER = template_labelled({group_labels.LEADER_GROUP: "driver"})


def three(**fields: Any) -> Object:
    """A JobSet of data (1 pod), then train (4), then eval (1), each labelled with its name."""
    data = a_replicated_job("data", pods=1, label="data")
    train = a_replicated_job("train", pods=4, label="train", after=("data",))
    evaluate = a_replicated_job("eval", pods=1, label="eval", after=("train",))
    return a_jobset(data, train, evaluate, **fields)


def pair(*modifiers: Any, replicas: int = 1) -> Object:
    """A JobSet of prefill (4 pods) and decode (2 pods), each labelled with its name."""
    prefill = a_replicated_job("prefill", *modifiers, pods=4, label="prefill", replicas=replicas)
    return a_jobset(prefill, a_replicated_job("decode", pods=2, label="decode"))


def gang(body: Object) -> OwnerPodSets:
    """The planner's view of a Job or JobSet whose group labels are all made by hand."""
    if body["kind"] == "Job":
        return pod_sets_of(Job.read(body), None, {})
    jobset = JobSet.read(body)
    return pod_sets_of(jobset, jobset, {})


def asked(body: Object, groups: str, *, kept: bool = False) -> tuple[Group, ...] | GroupingFailure:
    """The tree of an owner under `workload: {groups: ...}`."""
    policy = schema.parse(f"workload: {{groups: {groups}}}").workload
    assert policy is not None
    return policy_tree(gang(body), policy, "home", kept=kept)


IN_ORDER = with_spec(startupPolicy={"startupPolicyOrder": "InOrder"})
ROOT_OF_THREE = "[{name: root%s, groups: [{name: data}, {name: train}, {name: eval}]}]"
ROOT_OF_PAIR = "[{name: root%s, groups: [{name: prefill}, {name: decode}]}]"
PREFILL = "spec.replicatedJobs[0].template.spec.template"
MIN_GROUP_COUNT = ", schedulingPolicy: {gang: {minGroupCount: %s}}"


@pytest.mark.parametrize(
    ("body", "groups", "path", "facts"),
    [
        pytest.param(
            pair(),
            "[{name: prefil}]",
            "workload.groups[0].name",
            ("muster.dev/group", "prefil", "decode", "prefill"),
            id="a group without a group label",
        ),
        pytest.param(
            pair(),
            "[{name: prefill, replicatedJobs: [decode]}]",
            "workload.groups[0].replicatedJobs",
            (
                "muster.dev/group",
                "prefill",
            ),
            id="the label is on another replicatedJob",
        ),
        pytest.param(
            a_job(),
            "[{name: main, replicatedJobs: [node]}]",
            "workload.groups[0].replicatedJobs",
            (
                "muster.dev/group",
                "main",
            ),
            id="replicatedJobs on a Job, which has none",
        ),
        pytest.param(
            pair(),
            "[{name: prefill, per: Job}]",
            "workload.groups[0].per",
            (PREFILL, "muster.dev/group-per", "job"),
            id="per Job without the label",
        ),
        pytest.param(
            pair(),
            "[{name: prefill, size: 4}]",
            "workload.groups[0].size",
            (PREFILL, "muster.dev/group-size", "4"),
            id="blocks without the label",
        ),
        pytest.param(
            pair(),
            "[{name: prefill, leader: true}]",
            "workload.groups[0].leader",
            (PREFILL, "muster.dev/leader-group", "prefill"),
            id="a leader without the label",
        ),
        pytest.param(
            a_job(LEADER, pods=4),
            "[{name: driver, leader: false}]",
            "workload.groups[0].leader",
            ("spec.template", "muster.dev/leader-group", "driver"),
            id="a leader by its label that the policy says is none",
        ),
        pytest.param(
            pair(),
            "[{name: prefill}, {name: prefill}]",
            "workload.groups[1].name",
            ("prefill", "workload.groups[0]"),
            id="a name twice in a list",
        ),
        pytest.param(
            pair(),
            "[{name: prefill, groups: [{name: prefill}, {name: decode}]}]",
            "workload.groups[0].groups[0].name",
            ("prefill", "workload.groups[0]"),
            id="a name twice in the tree",
        ),
        pytest.param(
            pair(),
            "[{name: prefill, schedulingPolicy: {gang: {minCount: 5}}}]",
            "workload.groups[0].schedulingPolicy.gang.minCount",
            (5, 4),
            id="minCount above the pods",
        ),
        pytest.param(
            pair(),
            ROOT_OF_PAIR % MIN_GROUP_COUNT % 3,
            "workload.groups[0].schedulingPolicy.gang.minGroupCount",
            (3, 2),
            id="minGroupCount above the child groups",
        ),
        pytest.param(
            pair(),
            "[{name: root, disruptionMode: {all: {}}, groups: [{name: prefill}]}]",
            "workload.groups",
            ("decode",),
            id="a group label that the tree leaves out",
        ),
        pytest.param(
            pair(),
            "[{name: root, disruptionMode: {all: {}}, groups: [{name: prefill}]}, {name: decode}]",
            "workload.groups",
            ("decode",),
            id="a group of pods beside a group of groups",
        ),
        pytest.param(
            pair(),
            "[{name: a, disruptionMode: {all: {}}, groups: [{name: b, disruptionMode: {all: {}}, groups: "
            "[{name: c, disruptionMode: {all: {}}, groups: [{name: d, groups: [{name: prefill}, "
            "{name: decode}]}]}]}]}]",
            "workload.groups[0].groups[0].groups[0].groups[0].groups[0]",
            (5, 4),
            id="five levels",
        ),
        pytest.param(
            three(),
            ROOT_OF_THREE % "",
            "workload.groups[0].schedulingPolicy",
            (3, 1, "train"),
            id="a gang over stages that wait for one another",
        ),
        pytest.param(
            a_jobset(
                a_replicated_job("a", label="data"),
                a_replicated_job("b", label="train"),
                a_replicated_job("c", label="eval"),
                modifiers=(IN_ORDER,),
            ),
            ROOT_OF_THREE % MIN_GROUP_COUNT % 2,
            "workload.groups[0].schedulingPolicy",
            (2, 1, "b"),
            id="a minGroupCount of two under startup policy InOrder",
        ),
        pytest.param(
            a_jobset(
                a_replicated_job(
                    "prefill",
                    annotated({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}),
                    LEADER,
                    pods=4,
                    label="prefill",
                )
            ),
            "[{name: root, groups: [{name: driver}, {name: prefill}]}]",
            "workload.groups[0].schedulingPolicy",
            (2, 1, "prefill"),
            id="a gang of leader and workers under exclusive placement",
        ),
        pytest.param(
            a_jobset(
                a_replicated_job("prefill", template_spec(priorityClassName="high"), label="prefill"),
                a_replicated_job("decode", label="decode"),
            ),
            ROOT_OF_PAIR % "",
            "workload.groups[0]",
            ("high",),
            id="two priorities below one root",
        ),
    ],
)
def test_a_policy_that_cannot_be_had_names_the_field(
    body: Object, groups: str, path: str, facts: tuple[object, ...]
) -> None:
    """Reason InvalidPolicy, with policy source, path and value."""
    failure = asked(body, groups)
    assert isinstance(failure, GroupingFailure)
    assert failure.reason == Reason.INVALID_POLICY
    assert mentions(failure.message, "home", path, *facts)


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param("[{name: main, schedulingPolicy: {gang: {minCount: 3}}}]", id="a minCount"),
        pytest.param(
            "[{name: top, schedulingPolicy: {gang: {minGroupCount: 3}}, groups: [{name: main}]}]",
            id="a minGroupCount",
        ),
    ],
)
def test_groups_that_exist_survive_scaling_down(groups: str) -> None:
    """A policy that was right when the groups were made is not found invalid because pods became fewer."""
    assert isinstance(asked(a_job(pods=1), groups), GroupingFailure)
    assert not isinstance(asked(a_job(pods=1), groups, kept=True), GroupingFailure)
