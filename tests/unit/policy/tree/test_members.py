"""The number of pods of a group that still have to run, which limits minCount."""

from __future__ import annotations

import pytest

from muster.objects.pods import Pod
from muster.policy import group_labels
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.policy.tree.members import LiveMembers, members_to_run
from tests.support.builders import (
    Modifier,
    Object,
    a_child_job,
    a_job,
    a_jobset,
    a_pod,
    a_replicated_job,
    being_deleted,
    labelled,
    pods_of,
    succeeded,
    template_labelled,
    unstamped,
    with_condition,
    with_spec,
    with_status,
)
from tests.support.planning import pod_sets_of

BLOCKS_OF_TWO = template_labelled({group_labels.GROUP_SIZE: "2"})
LEADER = template_labelled({group_labels.LEADER_GROUP: "driver"})
WORK_QUEUE = with_spec(completionMode="NonIndexed", completions=None)


def _all(*modifiers: Modifier) -> Modifier:
    def modify(body: Object) -> None:
        for one in modifiers:
            one(body)

    return modify


def _to_run(body: Object, jobs: list[Object], pods: list[Object] | None = None) -> dict[tuple[str, str], int]:
    jobset = JobSet.read(body) if body["kind"] == "JobSet" else None
    gang = pod_sets_of(jobset or Job.read(body), jobset, {group_labels.NAMESPACE_SWITCH: "enabled"})
    to_run = members_to_run(gang, LiveMembers(tuple(map(Job.read, jobs)), tuple(map(Pod.read, pods or []))))
    return {(group, suffix): count for (group, suffix), count in to_run.items()}


@pytest.mark.parametrize(
    ("job", "left"),
    [
        pytest.param(a_job(pods=6), 6, id="a fresh Job runs all"),
        pytest.param(
            a_job(with_status(completedIndexes="0,2-3"), pods=6), 3, id="completed indexes are done"
        ),
        pytest.param(a_job(with_status(failedIndexes="5"), pods=6), 5, id="failed indexes do not come back"),
        pytest.param(
            a_job(with_status(completedIndexes="0-1"), with_spec(parallelism=3), pods=6),
            3,
            id="no more than parallelism at once",
        ),
        pytest.param(
            a_job(with_status(completedIndexes="0-3"), with_spec(parallelism=3), pods=6),
            2,
            id="the last two are fewer than parallelism",
        ),
        pytest.param(
            a_job(with_spec(completionMode="NonIndexed"), with_status(succeeded=2), pods=6),
            4,
            id="without indexes the successes are counted off",
        ),
        pytest.param(a_job(WORK_QUEUE, pods=6), 6, id="a work queue runs its parallelism"),
        pytest.param(
            a_job(WORK_QUEUE, with_status(succeeded=1, active=3), pods=6),
            3,
            id="after its first success no pod of a work queue is made anew",
        ),
        pytest.param(
            a_job(with_condition("Complete"), with_status(succeeded=6), pods=6),
            0,
            id="a complete Job runs nothing",
        ),
        pytest.param(
            a_job(with_condition("Failed"), with_status(failedIndexes="0"), pods=6),
            6,
            id="a failed Job comes again in full, or its JobSet ends with it",
        ),
    ],
)
def test_members_still_to_run(job: Object, left: int) -> None:
    """A minCount asks for no more pods than will still run at once."""
    assert _to_run(job, [job]).get(("main", ""), 0) == left


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(a_job(pods=6), id="none of them"),
        pytest.param(a_job(with_status(completedIndexes="0"), pods=6), id="the first of them"),
        pytest.param(a_job(with_status(completedIndexes="0-1"), pods=6), id="both"),
        pytest.param(a_job(with_spec(completionMode="NonIndexed"), pods=6), id="none, without indexes"),
        pytest.param(
            a_job(with_spec(completionMode="NonIndexed"), with_status(succeeded=2), pods=6),
            id="both, without indexes",
        ),
    ],
)
def test_succeeded_pods_are_done_before_the_job_status_counts_them(job: Object) -> None:
    """The Job controller notes it some time after the kubelet; in between no pod waits for them."""
    assert _to_run(job, [job], [a_pod(job, index, succeeded) for index in range(2)]) == {("main", ""): 4}


@pytest.mark.parametrize("label", [group_labels.REPLICATED_JOB, group_labels.JOB_INDEX])
def test_a_job_is_its_own_whatever_labels_it_was_copied_with(label: str) -> None:
    """Otherwise its pods would count in full for ever."""
    job = a_job(labelled({label: "1"}), with_status(completedIndexes="0"), pods=6)
    assert _to_run(job, [job]) == {("main", ""): 5}


def test_pods_that_an_earlier_job_of_the_name_left_behind_are_not_missing() -> None:
    """Deleted with propagation policy Orphan: they have no controller, and never join the new Job's gang."""
    job = a_job(pods=2)
    left = a_pod(job, 0, unstamped, labelled({group_labels.JOB_UID: "of-the-former"}))
    left["metadata"]["ownerReferences"] = []
    assert _to_run(job, [job], [left]) == {("main", ""): 2}


def test_blocks_lose_their_own_indexes() -> None:
    """A completed index makes its block smaller, not the others."""
    job = a_job(BLOCKS_OF_TWO, with_status(completedIndexes="2-3"), pods=5)
    assert _to_run(job, [job]) == {("main", "-0"): 2, ("main", "-2"): 1}


def test_a_leader_that_is_done_leaves_its_place_to_a_worker() -> None:
    """Workers may ask for all pods at once when no leader runs beside them."""
    job = a_job(LEADER, with_spec(parallelism=3, completions=6), with_status(completedIndexes="0"))
    assert _to_run(job, [job]) == {("main", ""): 3}


JOBSET = a_jobset(a_replicated_job("a", pods=3, replicas=2))


@pytest.mark.parametrize(
    ("jobs", "left"),
    [
        pytest.param([], 6, id="Jobs that are not born yet count in full"),
        pytest.param(
            [a_child_job(JOBSET, "a", 0, with_status(completedIndexes="0"))],
            5,
            id="one that lives counts what is left of it, the other in full",
        ),
        pytest.param(
            [a_child_job(JOBSET, "a", 1, with_status(completedIndexes="0-2"), with_condition("Complete"))],
            3,
            id="a complete one counts nothing",
        ),
        pytest.param(
            [a_child_job(JOBSET, "a", 0, with_status(completedIndexes="0"), being_deleted)],
            6,
            id="one that is being replaced counts in full",
        ),
    ],
)
def test_members_of_a_jobset(jobs: list[Object], left: int) -> None:
    """A group over several Jobs is the sum of what each still runs."""
    assert _to_run(JOBSET, jobs) == {("a", ""): left}


@pytest.mark.parametrize(
    ("modifier", "left"),
    [
        pytest.param(unstamped, 2, id="a live one does not count"),
        pytest.param(_all(unstamped, succeeded), 2, id="one that succeeded is taken off once, not twice"),
        pytest.param(
            _all(unstamped, being_deleted),
            3,
            id="one on its way out makes room for a new one",
        ),
    ],
)
def test_unstamped_pods_never_join(modifier: Modifier, left: int) -> None:
    """A pod made while the policies were away will not join its group."""
    job = a_job(pods=3)
    assert _to_run(job, [job], [a_pod(job, 0, modifier), *pods_of(job)[1:]])["main", ""] == left


def test_pods_without_a_controller_are_in_no_jobs_place() -> None:
    """Whoever may create pods can give them the labels of a Job, which still creates all of its own."""
    job = a_job(pods=8)
    bare = [a_pod(job, index, unstamped) for index in range(7)]
    for pod in bare:
        del pod["metadata"]["ownerReferences"]
    assert _to_run(job, [job], bare)["main", ""] == 8
