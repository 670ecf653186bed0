"""The planning of the largest owner within the limits is quick, and a refusal names the limit."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from muster.objects import yaml_files
from muster.policy import group_labels
from muster.policy.limits import DEFAULT_LIMITS, Limits, setting
from muster.policy.model import Plan
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support import cpu
from tests.support.builders import (
    NOW,
    Object,
    a_basic,
    a_jobset,
    a_replicated_job,
    a_users_workload,
    a_workload,
    observed,
    template_labelled,
    with_spec,
)
from tests.support.messages import mentions
from tests.support.planning import plan_workload, resolve

CPU_SECONDS = 1.0
"""Twenty times what these owners take; a cubic search took 1.3 s for 128 replicatedJobs, 35 s for 300."""

MOST = DEFAULT_LIMITS.replicated_jobs
ONE_BASIC_GROUP = "workload: {groups: [{name: all, schedulingPolicy: {basic: {}}}]}"
STAGES = (
    "workload: {groups: [{name: root, schedulingPolicy: {gang: {minGroupCount: 16}}, groups: ["
    "{name: early, schedulingPolicy: {basic: {}}}, {name: all, schedulingPolicy: {basic: {}}}]}]}"
)
GROUPS_OF_GROUPS = "workload: {groups: [{name: a, groups: [{name: b, per: Job, groups: [{name: main}]}]}]}"
PATH = "spec.replicatedJobs[0].template.spec.template.metadata.labels"
PER_JOB = template_labelled({group_labels.GROUP_PER: "job"})
IN_BLOCKS_OF_ONE = template_labelled({group_labels.GROUP_SIZE: "1"})


def in_order(count: int) -> Object:
    """A JobSet of so many replicatedJobs, one after another, in one group."""
    entries = [a_replicated_job(f"stage-{index}", label="all") for index in range(count)]
    return a_jobset(*entries, modifiers=[with_spec(startupPolicy={"startupPolicyOrder": "InOrder"})])


def stages() -> Object:
    """A JobSet of pairs of replicatedJobs, each pair after one of the pair before is complete."""
    entries: list[Object] = []
    for index in range(MOST // 2):
        after = (f"all-{index - 1}",) if index else ()
        entries += (
            a_replicated_job(f"{name}-{index}", PER_JOB, label=name, replicas=8, after=after)
            for name in ("early", "all")
        )
    return a_jobset(*entries)


def under(policy: str, owner: Object, limits: Limits = DEFAULT_LIMITS) -> ResolvedOwner:
    """The owner's groups under a policy."""
    source = PolicySource(PolicySourceKind.NAMESPACE, "ConfigMap team-a/muster-policy", policy)
    resolved = resolve(replace(observed(owner, sources=(source,)), limits=limits))
    assert isinstance(resolved, ResolvedOwner)
    return resolved


@pytest.mark.parametrize(
    ("policy", "owner", "reason"),
    [
        pytest.param(ONE_BASIC_GROUP, in_order(MOST), None, id="InOrder in one basic group"),
        pytest.param("workload: {}", in_order(MOST), Reason.WAITS_FOR_ITSELF, id="InOrder in one gang"),
        pytest.param(STAGES, stages(), None, id="64 stages, each after the one before has ended"),
    ],
)
def test_the_startup_of_the_most_replicated_jobs_is_checked_quickly(
    policy: str, owner: Object, reason: Reason | None
) -> None:
    """Every batch of pods is looked at a few times, whatever it waits for."""
    with cpu.at_most(CPU_SECONDS):
        failure = under(policy, owner).failure
    assert (failure and failure.reason) == reason


@pytest.mark.parametrize(
    ("owner", "limits", "name", "facts"),
    [
        pytest.param(
            in_order(MOST + 1),
            DEFAULT_LIMITS,
            "replicated_jobs",
            (f"spec.replicatedJobs[{MOST}].template.spec.template", MOST + 1, MOST),
            id="one replicatedJob too many",
        ),
        pytest.param(
            a_jobset(a_replicated_job("node", PER_JOB, replicas=4)),
            Limits(pod_groups=3),
            "pod_groups",
            (f"{PATH}[muster.dev/group-per]", 4, 3),
            id="one PodGroup too many",
        ),
        pytest.param(
            a_jobset(*(a_replicated_job(name, PER_JOB, label="main", replicas=4) for name in "ab")),
            Limits(pod_group_members=7),
            "pod_group_members",
            (f"{PATH}[muster.dev/group-per]", 8, 7),
            id="four PodGroups of two templates each",
        ),
        pytest.param(
            a_jobset(a_replicated_job("node", IN_BLOCKS_OF_ONE, replicas=4, pods=3, label="main")),
            Limits(job_blocks=11),
            "job_blocks",
            (f"{PATH}[muster.dev/group-size]", 12, 11),
            id="four Jobs of three blocks each",
        ),
    ],
)
def test_a_refusal_names_its_limit(
    owner: Object, limits: Limits, name: str, facts: tuple[object, ...]
) -> None:
    """The owner's condition and Event have the field, the numbers and the setting."""
    gave_up = plan_workload(replace(observed(owner), limits=limits), NOW)
    assert isinstance(gave_up, Plan)
    assert gave_up.reason == Reason.TOO_MANY_GROUPS
    assert mentions(gave_up.message, *facts, setting(name))


def test_jobs_that_are_not_divided_have_no_blocks() -> None:
    """A hundred thousand of them may share a PodGroup."""
    jobset = a_jobset(a_replicated_job("node", replicas=100_000, label="main"))
    assert under("workload: {}", jobset).failure is None


def test_the_most_composite_groups() -> None:
    """Five: four, one above each PodGroup, and one above them."""
    jobset = a_jobset(a_replicated_job("node", PER_JOB, replicas=4, label="main"))
    assert under(GROUPS_OF_GROUPS, jobset, Limits(pod_groups=10)).failure is None
    failure = under(GROUPS_OF_GROUPS, jobset, Limits(pod_groups=9)).failure
    assert failure is not None
    assert failure.reason == Reason.TOO_MANY_GROUPS
    assert mentions(failure.message, "muster-policy", "workload.groups", 5, 4, setting("pod_groups"))


def test_a_users_own_workload_lifts_no_limit() -> None:
    """Eight composite templates, with eight more in each, three levels deep, are 584 CompositePodGroups."""
    jobset = a_jobset(a_replicated_job("node", label="main"))
    templates = [
        {
            "name": f"c{number}",
            "schedulingPolicy": {"basic": {}},
            "podGroupTemplates": [a_basic(f"g{number}")],
        }
        for number in range(5)
    ]
    templates[0]["podGroupTemplates"] = [a_basic("main")]
    spec = with_spec(podGroupTemplates=None, compositePodGroupTemplates=templates)
    own = a_users_workload(root=jobset)
    spec(own)
    for allowed, failure in ((10, None), (9, Reason.TOO_MANY_GROUPS)):
        resolved = resolve(observed(jobset, others=[own], limits=Limits(pod_groups=allowed)))
        assert isinstance(resolved, ResolvedOwner)
        assert (resolved.failure.reason if resolved.failure else None) == failure


def test_a_workload_with_musters_labels_lifts_no_limit() -> None:
    """Whoever may write Workloads can make one as Muster does."""
    jobset = a_jobset(a_replicated_job("node", PER_JOB, replicas=4, label="main"))
    stored = PolicySource(PolicySourceKind.STORED, "Workload team-a/llama", as_json(GROUPS_OF_GROUPS))
    world = observed(jobset, workload=a_workload(root=jobset), sources=(stored,), limits=Limits(pod_groups=9))
    resolved = resolve(world)
    assert isinstance(resolved, ResolvedOwner)
    assert resolved.live.musters_workload is not None
    assert resolved.failure is not None
    assert resolved.failure.reason == Reason.TOO_MANY_GROUPS


def as_json(policy: str) -> str:
    """A policy as the annotation of a Workload keeps it."""
    return json.dumps(yaml_files.load(policy))
