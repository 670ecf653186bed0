"""Groups of groups per Job and per block: their names, parents and counts, over the life of an owner."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import group_labels
from muster.policy.group_labels import GroupInstance, GroupLabels, Shape
from muster.policy.model import GroupingFailure, NoOp, Plan
from muster.policy.reasons import Reason
from muster.policy.sources import schema
from muster.policy.sources.runtime_labels import labels_for
from muster.policy.tree.groups import expected_members
from tests.conftest import Wording
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_job,
    a_pod,
    bound,
    observed,
    template_labelled,
    with_status,
)
from tests.support.messages import mentions
from tests.support.planning import plan_conditions, plan_pod_groups, plan_resize, plan_workload, resolve
from tests.support.replicas import (
    LED,
    PER_JOB,
    POLICY,
    counts,
    created,
    jobs_of,
    of_kind,
    one_template,
    parents,
    pod_sets,
    seen,
    short,
    tree_of,
    two_templates,
    with_groups,
)

JOB_BLOCK = {group_labels.GROUP_PER: "job-block", group_labels.GROUP_SIZE: "2"}
COMPLETE = with_status(conditions=[{"type": "Complete", "status": "True"}])


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
    members = expected_members(pod_set)
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


BLOCKS = """
workload:
  groups:
  - name: zone
    groups:
    - name: rack
      size: 4
      groups:
      - {name: main, size: 2}
"""


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


def in_blocks(pods: int) -> Object:
    """A Job in blocks of two."""
    return a_job(template_labelled({group_labels.GROUP_SIZE: "2"}), pods=pods)


def test_a_job_that_grows_gets_the_groups_of_its_new_blocks() -> None:
    """The group of groups of a new block too; the groups that exist are left alone."""
    given = with_groups(in_blocks(11), BLOCKS, created(in_blocks(8), BLOCKS))
    decision = plan_pod_groups(given, NOW)
    assert isinstance(decision, Plan)
    made = [dict(action.body) for action in decision.actions if action.body]
    assert parents(made) == {"rack-2": "zone", "main-4": "rack-2", "main-5": "rack-2"}
    assert counts(made) == {"rack-2": 2, "main-4": 2, "main-5": 1}
    assert resized(given) == [("delete", "zone", 0), ("create", "zone", 3)]


def test_a_job_that_shrinks_needs_fewer_blocks() -> None:
    """The last rack has one host left; racks without pods are no longer waited for."""
    workload, bodies = created(in_blocks(11), BLOCKS)
    running = a_pod(in_blocks(6), 0, bound)
    given = with_groups(in_blocks(6), BLOCKS, (workload, bodies), pods=[running])
    assert resized(given) == [
        ("delete", "zone", 0),
        ("create", "zone", 2),
        ("delete", "rack-1", 0),
        ("create", "rack-1", 1),
    ]


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


TREE = "[{name: replica, per: Job, groups: [%s]}]"
RACKS = "[{name: rack, size: 4, groups: [%s]}]"


@pytest.mark.parametrize(
    ("owner", "groups", "path", "facts"),
    [
        pytest.param(
            one_template({}),
            TREE % "{name: workers}",
            "workload.groups[0].groups[0].per",
            ("muster.dev/group-per: job", "workload.groups[0].per"),
            id="pods of all Jobs in a group below one per Job",
        ),
        pytest.param(
            one_template({group_labels.GROUP_SIZE: "2"}),
            TREE % "{name: workers}",
            "workload.groups[0].groups[0].per",
            ("muster.dev/group-per: job-block", "workload.groups[0].per"),
            id="blocks of all Jobs below a group per Job",
        ),
        pytest.param(
            one_template({group_labels.LEADER_GROUP: "leader"} | PER_JOB),
            TREE % "{name: leader}, {name: workers}",
            "workload.groups[0].groups[0].per",
            ("muster.dev/leader-group-per: job", "workload.groups[0].per"),
            id="leaders of all Jobs below a group per Job",
        ),
        pytest.param(
            one_template(LED),
            "[{name: leader, leader: true, per: Job}, {name: workers, per: Job}]",
            "workload.groups[1].per",
            ("muster.dev/group-per: job",),
            id="a leader per Job makes no workers per Job",
        ),
        pytest.param(
            one_template({group_labels.LEADER_GROUP: "leader"}),
            "[{name: leader, leader: true, per: Job}]",
            "workload.groups[0].per",
            ("muster.dev/leader-group-per: job",),
            id="a leader per Job without the label",
        ),
        pytest.param(
            one_template({}),
            RACKS % "{name: workers}",
            "workload.groups[0].groups[0].size",
            ("muster.dev/group-size", 4, "workload.groups[0].size"),
            id="pods of all blocks below a group per block",
        ),
        pytest.param(
            one_template({group_labels.GROUP_SIZE: "3"}),
            RACKS % "{name: workers, size: 3}",
            "workload.groups[0].groups[0].size",
            ("muster.dev/group-size", 4, "workload.groups[0].size"),
            id="blocks that are in two racks",
        ),
        pytest.param(
            one_template({group_labels.GROUP_SIZE: "1"}),
            RACKS % "{name: host, size: 3, groups: [{name: workers}]}",
            "workload.groups[0].groups[0].size",
            (4, "workload.groups[0].size"),
            id="groups of groups that are in two racks",
        ),
        pytest.param(
            one_template({group_labels.LEADER_GROUP: "leader", group_labels.GROUP_SIZE: "2"}),
            RACKS % "{name: leader}, {name: workers}",
            "workload.groups[0].groups[0]",
            ("workload.groups[0].size",),
            id="a leader below a group per block",
        ),
        pytest.param(
            one_template(PER_JOB | {group_labels.GROUP_SIZE: "2"}),
            "[{name: workers, size: 2}]",
            "workload.groups[0].size",
            ("muster.dev/group-per: job",),
            id="a size that does not count",
        ),
        pytest.param(
            two_templates(),
            "[{name: serve, groups: [{name: replica, per: Job, "
            "schedulingPolicy: {gang: {minGroupCount: 3}}, groups: [{name: leader}, {name: workers}]}]}]",
            "workload.groups[0].groups[0].schedulingPolicy.gang.minGroupCount",
            (3, 2),
            id="minGroupCount above the children of one replica",
        ),
    ],
)
def test_a_shape_that_cannot_be_had_names_the_field(
    owner: Object, groups: str, path: str, facts: tuple[object, ...], wording: Wording
) -> None:
    """Reason InvalidPolicy, with the path and the label that is needed."""
    failure = tree_of(owner, groups)
    assert isinstance(failure, GroupingFailure)
    assert failure.reason == Reason.INVALID_POLICY
    assert mentions(failure.message, "home", path, *facts)
    wording(failure.message)


def after(name: str) -> dict[str, Any]:
    """A replicatedJob that starts when another is ready."""
    return {"dependsOn": [{"name": name, "status": "Ready"}]}


REPLICAS = (
    "[{name: serve, schedulingPolicy: %s, groups: "
    "[{name: replica, per: Job, schedulingPolicy: %s, groups: [{name: leader}, {name: workers}]}]}]"
)
ALL, ANY = "{gang: {}}", "{gang: {minGroupCount: 1}}"


@pytest.mark.parametrize(
    ("jobset", "groups", "path"),
    [
        pytest.param(two_templates(), REPLICAS % (ALL, ALL), "", id="nobody waits"),
        pytest.param(
            two_templates(**after("leader")),
            REPLICAS % (ALL, ALL),
            "workload.groups[0].groups[0].schedulingPolicy",
            id="workers wait for the leader that waits for them",
        ),
        pytest.param(
            two_templates(**after("leader")),
            REPLICAS % (ALL, ANY),
            "",
            id="a leader starts without its workers",
        ),
        pytest.param(
            two_templates(leaders=3, **after("leader")),
            REPLICAS % (ANY, ALL),
            "workload.groups[0].groups[0].schedulingPolicy",
            id="the replica without workers starts, the others do not",
        ),
        pytest.param(
            two_templates(leaders=1, workers=2, **after("leader")),
            REPLICAS % (ALL, ANY),
            "workload.groups[0].schedulingPolicy",
            id="the replica without a leader comes when the other has started, which waits for it",
        ),
        pytest.param(
            two_templates(leaders=1, workers=2, **after("leader")),
            REPLICAS % (ANY, ANY),
            "",
            id="the replica without a leader comes when the other has started",
        ),
    ],
)
def test_a_replica_that_waits_for_itself_is_refused(jobset: Object, groups: str, path: str) -> None:
    """The start is simulated for each replica: one that is placed does not help another."""
    result = tree_of(jobset, groups)
    if path:
        assert isinstance(result, GroupingFailure)
        assert mentions(result.message, path)
    else:
        assert not isinstance(result, GroupingFailure), result


def resized(given: Any) -> list[tuple[str, str, int]]:
    """Verb, group and count of each action on a CompositePodGroup; 0 for a deletion."""
    decision = plan_resize(given, NOW)
    return [
        (str(action.verb), short(action.target.name), next(iter(counts([dict(action.body)]).values())))
        if action.body
        else (str(action.verb), short(action.target.name), 0)
        for action in (decision.actions if isinstance(decision, Plan) else ())
        if action.target.kind == "CompositePodGroup"
    ]


def jobs_with(jobset: Object, entry: str, index: int, *modifiers: Any) -> list[Object]:
    """All Jobs of the JobSet, one of them changed."""
    changed = a_child_job(jobset, entry, index, *modifiers)
    name = changed["metadata"]["name"]
    return [changed if job["metadata"]["name"] == name else job for job in jobs_of(jobset)]


def test_only_the_replica_whose_leader_has_ended_needs_less() -> None:
    """Its CompositePodGroup is replaced; the template keeps the count of the other."""
    jobset = two_templates()
    jobs = jobs_with(jobset, "leader", 1, COMPLETE)
    given = with_groups(jobset, POLICY, created(jobset), jobs=jobs)
    assert resized(given) == [("delete", "replica-1", 0), ("create", "replica-1", 1)]
    decision = plan_resize(given, NOW)
    assert isinstance(decision, Plan)
    assert not [action for action in decision.actions if action.target.kind == "Workload"]
    (create,) = (action.body for action in decision.actions if action.body and action.verb == "create")
    assert parents([dict(create)]) == {"replica-1": "serve"}


def test_a_replica_that_has_ended_is_no_longer_waited_for() -> None:
    """Both of its Jobs are complete: the root needs one replica."""
    jobset = two_templates()
    ended = [
        a_child_job(jobset, name, 0, COMPLETE) if index == 0 else a_child_job(jobset, name, 1)
        for name in ("leader", "workers")
        for index in range(2)
    ]
    given = with_groups(jobset, POLICY, created(jobset), jobs=ended)
    assert resized(given)[:2] == [("delete", "serve", 0), ("create", "serve", 1)]


def test_a_replica_that_runs_keeps_its_count_when_its_sibling_is_restarted() -> None:
    """The count rises for the replica without bound pods only."""
    jobset = two_templates()
    workload, bodies = created(jobset)
    for body in bodies:
        if short(body["metadata"]["name"]).startswith("replica"):
            body["spec"]["schedulingPolicy"] = {"gang": {"minGroupCount": 1}}
    running = a_pod(a_child_job(jobset, "workers", 0), 0, bound)
    given = with_groups(jobset, POLICY, (workload, bodies), pods=[running])
    assert resized(given) == [("delete", "replica-1", 0), ("create", "replica-1", 2)]


def test_a_replica_whose_replacement_was_interrupted_is_created() -> None:
    """Its children name it; those of the other are not touched."""
    jobset = two_templates()
    workload, bodies = created(jobset)
    left = [body for body in bodies if short(body["metadata"]["name"]) != "replica-1"]
    given = with_groups(jobset, POLICY, (workload, left))
    assert resized(given) == [("create", "replica-1", 2)]


def test_a_missing_replica_is_told_by_its_name() -> None:
    """PodGroupsReady is False with the name of the CompositePodGroup."""
    jobset = two_templates()
    workload, bodies = created(jobset)
    left = [body for body in bodies if short(body["metadata"]["name"]) != "replica-1"]
    decision = plan_conditions(with_groups(jobset, POLICY, (workload, left)), NOW)
    assert isinstance(decision, Plan)
    (status,) = (action.body for action in decision.actions if action.subresource == "status")
    assert status is not None
    ready = status["status"]["conditions"][0]
    assert ready["reason"] == Reason.WAITING_FOR_POD_GROUP
    assert mentions(ready["message"], "llama-replica-22222222-1")
    assert not mentions(ready["message"], "llama-replica-22222222-0")


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


MANY = 10_001
NODE = "spec.replicatedJobs[0].template.spec.template"


@pytest.mark.parametrize(
    ("labels", "replicas", "pods", "label", "number"),
    [
        pytest.param(LED, MANY, 2, "muster.dev/leader-group-per", MANY, id="a leader's group for each Job"),
        pytest.param(JOB_BLOCK, 200, 102, "muster.dev/group-per", 200 * 51, id="blocks of each Job"),
        pytest.param(JOB_BLOCK, MANY, 0, "muster.dev/group-per", MANY, id="Jobs without blocks"),
    ],
)
def test_more_groups_than_the_limit_are_refused(
    labels: dict[str, str], replicas: int, pods: int, label: str, number: int
) -> None:
    """The message has the label and the number."""
    decision = plan_workload(observed(one_template(labels, replicas=replicas, pods=pods)), NOW)
    assert decision.reason == Reason.TOO_MANY_GROUPS
    assert mentions(decision.message, f"{NODE}.metadata.labels[{label}]", number)


def test_a_thousand_replicas_are_planned_in_linear_time() -> None:
    """Each replica is a group of groups with its own leader; the names are all different."""
    labels = LED | PER_JOB
    policy = "{name: replica, per: Job, groups: [{name: leader}, {name: workers}]}"
    jobset = one_template(labels, replicas=5_000, pods=2)
    given = observed(jobset, sources=seen(jobset, f"workload: {{groups: [{policy}]}}", jobs=[]).sources)
    resolved = resolve(given)
    assert not isinstance(resolved, NoOp)
    assert resolved.failure is None
    names = [*resolved.composite_names(), *(name for _, name in resolved.pod_groups())]
    assert len(set(names)) == len(names) == 15_000


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param("leader: true, groups: [{name: a}]", "leader", id="a leader with groups"),
        pytest.param("replicatedJobs: [a], groups: [{name: a}]", "replicatedJobs", id="members with groups"),
        pytest.param("leader: true, size: 2", "leader", id="a leader in blocks"),
    ],
)
def test_fields_that_exclude_each_other(fields: str, path: str) -> None:
    """`per` and `size` are for both kinds of groups."""
    with pytest.raises(schema.InvalidPolicyError) as raised:
        schema.parse(f"workload: {{groups: [{{name: x, {fields}}}]}}")
    assert raised.value.path == f"workload.groups[0].{path}"


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
