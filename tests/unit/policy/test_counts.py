"""minCount: the pods of a gang that are still to run, and how it follows them."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.pods import Pod
from muster.policy import group_labels
from muster.policy.model import Plan
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.policy.reasons import Reason
from muster.policy.sources.source import PolicySource, PolicySourceKind
from muster.policy.tree.members import LiveMembers, members_to_run
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_pod,
    a_pod_group,
    a_replicated_job,
    a_workload,
    being_deleted,
    bound,
    labelled,
    observed,
    placed,
    pods_of,
    succeeded,
    template_labelled,
    unstamped,
    with_condition,
    with_spec,
    with_status,
)
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_resize, pod_sets_of

NAME = "llama-main-33333333"
NOT_INDEXED = with_spec(completionMode="NonIndexed")
WORK_QUEUE = with_spec(completionMode="NonIndexed", completions=None)
LEADER = template_labelled({group_labels.LEADER_GROUP: "driver"})
BLOCKS = template_labelled({group_labels.GROUP_SIZE: "2"})


def done(indexes: str) -> Any:
    """A Job whose status has these completed indexes."""
    return with_status(completedIndexes=indexes)


def to_run(body: Object, jobs: list[Object], pods: list[Object] | None = None) -> dict[tuple[str, str], int]:
    """The pods that are still to run, by group and instance suffix."""
    jobset = JobSet.read(body) if body["kind"] == "JobSet" else None
    owner = pod_sets_of(jobset or Job.read(body), jobset, {group_labels.NAMESPACE_SWITCH: "enabled"})
    members = LiveMembers(tuple(map(Job.read, jobs)), tuple(map(Pod.read, pods or [])))
    return {(group, suffix): count for (group, suffix), count in members_to_run(owner, members).items()}


@pytest.mark.parametrize(
    ("job", "left"),
    [
        (a_job(pods=6), 6),
        (a_job(done("0,2-3"), pods=6), 3),
        (a_job(with_status(failedIndexes="5"), pods=6), 5),
        (a_job(done("0-1"), with_spec(parallelism=3), pods=6), 3),
        (a_job(done("0-3"), with_spec(parallelism=3), pods=6), 2),
        (a_job(NOT_INDEXED, with_status(succeeded=2), pods=6), 4),
        (a_job(WORK_QUEUE, pods=6), 6),
        (a_job(WORK_QUEUE, with_status(succeeded=1, active=3), pods=6), 3),
        (a_job(with_condition("Complete"), with_status(succeeded=6), pods=6), 0),
        (a_job(with_condition("Failed"), with_status(failedIndexes="0"), pods=6), 6),
        (a_job(labelled({group_labels.JOB_INDEX: "1"}), done("0"), pods=6), 5),
        (a_job(LEADER, with_spec(parallelism=3, completions=6), done("0")), 3),
    ],
)
def test_members_still_to_run(job: Object, left: int) -> None:
    """A minCount asks for no more pods than will still run at once."""
    assert to_run(job, [job]).get(("main", ""), 0) == left


@pytest.mark.parametrize(
    "modifiers", [[], [done("0-1")], [NOT_INDEXED], [NOT_INDEXED, with_status(succeeded=2)]]
)
def test_succeeded_pods_are_done_before_the_job_status_counts_them(modifiers: list[Any]) -> None:
    """The Job controller notes it some time after the kubelet; in between no pod waits for them."""
    job = a_job(*modifiers, pods=6)
    assert to_run(job, [job], [a_pod(job, index, succeeded) for index in range(2)]) == {("main", ""): 4}


def test_blocks_lose_their_own_indexes() -> None:
    """A completed index makes its block smaller, not the others."""
    job = a_job(BLOCKS, done("2-3"), pods=5)
    assert to_run(job, [job]) == {("main", "-0"): 2, ("main", "-2"): 1}


JOBSET = a_jobset(a_replicated_job("a", pods=3, replicas=2))


@pytest.mark.parametrize(
    ("jobs", "left"),
    [
        ([], 6),
        ([a_child_job(JOBSET, "a", 0, done("0"))], 5),
        ([a_child_job(JOBSET, "a", 1, done("0-2"), with_condition("Complete"))], 3),
        ([a_child_job(JOBSET, "a", 0, done("0"), being_deleted)], 6),
    ],
)
def test_members_of_a_jobset(jobs: list[Object], left: int) -> None:
    """A group over several Jobs is the sum of what each still runs; a missing Job counts in full."""
    assert to_run(JOBSET, jobs) == {("a", ""): left}


JOB = a_job(pods=3)
ORPHAN = a_pod(JOB, 0, unstamped, lambda pod: pod["metadata"].update(ownerReferences=[]))


@pytest.mark.parametrize(
    ("pod", "left"),
    [
        (a_pod(JOB, 0, unstamped), 2),
        (a_pod(JOB, 0, unstamped, succeeded), 2),
        (a_pod(JOB, 0, unstamped, being_deleted), 3),
        (ORPHAN, 3),
    ],
)
def test_unstamped_pods_never_join(pod: Object, left: int) -> None:
    """Those of a Job are in the place of members; those without a controller are in no Job's place."""
    assert to_run(JOB, [JOB], [pod, *pods_of(JOB)[1:]])["main", ""] == left


def min_counts(given: Observed) -> dict[str, int]:
    """The new minCounts of PodGroups, by name."""
    decision = plan_resize(given, NOW)
    actions = decision.actions if isinstance(decision, Plan) else ()
    return {
        action.target.name: (action.body or {})["spec"]["schedulingPolicy"]["gang"]["minCount"]
        for action in actions
        if action.target.kind == "PodGroup"
    }


def given(job: Object, current: int, pods: list[Object], *modifiers: Any) -> Observed:
    """A Job whose PodGroup has this minCount."""
    group = a_pod_group(NAME, *modifiers, min_count=current)
    return observed(job, workload=a_workload(a_gang("main", current)), groups=[group], pods=pods)


FOUR = a_job(pods=4)
RUNNING = [a_pod(None, index, bound) for index in range(4)]
GOING = [a_pod(None, index, bound, being_deleted) for index in range(2)]
FOREIGN = labelled({"app.kubernetes.io/managed-by": "someone"})


@pytest.mark.parametrize(
    ("given", "size"),
    [
        pytest.param(given(FOUR, 2, []), 4, id="never placed: up at once"),
        pytest.param(given(a_job(pods=2), 4, RUNNING, placed), 2, id="placed: down at once too"),
        pytest.param(
            given(FOUR, 2, [*RUNNING[:2], a_pod(None, 2)], placed), None, id="not up before pods are bound"
        ),
        pytest.param(given(FOUR, 2, RUNNING[:3], placed), 3, id="up as far as pods are bound"),
        pytest.param(given(FOUR, 2, GOING, placed), 4, id="a restart: no pod is bound any more"),
        pytest.param(given(a_job(done("0"), pods=3), 3, RUNNING[1:2], placed), 2, id="after others finished"),
        pytest.param(given(a_job(pods=0), 2, []), 1, id="never below 1"),
        pytest.param(given(FOUR, 2, [], being_deleted), None, id="being deleted: never larger"),
        pytest.param(given(a_job(pods=2), 4, [], being_deleted), 2, id="being deleted: smaller"),
        pytest.param(given(FOUR, 2, [], FOREIGN), None, id="not Muster's"),
    ],
)
def test_size(given: Observed, size: int | None) -> None:
    """MinCount is never more than the pods that still run, and a running gang is never held up by growth."""
    assert min_counts(given) == ({} if size is None else {NAME: size})


def test_a_number_that_the_owner_wants_fixed_is_not_resized() -> None:
    """The reason says why; what Kubernetes 1.36 fixes is in tests/e2e/clusters."""
    flag = (PolicySource(PolicySourceKind.OWNER, "annotation", "{workload: {onScale: Flag}}"),)
    decision = plan_resize(observed(FOUR, workload=a_workload(), groups=[a_pod_group()], sources=flag), NOW)
    assert decision.reason == Reason.SCALING_FLAGGED
    assert mentions(decision.message, "annotation", "onScale", NAME, 4)
