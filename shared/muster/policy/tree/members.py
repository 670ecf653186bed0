"""The pods of an owner that are still to run, by group instance: the upper bound of minCount."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from muster.objects.meta import ObjectMeta
from muster.objects.pods import Pod
from muster.objects.scheduling import CompositePodGroup, PodGroup
from muster.policy import group_labels
from muster.policy.group_labels import GroupInstance
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerPodSets, PodSet

_INDEXES = re.compile(r"(?<![^,])([0-9]{1,10})(?:-([0-9]{1,10}))?(?![^,])")

INDEX_LIST_LENGTH = 1_500_000
"""The most characters of a list of completion indexes that are read: etcd stores no larger object."""


@dataclass(frozen=True)
class LiveMembers:
    """The existing objects of an owner; empty if a step does not need and did not read them.

    Attributes:
        jobs: the Jobs of its JobSet, or the Job itself.
        pods: its pods.
        groups: PodGroups under the names that its groups have or its pods name, by any creator.
        composites: CompositePodGroups under the names that its composite groups have.
    """

    jobs: tuple[Job, ...] = ()
    pods: tuple[Pod, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    composites: tuple[CompositePodGroup, ...] = ()

    @property
    def staying(self) -> tuple[Pod, ...]:
        """The pods that are to run on."""
        return staying_pods(self.jobs, self.pods)


def members_to_run(
    owner: OwnerPodSets, jobs: Iterable[Job], pods: Iterable[Pod] = ()
) -> Counter[GroupInstance]:
    """Return the pods that will still run at once, by group instance.

    A Job that does not exist yet, or is being replaced, counts in full, and so does a failed one: its JobSet
    makes it anew or ends with it. Finished and failed indexes of a live Job do not count, nor do pods that
    succeeded before their Job's status says so, nor staying pods of a Job without a schedulingGroup, which
    never join. Pods without a controller are in no Job's place, whatever labels they have.

    Args:
        owner: the owner's pod sets.
        jobs: its Jobs.
        pods: its pods.
    """
    jobs, pods = tuple(jobs), tuple(pods)
    live = {_job_key(owner, job): job for job in jobs if not job.being_deleted}
    succeeded = _succeeded(pods)
    total: Counter[GroupInstance] = Counter()
    for pod_set in owner.pod_sets:
        live_jobs = {
            index: job
            for (name, index), job in live.items()
            if name == pod_set.replicated_job and index < pod_set.jobs
        }
        total.update(pod_set.expected_members_without(live_jobs))
        for job_index, job in live_jobs.items():
            total.update(_members_left(pod_set, job_index, job, succeeded))
    for pod in staying_pods(jobs, pods):
        if not pod.pod_group_name and pod.metadata.controller is not None:
            total[_instance_without_stamp(owner, pod)] -= 1
    return total


def staying_pods(jobs: Iterable[Job], pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods that are to run: neither they nor their Job have ended or are being deleted.

    Pods of a Job that is being deleted get their deletionTimestamp one by one, some time after it. Those that
    an earlier Job of the name left behind have no controller, but the label of that Job's UID.
    """
    live = {job.metadata.uid for job in jobs if not job.being_deleted}
    return tuple(
        pod for pod in pods if not (pod.finished or pod.being_deleted) and _may_be_of(live, pod.metadata)
    )


def _may_be_of(live_uids: Collection[str], pod: ObjectMeta) -> bool:
    if pod.controller is not None:
        return pod.controller.uid in live_uids
    return pod.labels.get(group_labels.JOB_UID) in {None, *live_uids}


def _members_left(
    pod_set: PodSet, job_index: int, job: Job, succeeded: dict[str, list[Pod]]
) -> Mapping[GroupInstance, int]:
    if job.failed:
        return pod_set.expected_members_of_job(job_index)
    if job.finished:
        return {}
    left = tuple(_unfinished_indexes(job, succeeded.get(job.metadata.uid, [])))
    return pod_set.members_of_job(job_index, left, job.spec.parallelism)


def _unfinished_indexes(job: Job, succeeded: list[Pod]) -> Iterator[range]:
    """Yield ranges of the completion indexes to run; for a NonIndexed Job, of one number per pod to come."""
    spec, status = job.spec, job.status
    if spec.indexed and spec.completions is not None:
        done = [*_index_ranges(status.completed_indexes), *_index_ranges(status.failed_indexes)]
        ended = (group_labels.completion_index(pod.metadata.labels) for pod in succeeded)
        yield from _gaps(spec.completions, (*done, *(range(index, index + 1) for index in ended)))
    elif spec.completions is None:
        # A work queue: after the first success no new pods are made (batch/v1 types.go, JobSpec.completions).
        yield range(status.active if status.succeeded else spec.parallelism)
    else:
        yield range(spec.completions - max(status.succeeded, len(succeeded)))


def _gaps(end: int, taken: Iterable[range]) -> Iterator[range]:
    """Yield the ranges of numbers below `end` that are in none of the taken ranges, which may overlap."""
    begin = 0
    for block in sorted(taken, key=lambda block: block.start):
        if begin < block.start:
            yield range(begin, min(block.start, end))
        begin = max(begin, block.stop)
    yield range(begin, end)


def _succeeded(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return the pods that succeeded, by the UID of their Job."""
    by_job: dict[str, list[Pod]] = {}
    for pod in pods:
        controller = pod.metadata.controller
        if pod.status.phase == "Succeeded" and controller is not None:
            by_job.setdefault(controller.uid, []).append(pod)
    return by_job


def _index_ranges(text: str) -> Iterator[range]:
    """Yield the ranges of an index list such as `0,3-5`; a part that is none is ignored."""
    for part in _INDEXES.finditer(text, 0, INDEX_LIST_LENGTH):
        yield range(int(part[1]), int(part[2] or part[1]) + 1)


def _job_key(owner: OwnerPodSets, job: Job) -> tuple[str, int]:
    """Return replicatedJob and index of a Job; a Job of its own has none, whatever its labels say."""
    if not any(pod_set.replicated_job for pod_set in owner.pod_sets):
        return "", 0
    labels = job.metadata.labels
    return labels.get(group_labels.REPLICATED_JOB, ""), group_labels.job_index(labels)


def _instance_without_stamp(owner: OwnerPodSets, pod: Pod) -> GroupInstance:
    """Return the group instance that a pod without a schedulingGroup would be in."""
    labels = pod.metadata.labels
    for pod_set in owner.pod_sets:
        if pod_set.labels and pod_set.replicated_job == labels.get(group_labels.REPLICATED_JOB, ""):
            job_index = labels.get(group_labels.JOB_INDEX, "0")
            return pod_set.labels.instance(job_index, group_labels.completion_index(labels))
    return GroupInstance("", "")
