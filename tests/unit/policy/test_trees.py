"""The groups of an owner: by its group labels, under a policy, and why they are impossible."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import group_labels, limits
from muster.policy.model import GroupingFailure
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources import schema
from muster.policy.sources.source import EffectivePolicy, PolicySource, PolicySourceKind
from muster.policy.tree.groups import Group, default_tree
from muster.policy.tree.policy_tree import policy_tree
from muster.policy.tree.validation import validate_tree
from tests.support import builders as b
from tests.support.builders import Modifier, Object
from tests.support.messages import mentions
from tests.support.planning import pod_sets_of, resolve

PER_JOB = b.template_labelled({group_labels.GROUP_PER: "job"})
BLOCKS = b.template_labelled({group_labels.GROUP_SIZE: "2"})
LEADER = b.template_labelled({group_labels.LEADER_GROUP: "driver"})
WORK_QUEUE = b.with_spec(completionMode="NonIndexed", completions=None)
NOT_INDEXED = b.with_spec(completionMode="NonIndexed")
IN_ORDER = b.with_spec(startupPolicy={"startupPolicyOrder": "InOrder"})
EXCLUSIVE = b.annotated({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})
NODE_SELECTOR = b.annotated({"alpha.jobset.sigs.k8s.io/node-selector": "true"})
HIGH, MINE = b.template_spec(priorityClassName="high"), b.template_spec(schedulerName="mine")
DATA: dict[str, Any] = {"step": "dataset-initializer"}
MODEL: dict[str, Any] = {"step": "model-initializer"}


def job_of(
    name: str, *modifiers: Any, label: str | None = None, ready: tuple[str, ...] = (), **of: Any
) -> Any:
    """A replicatedJob of two pods, in the group of its own name or another, after others are ready."""
    entry = b.a_replicated_job(name, *modifiers, label=label or name, **of)
    return entry | {"dependsOn": [{"name": one, "status": "Ready"} for one in ready]} if ready else entry


def pod_sets(owner: Object) -> Any:
    """The pod sets of a Job or JobSet."""
    if owner["kind"] == "Job":
        return pod_sets_of(Job.read(owner), None)
    jobset = JobSet.read(owner)
    return pod_sets_of(jobset, jobset)


def tree_of(owner: Object, groups: str, *, kept: bool = False) -> tuple[Group, ...] | GroupingFailure:
    """The groups of an owner under `workload: {groups: ...}`, or why they are impossible."""
    policy = schema.parse(f"workload: {{groups: {groups}}}").workload
    assert policy is not None
    tree = policy_tree(pod_sets(owner), EffectivePolicy("home", policy, kept=kept))
    return tree if isinstance(tree, GroupingFailure) else validate_tree(tree, kept=kept) or tree


NONE_LEFT = b.with_spec(parallelism=1, completions=3)
GANGS: list[tuple[Object, dict[str, dict[str, int]]]] = [
    (b.a_jobset(job_of("a", PER_JOB, pods=3, replicas=2)), {"a": {"-0": 3, "-1": 3}}),
    (b.a_job(BLOCKS, pods=5), {"main": {"-0": 2, "-1": 2, "-2": 1}}),
    (b.a_job(LEADER, b.with_spec(parallelism=3, completions=6)), {"driver": {"": 1}, "main": {"": 2}}),
    (b.a_job(LEADER, NONE_LEFT), {"driver": {"": 1}, "main": {"": 0}}),
    (b.a_jobset(job_of("a", LEADER, pods=3, replicas=2)), {"driver": {"": 2}, "a": {"": 4}}),
    (b.a_job(LEADER, BLOCKS, pods=4), {"driver": {"": 1}, "main": {"-0": 1, "-1": 2}}),
    (b.a_job(b.with_spec(parallelism=2, completions=5)), {"main": {"": 2}}),
    (b.a_job(WORK_QUEUE, pods=3), {"main": {"": 3}}),
    (b.a_job(NOT_INDEXED, BLOCKS, pods=3), {"main": {"-0": 3}}),
    (b.a_job(NOT_INDEXED, LEADER, pods=3), {"driver": {"": 3}, "main": {}}),
    (b.a_job(pods=0), {"main": {"": 0}}),
    (b.a_job(BLOCKS, pods=0), {"main": {}}),
    (b.a_jobset(job_of("a", pods=1, label="g"), job_of("b", pods=3, label="g")), {"g": {"": 4}}),
    (b.a_jobset(job_of("a"), job_of("b", b.with_spec(scheduling={}))), {"a": {"": 2}}),
]


@pytest.mark.parametrize(("owner", "groups"), GANGS)
def test_groups(owner: Object, groups: dict[str, dict[str, int]]) -> None:
    """The group labels of the pod templates make gangs; their sizes are the pods that run at once."""
    tree = default_tree(pod_sets(owner))
    assert all(group.gang for group in tree)
    assert {group.name: group.sizes for group in tree} == groups


def pair(*modifiers: Any) -> Object:
    """A JobSet of prefill (4 pods) and decode (2 pods)."""
    return b.a_jobset(job_of("prefill", *modifiers, pods=4), job_of("decode"))


def replicas(labels: dict[str, str]) -> Object:
    """A JobSet of two Jobs of workers, and of leaders by these labels."""
    return b.a_jobset(job_of("node", b.template_labelled(labels), pods=5, replicas=2, label="workers"))


def led(*, leaders: int = 2, ready: tuple[str, ...] = ()) -> Object:
    """A JobSet with a Job of a leader and one of workers in each replica."""
    leader = job_of("leader", PER_JOB, pods=1, replicas=leaders)
    return b.a_jobset(leader, job_of("workers", PER_JOB, pods=4, replicas=2, ready=ready))


STAGES = b.a_jobset(job_of("a"), job_of("b", after=("a",)), job_of("c", after=("b",)))
A_THEN_B = b.a_jobset(job_of("a"), job_of("b", after=("a",)), job_of("c"))
AFTER_A = b.a_jobset(job_of("a"), job_of("b"), job_of("c", ready=("a",)))
AFTER_BOTH = b.a_jobset(job_of("a"), job_of("b"), job_of("c", after=("a", "b")))
EXCLUSIVELY_LED = b.a_jobset(job_of("w", EXCLUSIVE, LEADER))
ORDERED = b.a_jobset(job_of("a"), job_of("b"), modifiers=(IN_ORDER,))
SIZE, JOB = {group_labels.GROUP_SIZE: "2"}, {group_labels.GROUP_PER: "job"}
LED, LED_JOB = {group_labels.LEADER_GROUP: "leader"}, {group_labels.LEADER_GROUP_PER: "job"}
L, W = "{name: leader}", "{name: workers}"
PAIR = ("prefill", "decode")
MIN_COUNT = "schedulingPolicy: {gang: {minCount: 5}}"
BELOW = "[{name: root%s, groups: [{name: %s}, {name: %s}]}]"
DEEP = "[{name: %s, disruptionMode: {all: {}}, groups: %s}]"
FIVE_LEVELS = DEEP % ("a", DEEP % ("b", DEEP % ("c", BELOW % ("", "prefill", "decode"))))
AT_LEAST = ", schedulingPolicy: {gang: {minGroupCount: %s}}"
ALL, ONE_OF = "{gang: {}}", "{gang: {minGroupCount: 1}}"
ROOT = (
    "[{name: root, schedulingPolicy: {gang: {minGroupCount: %s}}, groups: [{name: a}, {name: b}, {name: c}]}]"
)
STAGES_BESIDE = (
    "[{name: root, groups: ["
    "{name: stages, schedulingPolicy: %s, groups: [{name: a}, {name: b}]}, {name: c}]}]"
)
REPLICA = "[{name: replica, per: Job, groups: [%s]}]"
RACK = "[{name: rack, size: 4, groups: [%s]}]"
HOST = f"{{name: host, size: 3, groups: [{W}]}}"
SERVE = (
    "[{name: serve, schedulingPolicy: %s, groups: "
    "[{name: replica, per: Job, schedulingPolicy: %s, groups: [{name: leader}, {name: workers}]}]}]"
)
PREFILL = "spec.replicatedJobs[0].template.spec.template"
WORKERS = "[{name: leader, leader: true, per: Job}, {name: workers, per: Job}]"
BESIDE = "[{name: root, disruptionMode: {all: {}}, groups: [{name: prefill}]}]"

Refusal = tuple[Object, str, str, tuple[object, ...]]
MEMBERS: list[Refusal] = [
    (pair(), "[{name: prefil}]", "[0].name", ("muster.dev/group", "prefil", "decode", "prefill")),
    (pair(), "[{name: prefill, replicatedJobs: [decode]}]", "[0].replicatedJobs", ("muster.dev/group",)),
    (b.a_job(), "[{name: main, replicatedJobs: [node]}]", "[0].replicatedJobs", ("muster.dev/group", "main")),
    (pair(), "[{name: prefill, per: Job}]", "[0].per", (PREFILL, "muster.dev/group-per", "job")),
    (pair(), "[{name: prefill, size: 4}]", "[0].size", (PREFILL, "muster.dev/group-size", "4")),
    (pair(), "[{name: prefill, leader: true}]", "[0].leader", (PREFILL, "muster.dev/leader-group")),
    (pair(), "[{name: prefill, per: Job, size: 4}]", "[0].per", ("workload.groups[0].size", 4)),
    (pair(), "[{name: prefil}, {name: decode, size: 4}]", "[0].name", ("workload.groups[1].size",)),
    (pair(), "[{name: prefill}, {name: prefill}]", "[1].name", ("prefill", "workload.groups[0]")),
    (pair(), f"[{{name: prefill, {MIN_COUNT}}}]", "[0].schedulingPolicy.gang.minCount", (5, 4)),
    (pair(), BELOW % (AT_LEAST % 3, *PAIR), "[0].schedulingPolicy.gang.minGroupCount", (3, 2)),
    (pair(), BESIDE, "", ("decode",)),
    (pair(), FIVE_LEVELS, "[0].groups[0].groups[0].groups[0].groups[0]", (5, 4)),
    (pair(HIGH), BELOW % ("", *PAIR), "[0]", ("high",)),
]
STARTS: list[Refusal] = [
    (STAGES, "[{name: x, groups: [{name: a}, {name: b}, {name: c}]}]", "[0].schedulingPolicy", (3, 1, "b")),
    (ORDERED, BELOW % ("", "a", "b"), "[0].schedulingPolicy", (2, 1, "b")),
    (led(ready=("leader",)), SERVE % (ALL, ALL), "[0].groups[0].schedulingPolicy", ()),
    (led(leaders=1, ready=("leader",)), SERVE % (ALL, ONE_OF), "[0].schedulingPolicy", ()),
    (AFTER_A, ROOT % 3, "[0].schedulingPolicy", (2, "c")),
    (AFTER_BOTH, ROOT % 2, "[0].schedulingPolicy", (1, "c")),
    (A_THEN_B, STAGES_BESIDE % "{gang: {minGroupCount: 2}}", "[0].groups[0].schedulingPolicy", (1, "b")),
]
OF_JOB, OF_BLOCK = "[0].groups[0].per", "[0].groups[0].size"
SHAPES: list[Refusal] = [
    (replicas({}), REPLICA % W, OF_JOB, ("muster.dev/group-per: job", "workload.groups[0].per")),
    (replicas(SIZE), REPLICA % W, OF_JOB, ("muster.dev/group-per: job-block",)),
    (replicas(LED | JOB), REPLICA % f"{L}, {W}", OF_JOB, ("muster.dev/leader-group-per: job",)),
    (replicas(LED | LED_JOB), WORKERS, "[1].per", ("muster.dev/group-per: job",)),
    (replicas({}), RACK % W, OF_BLOCK, ("muster.dev/group-size", 4, "workload.groups[0].size")),
    (replicas(SIZE), RACK % HOST, OF_BLOCK, (4, "workload.groups[0].size")),
    (replicas(LED | SIZE), RACK % f"{L}, {W}", "[0].groups[0]", ("workload.groups[0].size",)),
    (replicas(JOB | SIZE), "[{name: workers, size: 2}]", "[0].size", ("muster.dev/group-per: job",)),
    (led(), SERVE % (ALL, "{gang: {minGroupCount: 3}}"), "[0].groups[0].schedulingPolicy.gang", (3, 2)),
]


@pytest.mark.parametrize(("owner", "groups", "path", "facts"), [*MEMBERS, *STARTS, *SHAPES])
def test_a_policy_that_cannot_be_had_names_the_field(
    owner: Object, groups: str, path: str, facts: tuple[object, ...]
) -> None:
    """Reason InvalidPolicy, with policy source, path and value."""
    failure = tree_of(owner, groups)
    assert isinstance(failure, GroupingFailure)
    assert failure.reason == Reason.INVALID_POLICY
    assert f"home: workload.groups{path}" in failure.message
    assert mentions(failure.message, *facts)


def together(first: Any, second: Any, *others: Any) -> Object:
    """A JobSet whose first two replicatedJobs are one group `g`, with others between them."""
    return b.a_jobset(job_of("a", label="g", **first), *others, job_of("b", label="g", **second))


def both(modifier: Modifier) -> Object:
    """A JobSet of one group `g` of two replicatedJobs, the first one with a modifier."""
    return b.a_jobset(job_of("a", modifier, label="g"), job_of("b", label="g"))


AFTER = {"after": ("a",)}
WAITING = (job_of("a1", label="x"), job_of("b1", label="y"), job_of("a2", label="x", ready=("b1",)))
CIRCLE = b.a_jobset(*WAITING, job_of("b2", label="y", ready=("a1",)))
THIRD = job_of("m", after=("a",))
FLAWS: list[tuple[Object, Reason, tuple[object, ...]]] = [
    (together({}, AFTER), Reason.WAITS_FOR_ITSELF, ("g", 4, 2, "b")),
    (together({}, {"after": ("m",)}, THIRD), Reason.WAITS_FOR_ITSELF, ("g", 4, 2)),
    (CIRCLE, Reason.WAITS_FOR_ITSELF, ("x", 4, 2, "a2")),
    (both(HIGH), Reason.PODS_DIFFER, ("g", "high")),
    (both(MINE), Reason.PODS_DIFFER, ("g", PREFILL, "default-scheduler", "mine")),
    (b.a_jobset(job_of("a"), modifiers=(EXCLUSIVE,)), Reason.WAITS_FOR_ITSELF, ("a", PREFILL)),
    (b.a_jobset(job_of("a", EXCLUSIVE, BLOCKS, pods=4)), Reason.WAITS_FOR_ITSELF, ("a", PREFILL)),
    (b.a_jobset(*(job_of(f"r{number}") for number in range(9))), Reason.TOO_MANY_GROUPS, ("r8", 9, 8)),
]


@pytest.mark.parametrize(("owner", "reason", "facts"), FLAWS)
def test_groups_that_cannot_start(owner: Object, reason: Reason, facts: tuple[object, ...]) -> None:
    """A gang is not laid over parts that wait for one another, or never placed together."""
    result = tree_of(owner, "[]")
    assert isinstance(result, GroupingFailure)
    assert result.reason == reason
    assert mentions(result.message, *facts)


@pytest.mark.parametrize(
    ("owner", "groups"),
    [
        (b.a_jobset(*WAITING), "[]"),
        (together(DATA, MODEL | AFTER), "[]"),
        (b.a_jobset(job_of("a", HIGH), job_of("b")), "[]"),
        (b.a_jobset(job_of("a"), modifiers=(EXCLUSIVE, NODE_SELECTOR)), "[]"),
        (EXCLUSIVELY_LED, "[]"),
        (b.a_jobset(job_of("a", EXCLUSIVE, PER_JOB, pods=1, replicas=3)), "[]"),
        (b.a_jobset(job_of("a", EXCLUSIVE)), "[{name: a, schedulingPolicy: {gang: {minCount: 1}}}]"),
        (together({}, AFTER), "[{name: g, schedulingPolicy: {gang: {minCount: 2}}}]"),
        (AFTER_A, ROOT % 2),
        (STAGES, ROOT % 1),
        (A_THEN_B, STAGES_BESIDE % "{basic: {}}"),
        (led(), SERVE % (ALL, ALL)),
        (led(ready=("leader",)), SERVE % (ALL, ONE_OF)),
        (led(leaders=1, ready=("leader",)), SERVE % (ONE_OF, ONE_OF)),
    ],
)
def test_groups_that_can_start(owner: Object, groups: str) -> None:
    """Parts that wait are in groups of their own, or the gang does not need them to be placed."""
    assert not isinstance(tree_of(owner, groups), GroupingFailure)


TOP = "[{name: top, %s: {gang: {minGroupCount: 3}}, groups: [{name: main}]}]"


@pytest.mark.parametrize("groups", ["[{name: main, %s: {gang: {minCount: 3}}}]", TOP])
def test_groups_that_exist_survive_scaling_down(groups: str) -> None:
    """A policy that was right when the groups were made is not found invalid because pods became fewer."""
    text = groups % "schedulingPolicy"
    assert isinstance(tree_of(b.a_job(pods=1), text), GroupingFailure)
    assert not isinstance(tree_of(b.a_job(pods=1), text, kept=True), GroupingFailure)


def stages(count: int) -> Object:
    """A JobSet of so many replicatedJobs, all in one group."""
    return b.a_jobset(*(job_of(f"stage-{index}", label="all") for index in range(count)))


def jobs(count: int) -> Object:
    """A JobSet of so many Jobs, each with a PodGroup of its own."""
    return b.a_jobset(job_of("main", PER_JOB, replicas=count))


FLAT, NESTED = "{}", "{groups: [{name: a, groups: [{name: b, per: Job, groups: [{name: main}]}]}]}"
FIELD = "spec.replicatedJobs[128].template.spec.template: is one"
COMPOSITES = "workload.groups: makes 257 CompositePodGroups"


@pytest.mark.parametrize(
    ("most", "beyond", "policy", "message"),
    [
        (stages(limits.REPLICATED_JOBS), stages(129), FLAT, FIELD),
        (
            jobs(limits.POD_GROUPS),
            jobs(2**31 - 1),
            FLAT,
            "[muster.dev/group-per]: makes 2147483647 PodGroups",
        ),
        (jobs(limits.COMPOSITE_POD_GROUPS - 1), jobs(256), NESTED, COMPOSITES),
    ],
)
def test_the_most_that_one_owner_can_have(most: Object, beyond: Object, policy: str, message: str) -> None:
    """One more is refused, with the field, its number and the limit."""
    sources = (PolicySource(PolicySourceKind.NAMESPACE, "home", f"workload: {policy}"),)
    allowed, refused = (resolve(b.observed(owner, sources=sources)) for owner in (most, beyond))
    assert isinstance(allowed, ResolvedOwner)
    assert isinstance(refused, ResolvedOwner)
    assert allowed.failure is None
    assert refused.failure is not None
    assert refused.failure.reason == Reason.TOO_MANY_GROUPS
    assert message in refused.failure.message
