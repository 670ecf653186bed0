"""Owners with hundreds of groups or millions of completions are planned in linear time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.objects.pods import Pod
from muster.objects.scheduling import CompositePodGroup, Workload
from muster.policy import group_labels
from muster.policy.limits import DEFAULT_LIMITS
from muster.policy.model import NoOp, Plan
from muster.policy.plans.min_counts import wanted_min_counts
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind
from muster.policy.tree.members import members_to_run
from tests.support import cpu
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_job,
    a_jobset,
    a_pod,
    a_pod_group,
    a_replicated_job,
    observed,
    template_labelled,
    with_spec,
    with_status,
)
from tests.support.messages import mentions
from tests.support.planning import (
    Observed,
    conditions_of,
    plan_conditions,
    plan_pod_groups,
    plan_resize,
    plan_workload,
    resolve,
)
from tests.support.trees import a_composite, below

JOBS, PODS = 400, 12
CPU_SECONDS = 1.0
"""Ten times what it takes, and a fifth of what a look at all pods for every group or Job takes."""


@pytest.fixture(scope="module")
def large() -> tuple[Observed, ResolvedOwner]:
    """A JobSet with a group for each of its Jobs, and all their pods."""
    per_job = template_labelled({group_labels.GROUP_PER: "job"})
    jobset = a_jobset(a_replicated_job("node", per_job, replicas=JOBS, pods=PODS, label="main"))
    jobs = [a_child_job(jobset, "node", index) for index in range(JOBS)]
    seen = observed(jobset, jobs=jobs)
    resolved = resolve(seen)
    assert not isinstance(resolved, NoOp)
    pods = []
    for (_, group), job in zip(resolved.pod_groups(), jobs, strict=True):
        first = a_pod(job, 0)
        first["spec"]["schedulingGroup"]["podGroupName"] = group
        pods += [Pod.read(first)] * PODS
    return replace(seen, pods=tuple(pods)), resolved


def _min_counts(seen: Observed, resolved: ResolvedOwner) -> dict[str, int]:
    """The minCount of every gang."""
    return wanted_min_counts(resolved, seen.members)


def _groups(seen: Observed, _resolved: ResolvedOwner) -> Plan:
    """What create_pod_groups makes of the Workload that create_workload makes."""
    workload = plan_workload(seen, NOW)
    assert isinstance(workload, Plan)
    body = {**(workload.actions[0].body or {})}
    body["metadata"] = {**body["metadata"], "uid": "workload-uid"}
    made = plan_pod_groups(replace(seen, workload=Workload.read(body)), NOW)
    assert isinstance(made, Plan)
    return made


@pytest.mark.thorough
@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(_min_counts, id="sizes"),
        pytest.param(conditions_of, id="conditions"),
        pytest.param(_groups, id="groups"),
    ],
)
def test_a_large_owner_is_planned_in_bounded_time(
    large: tuple[Observed, ResolvedOwner], ask: Callable[[Observed, ResolvedOwner], object]
) -> None:
    """A trigger waits for ten seconds."""
    with cpu.at_most(CPU_SECONDS):
        ask(*large)


@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
def test_a_job_of_many_completions_is_planned_in_bounded_time(mode: str) -> None:
    """The API server takes two thousand million of them, of which a few run at once: they are counted."""
    many = with_spec(parallelism=3, completions=10_000_000, completionMode=mode)
    job = a_job(many, with_status(succeeded=2_000_000, completedIndexes="0-999999,1000001-2000000"))
    with cpu.at_most(CPU_SECONDS):
        seen = observed(job)
        resolved = resolve(seen)
        assert not isinstance(resolved, NoOp)
        assert wanted_min_counts(resolved, seen.members) == {"llama-main-33333333": 3}


@pytest.mark.thorough
def test_a_chain_of_composites_is_planned_in_bounded_time() -> None:
    """A user may create one of any length, with PodGroups below all of them; the scheduler places none."""
    links = [f"link-{number}" for number in range(12_000)]
    chain = [
        CompositePodGroup.read(a_composite(name, 1, below(parent)))
        for name, parent in zip(links, ["", *links], strict=False)
    ]
    groups = [a_pod_group(f"stray-{link}", below(link)) for link in links[::4]]
    seen = observed(a_job(), pods=[a_pod()], groups=groups, composites=tuple(chain))
    with cpu.at_most(CPU_SECONDS):
        plan_conditions(seen, NOW)


def test_counts_beyond_the_apis_integers_are_the_largest_of_them() -> None:
    """Two Jobs of a group may ask for 2^31-1 pods each; minCount is an int32."""
    most = 2**31 - 1
    endless = with_spec(parallelism=most, completions=None, completionMode="NonIndexed")
    jobset = a_jobset(*(a_replicated_job(name, endless, label="main") for name in "ab"))
    plan = plan_workload(observed(jobset), NOW)
    assert isinstance(plan, Plan)
    body = plan.actions[0].body or {}
    assert body["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == {"gang": {"minCount": most}}
    jobs = [a_child_job(jobset, name, 0) for name in "ab"]
    seen = observed(jobset, jobs=jobs)
    resolved = resolve(seen)
    assert not isinstance(resolved, NoOp)
    assert wanted_min_counts(resolved, seen.members) == {"llama-main-22222222": most}


GROUP_LIMIT = DEFAULT_LIMITS.pod_groups

MANY = 2_000_000
"""The API server takes a thousand times as many; these fill no machine where they are spelled out."""

TOO_LARGE = [
    pytest.param(
        a_job(template_labelled({group_labels.GROUP_SIZE: "1"}), with_spec(parallelism=3, completions=MANY)),
        "spec.template.metadata.labels[muster.dev/group-size]",
        MANY,
        id="a Job with a group for each of its completions",
    ),
    pytest.param(
        a_jobset(a_replicated_job("node", template_labelled({group_labels.GROUP_PER: "job"}), replicas=MANY)),
        "spec.replicatedJobs[0].template.spec.template.metadata.labels[muster.dev/group-per]",
        MANY,
        id="a JobSet with a group for each of its Jobs",
    ),
    pytest.param(
        a_jobset(
            a_replicated_job("a", template_labelled({group_labels.GROUP_PER: "job"}), replicas=300),
            a_replicated_job("b", template_labelled({group_labels.GROUP_PER: "job"}), replicas=213),
        ),
        "spec.replicatedJobs[0].template.spec.template.metadata.labels[muster.dev/group-per]",
        513,
        id="a JobSet of which two templates together make too many",
    ),
]


@pytest.mark.parametrize(("owner", "path", "groups"), TOO_LARGE)
def test_an_owner_of_too_many_groups_is_a_grouping_failure(owner: Object, path: str, groups: int) -> None:
    """Every step says so from the numbers alone, and the owner's two conditions and an Event do."""
    with cpu.at_most(CPU_SECONDS):
        seen = observed(owner)
        planned = [plan(seen, NOW) for plan in (plan_workload, plan_pod_groups, plan_resize, plan_conditions)]
    failed, *others, reported = planned
    assert isinstance(failed, Plan)
    assert failed.reason == Reason.TOO_MANY_GROUPS
    assert mentions(failed.message, path, groups, GROUP_LIMIT, "MUSTER_LIMIT_POD_GROUPS")
    assert [action.target.kind for action in failed.actions] == [owner["kind"], "Event"]
    assert [(type(other), other.reason) for other in others] == [(NoOp, Reason.TOO_MANY_GROUPS)] * 2
    assert isinstance(reported, Plan)
    conditions = (reported.actions[0].body or {})["status"]["conditions"]
    assert [(condition["status"], condition["reason"]) for condition in conditions[:2]] == [
        ("False", "TooManyGroups")
    ] * 2
    assert conditions[0]["message"] == failed.message
    assert mentions(conditions[1]["message"], path, groups, GROUP_LIMIT, "MUSTER_LIMIT_POD_GROUPS")


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        pytest.param("Basic", [f"llama-main-33333333-{index}" for index in (0, 999_999)], id="let go"),
        pytest.param("Hold", [], id="held"),
    ],
)
def test_only_existing_pods_of_too_many_groups_get_fallback_groups(policy: str, names: list[str]) -> None:
    """Instead of a million PodGroups each existing pod gets the one that it names, unless it is held."""
    size = template_labelled({group_labels.GROUP_SIZE: "1"})
    job = a_job(size, with_spec(parallelism=3, completions=1_000_000))
    pods = [a_pod(job, index) for index in (0, 999_999)]
    source = PolicySource(
        PolicySourceKind.NAMESPACE, "ConfigMap team-a/muster-policy", f"workload: {{onFailure: {policy}}}"
    )
    failed = plan_workload(observed(job, pods=pods, sources=(source,)), NOW)
    assert isinstance(failed, Plan)
    made = [action.target.name for action in failed.actions if action.target.kind == "PodGroup"]
    assert made == names


def test_the_most_groups_an_owner_can_have() -> None:
    """One less than too many; templates that share a group share its PodGroups."""
    per_job = template_labelled({group_labels.GROUP_PER: "job"})
    entries = [a_replicated_job(name, per_job, replicas=GROUP_LIMIT, label="main") for name in "ab"]
    resolved = resolve(observed(a_jobset(*entries)))
    assert isinstance(resolved, ResolvedOwner)
    assert resolved.failure is None
    assert len(list(resolved.pod_groups())) == GROUP_LIMIT


@pytest.mark.parametrize(
    ("labels", "sizes"),
    [
        pytest.param({}, {"llama-main-22222222": 2 * MANY}, id="one group"),
        pytest.param(
            {group_labels.LEADER_GROUP: "driver"},
            {"llama-driver-22222222": MANY, "llama-main-22222222": MANY},
            id="a leader and workers",
        ),
    ],
)
def test_a_jobset_of_many_jobs_is_planned_in_bounded_time(
    labels: dict[str, str], sizes: dict[str, int]
) -> None:
    """Jobs that are alike, and that do not exist yet, are counted; so are their indexes."""
    with cpu.at_most(CPU_SECONDS):
        jobset = a_jobset(
            a_replicated_job("node", template_labelled(labels), replicas=MANY, pods=2, label="main")
        )
        seen = observed(jobset, jobs=[a_child_job(jobset, "node", MANY - 1)])
        resolved = resolve(seen)
        assert not isinstance(resolved, NoOp)
        assert wanted_min_counts(resolved, seen.members) == sizes


def test_blocks_of_many_completions_are_planned_in_bounded_time() -> None:
    """A block is counted as a whole."""
    size = template_labelled({group_labels.GROUP_SIZE: "9999"})
    with cpu.at_most(CPU_SECONDS):
        seen = observed(a_job(size, with_spec(parallelism=3, completions=MANY)))
        resolved = resolve(seen)
        assert not isinstance(resolved, NoOp)
        assert len(wanted_min_counts(resolved, seen.members)) == 201


@pytest.mark.parametrize(("size", "sizes"), [("1", {"-0": 1, "-1": 1, "-2": 1}), ("2", {"-0": 2, "-1": 2})])
def test_completions_that_the_jobset_lacks_are_not_counted(size: str, sizes: dict[str, int]) -> None:
    """A user made the Job as one of the JobSet's, with as many completions as the API takes."""
    template = template_labelled({group_labels.GROUP_SIZE: size})
    jobset = a_jobset(a_replicated_job("node", template, pods=3, label="main"))
    job = a_child_job(jobset, "node", 0, template, with_spec(parallelism=3, completions=2**31 - 1))
    with cpu.at_most(CPU_SECONDS):
        seen = observed(jobset, jobs=[job])
        resolved = resolve(seen)
        assert not isinstance(resolved, NoOp)
        members = members_to_run(resolved.pod_sets, seen.members.jobs)
        assert {instance.suffix: pods for instance, pods in members.items()} == sizes


def test_the_most_blocks_of_live_jobs_are_planned_in_bounded_time() -> None:
    """Each of 2,200 Jobs of 512 blocks took 1.2 ms: a few such plans kept all workers from other events."""
    size, jobs = template_labelled({group_labels.GROUP_SIZE: "1"}), DEFAULT_LIMITS.job_blocks // 512
    jobset = a_jobset(a_replicated_job("node", size, replicas=jobs, pods=512, label="main"))
    live = [a_child_job(jobset, "node", index, size) for index in range(jobs)]
    with cpu.at_most(CPU_SECONDS):
        seen = observed(jobset, jobs=live)
        resolved = resolve(seen)
        assert not isinstance(resolved, NoOp)
        assert resolved.failure is None
        assert set(members_to_run(resolved.pod_sets, seen.members.jobs).values()) == {jobs}


@pytest.mark.thorough
def test_pods_of_thousands_of_other_groups_are_planned_in_linear_time() -> None:
    """A user may create a PodGroup for each of a Job's pods, none of which is among the Job's groups."""
    names = [f"stray-{number}" for number in range(20_000)]
    pod = a_pod()
    seen = observed(
        a_job(),
        pods=[pod | {"spec": pod["spec"] | {"schedulingGroup": {"podGroupName": name}}} for name in names],
        groups=map(a_pod_group, names),
    )
    resolved = resolve(seen)
    assert not isinstance(resolved, NoOp)
    with cpu.at_most(CPU_SECONDS):
        conditions_of(seen, resolved)
