"""Groups of groups per Job and per block: their pods, names, parents and counts."""

from __future__ import annotations

import pytest

from muster.policy import group_labels
from muster.policy.group_labels import GroupInstance, GroupLabels, Shape
from muster.policy.model import Plan
from muster.policy.sources import schema
from muster.policy.sources.runtime_labels import labels_for
from tests.support.builders import (
    NOW,
    a_job,
    observed,
    template_labelled,
)
from tests.support.planning import (
    plan_pod_groups,
)
from tests.support.replicas import (
    BLOCKS,
    JOB_BLOCK,
    LED,
    PER_JOB,
    counts,
    created,
    jobs_of,
    of_kind,
    one_template,
    parents,
    pod_sets,
    seen,
    short,
    two_templates,
)


@pytest.mark.parametrize(
    ("labels", "instances"),
    [
        pytest.param(
            LED, {"leader-0": 1, "leader-1": 1, "workers": 8}, id="a leader's group per Job, one for workers"
        ),
        pytest.param(
            LED | PER_JOB,
            {"leader-0": 1, "workers-0": 4, "leader-1": 1, "workers-1": 4},
            id="both per Job",
        ),
        pytest.param(
            {group_labels.LEADER_GROUP: "leader"} | PER_JOB,
            {"leader": 2, "workers-0": 4, "workers-1": 4},
            id="a shared leader's group beside workers per Job, as before",
        ),
        pytest.param(
            JOB_BLOCK,
            {"workers-0-0": 2, "workers-0-1": 2, "workers-0-2": 1, "workers-1-0": 2, "workers-1-1": 2}
            | {"workers-1-2": 1},
            id="per block of each Job",
        ),
        pytest.param(
            PER_JOB | {group_labels.GROUP_SIZE: "2"},
            {"workers-0": 5, "workers-1": 5},
            id="beside `job` no size counts, as before",
        ),
        pytest.param(
            LED | JOB_BLOCK,
            {f"workers-{job}-{block}": pods for job in range(2) for block, pods in enumerate((1, 2, 1))}
            | {"leader-0": 1, "leader-1": 1},
            id="a leader per Job beside blocks of each Job",
        ),
    ],
)
def test_the_pods_of_each_group(labels: dict[str, str], instances: dict[str, int]) -> None:
    """The number of pods by group instance."""
    (pod_set,) = pod_sets(one_template(labels)).pod_sets
    members = pod_set.expected_members
    assert {f"{group}{suffix}": pods for (group, suffix), pods in members.items() if pods} == instances


@pytest.mark.parametrize(
    ("above", "below", "suffix", "expected"),
    [
        pytest.param(Shape(), Shape(per_job=True), "-3", "", id="one for all"),
        pytest.param(Shape(per_job=True), Shape(per_job=True), "-3", "-3", id="per Job"),
        pytest.param(Shape(per_job=True), Shape(per_job=True, size=2), "-3-5", "-3", id="blocks of a Job"),
        pytest.param(Shape(size=6), Shape(size=2), "-5", "-1", id="blocks of a block"),
        pytest.param(
            Shape(per_job=True, size=6),
            Shape(per_job=True, size=2),
            "-3-5",
            "-3-1",
            id="blocks of a Job's block",
        ),
        pytest.param(Shape(size=6), Shape(per_job=True, size=2), "-3-5", "-1", id="a block of all Jobs"),
    ],
)
def test_the_group_above_an_instance(above: Shape, below: Shape, suffix: str, expected: str) -> None:
    """Its suffix follows from that of the group below."""
    assert above.suffix_above(below, suffix) == expected


def test_the_jobs_whose_leader_is_in_a_group() -> None:
    """All Jobs in a shared group, one in a group per Job, none in a later block."""
    shared, own = GroupLabels("g", leader_group="l"), GroupLabels("g", Shape(), "l", Shape(per_job=True))
    blocks = GroupLabels("g", Shape(per_job=True, size=2))
    assert shared.jobs_led_in(GroupInstance("l", ""), 7) == 7
    assert own.jobs_led_in(GroupInstance("l", "-3"), 7) == 1
    assert own.jobs_led_in(GroupInstance("g", ""), 7) == 0
    assert blocks.jobs_led_in(GroupInstance("g", "-3-0"), 7) == 1
    assert blocks.jobs_led_in(GroupInstance("g", "-3-1"), 7) == 0


def test_a_composite_per_job_is_one_template() -> None:
    """The Workload has one template for all replicas; each level counts its own children."""
    workload, _ = created(two_templates())
    (serve,) = workload["spec"]["compositePodGroupTemplates"]
    (replica,) = serve["compositePodGroupTemplates"]
    assert (serve["name"], replica["name"]) == ("serve", "replica")
    assert serve["schedulingPolicy"] == replica["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}
    assert [leaf["name"] for leaf in replica["podGroupTemplates"]] == ["leader", "workers"]


def test_each_replica_has_its_own_groups() -> None:
    """Parents before children, each with the suffix of its Job, all from the one template."""
    _, bodies = created(two_templates())
    assert list(parents(bodies).items()) == [
        ("serve", ""),
        ("replica-0", "serve"),
        ("replica-1", "serve"),
        ("leader-0", "replica-0"),
        ("leader-1", "replica-1"),
        ("workers-0", "replica-0"),
        ("workers-1", "replica-1"),
    ]
    replicas = [body for body in bodies if short(body["metadata"]["name"]).startswith("replica")]
    assert {body["spec"]["workloadRef"]["templateName"] for body in replicas} == {"replica"}
    assert all(body["spec"]["schedulingConstraints"] == {"topology": [{"key": "rack"}]} for body in replicas)


def test_a_replica_without_workers_needs_its_leader_only() -> None:
    """Three leaders and two groups of workers: the third replica has one child."""
    workload, bodies = created(two_templates(leaders=3))
    (serve,) = workload["spec"]["compositePodGroupTemplates"]
    assert serve["schedulingPolicy"] == {"gang": {"minGroupCount": 3}}
    assert counts(of_kind("CompositePodGroup", bodies)) == {
        "serve": 3,
        "replica-0": 2,
        "replica-1": 2,
        "replica-2": 1,
    }


def test_blocks_of_blocks() -> None:
    """Eleven pods on hosts of two and in racks of four: the last host has one pod."""
    job = a_job(template_labelled({group_labels.GROUP_SIZE: "2"}), pods=11)
    _, bodies = created(job, BLOCKS)
    assert parents(bodies) == {
        "zone": "",
        **{f"rack-{rack}": "zone" for rack in range(3)},
        **{f"main-{host}": f"rack-{host // 2}" for host in range(6)},
    }
    racks = {f"rack-{rack}": 2 for rack in range(3)}
    hosts = {f"main-{host}": 2 for host in range(5)}
    assert counts(bodies) == {"zone": 3, **racks, **hosts, "main-5": 1}


def test_a_group_inside_a_replica_is_there_for_each_replica() -> None:
    """A group of groups without `per` takes that of the one above it, and its blocks are counted per Job."""
    policy = "{name: replica, per: Job, groups: [{name: racks, size: 4, groups: [{name: workers}]}]}"
    _, bodies = created(one_template(JOB_BLOCK), f"workload: {{groups: [{policy}]}}")
    assert parents(bodies) == {
        **{f"replica-{job}": "" for job in range(2)},
        **{f"racks-{job}-{rack}": f"replica-{job}" for job in range(2) for rack in range(2)},
        **{f"workers-{job}-{block}": f"racks-{job}-{block // 2}" for job in range(2) for block in range(3)},
    }


def test_a_refused_replica_has_fallback_groups_for_its_own_pods() -> None:
    """The pods of the other replica keep theirs."""
    workload, _ = created(two_templates())
    decision = plan_pod_groups(seen(two_templates(), workload=workload), NOW)
    assert isinstance(decision, Plan)
    refused = {
        short(action.target.name): [
            short(other.target.name) for other in action.if_refused if other.target.kind == "PodGroup"
        ]
        for action in decision.actions
    }
    assert refused["replica-1"] == ["leader-1", "workers-1"]
    assert refused["serve"] == ["leader-0", "leader-1", "workers-0", "workers-1"]


def test_a_users_own_composite_is_one_for_all() -> None:
    """Nothing in a user's Workload says that its composite is one per Job."""
    workload, _ = created(two_templates())
    own = {**workload, "metadata": {"name": "mine", "namespace": workload["metadata"]["namespace"]}}
    decision = plan_pod_groups(observed(two_templates(), jobs=jobs_of(two_templates()), others=[own]), NOW)
    assert isinstance(decision, Plan)
    made = parents([dict(action.body) for action in decision.actions if action.body])
    assert {name: made[name] for name in ("serve", "replica", "leader-0", "workers-1")} == {
        "serve": "",
        "replica": "serve",
        "leader-0": "replica",
        "workers-1": "replica",
    }


def test_a_runtime_gets_the_labels_of_its_shapes() -> None:
    """Groups below `per: Job` are per Job; with a size per block of each Job."""
    policy = schema.parse(
        "workload: {groups: [{name: replica, per: Job, groups: ["
        "{name: lead, leader: true, replicatedJobs: [node]}, "
        "{name: workers, size: 4, replicatedJobs: [node]}]}]}"
    ).workload
    assert policy is not None
    assert labels_for(policy, {"node": ""}) == {
        "node": {
            group_labels.GROUP: "workers",
            group_labels.GROUP_PER: "job-block",
            group_labels.GROUP_SIZE: "4",
            group_labels.LEADER_GROUP: "lead",
            group_labels.LEADER_GROUP_PER: "job",
        }
    }
