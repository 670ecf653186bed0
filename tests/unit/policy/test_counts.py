"""minCount: the pods of a gang that are still to run, and how it follows them."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.pods import Pod
from muster.policy import group_labels
from muster.policy.model import Plan
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.policy.tree.members import LiveMembers, members_to_run
from tests.support import builders as b
from tests.support.builders import Object
from tests.support.planning import Observed, plan_resize, pod_sets_of

NAME = "llama-main-33333333"
NOT_INDEXED = b.with_spec(completionMode="NonIndexed")
WORK_QUEUE = b.with_spec(completionMode="NonIndexed", completions=None)
LEADER = b.template_labelled({group_labels.LEADER_GROUP: "driver"})


def done(indexes: str) -> Any:
    """A Job whose status has these completed indexes."""
    return b.with_status(completedIndexes=indexes)


def to_run(body: Object, jobs: list[Object], pods: list[Object] | None = None) -> dict[tuple[str, str], int]:
    """The pods that are still to run, by group and instance suffix."""
    jobset = JobSet.read(body) if body["kind"] == "JobSet" else None
    owner = pod_sets_of(jobset or Job.read(body), jobset)
    members = LiveMembers(tuple(map(Job.read, jobs)), tuple(map(Pod.read, pods or [])))
    return {(group, suffix): count for (group, suffix), count in members_to_run(owner, members).items()}


@pytest.mark.parametrize(
    ("job", "left"),
    [
        (b.a_job(pods=6), 6),
        (b.a_job(done("0,2-3"), pods=6), 3),
        (b.a_job(b.with_status(failedIndexes="5"), pods=6), 5),
        (b.a_job(done("0-1"), b.with_spec(parallelism=3), pods=6), 3),
        (b.a_job(done("0-3"), b.with_spec(parallelism=3), pods=6), 2),
        (b.a_job(NOT_INDEXED, b.with_status(succeeded=2), pods=6), 4),
        (b.a_job(WORK_QUEUE, pods=6), 6),
        (b.a_job(WORK_QUEUE, b.with_status(succeeded=1, active=3), pods=6), 3),
        (b.a_job(b.with_condition("Complete"), b.with_status(succeeded=6), pods=6), 0),
        (b.a_job(b.with_condition("Failed"), b.with_status(failedIndexes="0"), pods=6), 6),
        (b.a_job(b.labelled({group_labels.JOB_INDEX: "1"}), done("0"), pods=6), 5),
        (b.a_job(LEADER, b.with_spec(parallelism=3, completions=6), done("0")), 3),
    ],
)
def test_members_still_to_run(job: Object, left: int) -> None:
    """A minCount asks for no more pods than will still run at once."""
    assert to_run(job, [job]).get(("main", ""), 0) == left


@pytest.mark.parametrize(
    "modifiers", [[], [done("0-1")], [NOT_INDEXED], [NOT_INDEXED, b.with_status(succeeded=2)]]
)
def test_succeeded_pods_are_done_before_the_job_status_counts_them(modifiers: list[Any]) -> None:
    """The Job controller notes it some time after the kubelet; in between no pod waits for them."""
    job = b.a_job(*modifiers, pods=6)
    assert to_run(job, [job], [b.a_pod(job, index, b.succeeded) for index in range(2)]) == {("main", ""): 4}


JOBSET = b.a_jobset(b.a_replicated_job("a", pods=3, replicas=2))


@pytest.mark.parametrize(
    ("job", "left"),
    [
        (b.a_child_job(JOBSET, "a", 0, done("0")), 5),
        (b.a_child_job(JOBSET, "a", 1, done("0-2"), b.with_condition("Complete")), 3),
        (b.a_child_job(JOBSET, "a", 0, done("0"), b.being_deleted), 6),
    ],
)
def test_members_of_a_jobset(job: Object, left: int) -> None:
    """A group over several Jobs is the sum of what each still runs; a missing Job counts in full."""
    assert to_run(JOBSET, [job]) == {("a", ""): left}


JOB = b.a_job(pods=3)
ORPHAN = b.a_pod(JOB, 0, b.unstamped, lambda pod: pod["metadata"].update(ownerReferences=[]))


@pytest.mark.parametrize(
    ("pod", "left"),
    [
        (b.a_pod(JOB, 0, b.unstamped), 2),
        (b.a_pod(JOB, 0, b.unstamped, b.succeeded), 2),
        (b.a_pod(JOB, 0, b.unstamped, b.being_deleted), 3),
        (ORPHAN, 3),
    ],
)
def test_unstamped_pods_never_join(pod: Object, left: int) -> None:
    """Those of a Job are in the place of members; those without a controller are in no Job's place."""
    assert to_run(JOB, [JOB], [pod, *b.pods_of(JOB)[1:]])["main", ""] == left


def given(job: Object, current: int, pods: list[Object], *modifiers: Any) -> Observed:
    """A Job whose PodGroup has this minCount."""
    group = b.a_pod_group(NAME, *modifiers, min_count=current)
    return b.observed(job, workload=b.a_workload(b.a_gang("main", current)), groups=[group], pods=pods)


FOUR = b.a_job(pods=4)
RUNNING = [b.a_pod(None, index, b.bound) for index in range(4)]
GOING = [b.a_pod(None, index, b.bound, b.being_deleted) for index in range(2)]
FOREIGN = b.labelled({"app.kubernetes.io/managed-by": "someone"})


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (given(FOUR, 2, []), 4),
        (given(b.a_job(pods=2), 4, RUNNING, b.placed), 2),
        # Up as far as pods are bound; after a restart none is bound any more.
        (given(FOUR, 2, [*RUNNING[:2], b.a_pod(None, 2)], b.placed), None),
        (given(FOUR, 2, RUNNING[:3], b.placed), 3),
        (given(FOUR, 2, GOING, b.placed), 4),
        (given(b.a_job(done("0"), pods=3), 3, RUNNING[1:2], b.placed), 2),
        (given(b.a_job(pods=0), 2, []), 1),
        # A group that is being deleted gets smaller, never larger.
        (given(FOUR, 2, [], b.being_deleted), None),
        (given(b.a_job(pods=2), 4, [], b.being_deleted), 2),
        (given(FOUR, 2, [], FOREIGN), None),
    ],
)
def test_size(given: Observed, size: int | None) -> None:
    """MinCount is never more than the pods that still run, and a running gang is never held up by growth."""
    decision = plan_resize(given, b.NOW)
    actions = decision.actions if isinstance(decision, Plan) else ()
    bodies = [action.body or {} for action in actions if action.target.kind == "PodGroup"]
    sizes = [body["spec"]["schedulingPolicy"]["gang"]["minCount"] for body in bodies]
    assert sizes == ([] if size is None else [size])
