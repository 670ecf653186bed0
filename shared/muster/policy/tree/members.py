"""The pods of an owner by group instance: all of them, and those that are still to run."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from muster.objects.meta import ObjectMeta
from muster.objects.pods import Pod, to_run
from muster.objects.scheduling import AnyGroup, CompositePodGroup, PodGroup
from muster.policy import group_labels
from muster.policy.group_labels import GroupInstance, GroupLabels
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerPodSets, PodSet

_INDEXES = re.compile(r"(?<![^,])([0-9]{1,10})(?:-([0-9]{1,10}))?(?![^,])")

GroupKey = tuple[str, str]
"""Kind and name: a PodGroup and a CompositePodGroup may have the same name."""


@dataclass(frozen=True)
class LiveMembers:
    """The existing objects of an owner; empty if a step does not need and did not read them.

    `groups` has PodGroups of the names that its groups have or its pods name, by any creator.
    """

    jobs: tuple[Job, ...] = ()
    pods: tuple[Pod, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    composites: tuple[CompositePodGroup, ...] = ()

    @cached_property
    def group_named(self) -> Mapping[str, PodGroup]:
        """The PodGroups by name."""
        return {group.metadata.name: group for group in self.groups}

    @cached_property
    def composite_named(self) -> Mapping[str, CompositePodGroup]:
        """The CompositePodGroups by name."""
        return {composite.metadata.name: composite for composite in self.composites}

    @cached_property
    def existing(self) -> Mapping[GroupKey, AnyGroup]:
        """The CompositePodGroups and PodGroups by kind and name."""
        groups: tuple[AnyGroup, ...] = (*self.composites, *self.groups)
        return {(group.kind, group.metadata.name): group for group in groups}

    @cached_property
    def staying(self) -> tuple[Pod, ...]:
        """The pods that are to run: neither they nor their Job have ended or are being deleted.

        Pods that an earlier Job of the name left behind have no controller, but the label of its UID.
        """
        live = {job.metadata.uid for job in self.jobs if not job.being_deleted}
        return tuple(pod for pod in self.pods if to_run(pod) and _may_be_of(live, pod.metadata))


def by_group(pods: Iterable[Pod]) -> defaultdict[str, list[Pod]]:
    """Return the pods by the name of their PodGroup."""
    grouped: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        grouped[pod.pod_group_name].append(pod)
    return grouped


def next_min_count(group: PodGroup, needed: int, bound: int) -> int:
    """Return the minCount to set on the way to the needed one.

    Lowered at once, and raised at once while no staying member has a node. Else raised only as far as pods
    are bound, so that the replacement of a running member never waits for growth.
    """
    current = group.spec.scheduling_policy.min_count
    if needed <= current or not group.placed or bound == 0:
        return needed
    return max(current, min(needed, bound))


def expected_members(pod_set: PodSet, without: Collection[int] = ()) -> Mapping[GroupInstance, int]:
    """Return the pods that run at once while none has finished, but those of some Jobs, by group instance."""
    if pod_set.labels is None or not pod_set.labels.by_job:  # its Jobs are alike, and there may be millions
        left = pod_set.jobs - len(without)
        of_each = _members_of_whole_job(pod_set, 0) if left > 0 else {}
        return {instance: pods * left for instance, pods in of_each.items()}
    total: Counter[GroupInstance] = Counter()
    for job_index in range(pod_set.jobs):
        if job_index not in without:
            for instance, pods in _members_of_whole_job(pod_set, job_index).items():
                total[instance] += pods
    return total


def members_to_run(owner: OwnerPodSets, members: LiveMembers) -> Counter[GroupInstance]:
    """Return the pods that will still run at once, by group instance.

    A Job that does not exist yet, is being replaced or has failed counts in full. Finished and failed indexes
    of a live Job do not count, nor do pods that succeeded before their Job's status says so, nor staying pods
    without a schedulingGroup, which never join.
    """
    live = {_job_key(owner, job): job for job in members.jobs if not job.being_deleted}
    succeeded: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in members.pods:
        if pod.status.phase == "Succeeded" and pod.metadata.controller is not None:
            succeeded[pod.metadata.controller.uid].append(pod)
    total: Counter[GroupInstance] = Counter()
    for pod_set in owner.pod_sets:
        jobs = {
            index: job
            for (name, index), job in live.items()
            if name == pod_set.replicated_job and index < pod_set.jobs
        }
        total.update(expected_members(pod_set, jobs))
        for index, job in jobs.items():
            total.update(_members_left(pod_set, index, job, succeeded[job.metadata.uid]))
    for pod in members.staying:
        if not pod.pod_group_name and pod.metadata.controller is not None:
            total[_instance_without_stamp(owner, pod)] -= 1
    return total


def _may_be_of(live_uids: Collection[str], pod: ObjectMeta) -> bool:
    if pod.controller is not None:
        return pod.controller.uid in live_uids
    return pod.labels.get(group_labels.JOB_UID) in {None, *live_uids}


def _members_left(
    pod_set: PodSet, job_index: int, job: Job, succeeded: list[Pod]
) -> Mapping[GroupInstance, int]:
    if job.failed:
        return _members_of_whole_job(pod_set, job_index)
    if job.finished:
        return {}
    return _members_of_job(pod_set, job_index, tuple(_unfinished(job, succeeded)), job.spec.parallelism)


def _members_of_whole_job(pod_set: PodSet, job_index: int) -> Mapping[GroupInstance, int]:
    indexes = (range(pod_set.completion_indexes),)
    return _members_of_job(pod_set, job_index, indexes, pod_set.parallelism)


def _members_of_job(
    pod_set: PodSet, job_index: int, indexes: Collection[range], at_once: int
) -> Mapping[GroupInstance, int]:
    """Return the pods of some completion indexes of a Job that run at once; there may be millions of them."""
    labels = pod_set.labels
    if labels is None:
        return {}
    pods, first = sum(map(len, indexes)), labels.instance(job_index, 0)
    if not (labels.shape.size or labels.leader_group):
        return {first: min(pods, at_once)}
    if not pod_set.indexed:
        return {first: min(pods, at_once)} if pods else {}
    counts = _indexes_by_instance(pod_set, labels, job_index, indexes)
    # With fewer pods at once than indexes the workers never all exist beside their leader.
    beside = max(0, at_once - 1) if labels.leader_group and first in counts else at_once
    return {
        instance: min(count, at_once if instance == first else beside) for instance, count in counts.items()
    }


def _indexes_by_instance(
    pod_set: PodSet, labels: GroupLabels, job_index: int, indexes: Iterable[range]
) -> Counter[GroupInstance]:
    """Count completion indexes a block at a time; blocks that only a grown live Job has get no PodGroup."""
    total: Counter[GroupInstance] = Counter()
    size = labels.shape.size
    blocks = -(-pod_set.completion_indexes // size) if size else 0
    for block in indexes:
        begin, stop = block.start, min(block.stop, blocks * size) if size else block.stop
        while begin < stop:
            end = stop
            if labels.leader_group and begin == 0:
                end = 1
            elif size:
                end = min(end, (begin // size + 1) * size)
            total[labels.instance(job_index, begin)] += end - begin
            begin = end
    return total


def _unfinished(job: Job, succeeded: list[Pod]) -> Iterator[range]:
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


def _index_ranges(text: str) -> Iterator[range]:
    for part in _INDEXES.finditer(text):
        yield range(int(part[1]), int(part[2] or part[1]) + 1)


def _job_key(owner: OwnerPodSets, job: Job) -> tuple[str, int]:
    """Return replicatedJob and index of a Job; a Job of its own has none, whatever its labels say."""
    if not any(pod_set.replicated_job for pod_set in owner.pod_sets):
        return "", 0
    labels = job.metadata.labels
    return labels.get(group_labels.REPLICATED_JOB, ""), group_labels.job_index(labels)


def _instance_without_stamp(owner: OwnerPodSets, pod: Pod) -> GroupInstance:
    labels = pod.metadata.labels
    for pod_set in owner.pod_sets:
        if pod_set.labels and pod_set.replicated_job == labels.get(group_labels.REPLICATED_JOB, ""):
            job_index = labels.get(group_labels.JOB_INDEX, "0")
            return pod_set.labels.instance(job_index, group_labels.completion_index(labels))
    return GroupInstance("", "")
