"""The tree of groups of an owner, and how many pods each group has or still needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from muster.objects.jobs import Job, Pod
from muster.policy import marks
from muster.policy.kinds import Gang, PodSet
from muster.policy.marks import Mark
from muster.policy.priorities import NEVER
from muster.policy.reasons import Reason

Place = tuple[str, str]
"""A group and the suffix of one of its PodGroups: `("trainer", "-3")`."""


@dataclass(frozen=True)
class Group:
    """One node of the tree: a leaf becomes a template and its PodGroups, a node with children a composite.

    Attributes:
        name: the mark; also the template's name, unique in the tree.
        gang: whether all its pods, or all its children, are placed together; else basic.
        pod_sets: the pod templates whose pods are in it; empty for a composite.
        sizes: pods of each of its PodGroups, by name suffix; empty for a composite.
        children: the groups below it.
        pinned: the minCount or minGroupCount a policy asks for; None means all.
        settings: fields a policy sets on template and group, as the API spells them.
    """

    name: str
    gang: bool
    pod_sets: tuple[PodSet, ...]
    sizes: Mapping[str, int]
    children: tuple[Group, ...] = ()
    pinned: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def template_min_count(self) -> int:
        """The minCount of its template, or minGroupCount: as pinned, else all; at least 1."""
        if self.pinned is not None:
            return self.pinned
        return max(1, self.instances) if self.children else max([1, *self.sizes.values()])

    @property
    def instances(self) -> int:
        """How many groups its children make that have pods.

        A child with one PodGroup per Job or block makes several; one without pods would never be ready.
        """
        return sum(
            bool(child.instances) if child.children else sum(pods > 0 for pods in child.sizes.values())
            for child in self.children
        )

    @property
    def priority_class_name(self) -> str:
        """The class of its pods; where they have several, these come to the same."""
        leaf = next(iter(self.leaves()))
        return leaf.pod_sets[0].template.spec.priority_class_name

    @property
    def never_preempts(self) -> bool:
        """Whether the class of its pods is known to say so."""
        return all(leaf.never_preempts_at(suffix) for leaf in self.leaves() for suffix in leaf.sizes or ("",))

    def never_preempts_at(self, suffix: str) -> bool:
        """Whether the class of the pods in one of its PodGroups is known to say so."""
        return all(one.priority.preemption_policy == NEVER for one in self.pod_sets_at(suffix))

    def pod_sets_at(self, suffix: str) -> tuple[PodSet, ...]:
        """The pod templates whose pods are in one of its PodGroups; all of them while it has no pods."""
        return self._pod_sets_by_suffix.get(suffix, self.pod_sets)

    @cached_property
    def _pod_sets_by_suffix(self) -> Mapping[str, tuple[PodSet, ...]]:
        """Found once: a group may have hundreds of PodGroups."""
        found: dict[str, tuple[PodSet, ...]] = {}
        for one in self.pod_sets:
            for (name, suffix), pods in full_seats(one).items():
                if name == self.name and pods > 0:
                    found[suffix] = (*found.get(suffix, ()), one)
        return found

    def priority_class_at(self, suffix: str) -> str:
        """The class of the pods in one of its PodGroups: the scheduler compares it with the group's."""
        return self.pod_sets_at(suffix)[0].template.spec.priority_class_name

    def with_all_below(self) -> Iterator[Group]:
        """The group and those below it, parents before children."""
        yield self
        for child in self.children:
            yield from child.with_all_below()

    def composites(self) -> Iterator[Group]:
        """The groups that have groups, parents before children."""
        if self.children:
            yield self
        for child in self.children:
            yield from child.composites()

    def leaves(self) -> Iterator[Group]:
        """The groups that pods are in."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(frozen=True)
class GivenUp:
    """The owner's pods cannot be grouped as asked; stand-ins take the groups' places.

    Attributes:
        reason: one of the reasons for giving up.
        message: what was observed, with field paths.
        group: the group that is at fault, where it is one.
    """

    reason: Reason
    message: str
    group: str = ""


def tree_of(gang: Gang) -> tuple[Group, ...]:
    """The default tree: one leaf per mark, each a gang of all its pods, initializers basic."""
    members: dict[str, list[PodSet]] = {}
    sizes: dict[str, Counter[str]] = {}
    for pod_set in gang.pod_sets:
        for name in pod_set.mark.groups if pod_set.mark else ():
            # A group without pods (numNodes 0) is in the tree too: templates cannot be added later.
            members.setdefault(name, []).append(pod_set)
            sizes.setdefault(name, Counter())
        for (name, suffix), pods in full_seats(pod_set).items():
            sizes[name][suffix] += pods
    return tuple(
        Group(name, not all(pod_set.initializer for pod_set in sets), tuple(sets), dict(sizes[name]))
        for name, sets in members.items()
    )


def full_seats(pod_set: PodSet, but: Collection[int] = ()) -> Counter[Place]:
    """The pods of a pod set at once, none of them finished, by place; a place of none has a 0.

    Args:
        pod_set: of an owner.
        but: indexes of Jobs to leave out.
    """
    total: Counter[Place] = Counter()
    if pod_set.mark is None or not pod_set.mark.per_job:  # its Jobs are alike, and there may be millions
        jobs = pod_set.jobs - len(but)
        of_each = _full_seats_of_job(pod_set, 0) if jobs > 0 else total
        return Counter({place: pods * jobs for place, pods in of_each.items()})
    for job_index in range(pod_set.jobs):
        if job_index not in but:
            total.update(_full_seats_of_job(pod_set, job_index))
    return total


def members_to_run(gang: Gang, jobs: Iterable[Job], pods: Iterable[Pod] = ()) -> Counter[Place]:
    """The pods that will still run at once, by place: what a minCount may ask for at most.

    A Job that does not exist yet, or is being replaced, counts in full, and so does one that has failed: its
    JobSet makes it anew or ends with it; finished and failed indexes of a live one do not. Neither do pods
    that succeeded a moment ago, of which their Job's status does not tell yet, and pods that stay and carry
    no stamp: they will never join their group.

    Args:
        gang: the owner.
        jobs: its Jobs.
        pods: its pods.
    """
    jobs, pods = tuple(jobs), tuple(pods)
    live = {_job_key(job): job for job in jobs if not job.being_deleted}
    succeeded = _succeeded(pods)
    total: Counter[Place] = Counter()
    for pod_set in gang.pod_sets:
        its = {index: job for (name, index), job in live.items() if name == pod_set.replicated_job}
        there = {index: job for index, job in its.items() if index < pod_set.jobs}
        total.update(full_seats(pod_set, there))
        for job_index, job in there.items():
            total.update(_seats_of_job(pod_set, job_index, job, succeeded))
    for pod in that_stay(jobs, pods):
        if not pod.pod_group_name:
            total[_place_of_unstamped(gang, pod)] -= 1
    return total


def that_stay(jobs: Iterable[Job], pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods that are to run: neither ended nor on their way out, and their Job is not either.

    Pods of a Job that is being deleted get their deletionTimestamp one by one, some time after it.
    """
    live = {job.metadata.uid for job in jobs if not job.being_deleted}
    return tuple(
        pod
        for pod in pods
        if not (pod.finished or pod.being_deleted)
        and (pod.metadata.controller is None or pod.metadata.controller.uid in live)
    )


def _seats(pod_set: PodSet, job_index: int, indexes: Collection[range], at_once: int) -> Counter[Place]:
    """The pods of one Job by place; `completions` may be in the millions, where they are only counted."""
    mark = pod_set.mark
    if mark is None:
        return Counter()
    pods, leads = sum(map(len, indexes)), mark.place(job_index, 0)
    if not (mark.size or mark.leader_group):
        return Counter({leads: min(pods, at_once)})
    if not pod_set.spec.indexed:
        return Counter({leads: min(pods, at_once)} if pods else {})
    places = _by_place(mark, job_index, indexes)
    # The leader runs beside its workers: with fewer pods at once than indexes they never all exist with it.
    beside = max(0, at_once - 1) if mark.leader_group and leads in places else at_once
    return Counter(
        {place: min(count, at_once if place == leads else beside) for place, count in places.items()}
    )


def _by_place(mark: Mark, job_index: int, indexes: Iterable[range]) -> Counter[Place]:
    """How many completion indexes there are in each place, counted a block at a time."""
    total: Counter[Place] = Counter()
    for one in indexes:
        begin = one.start
        while begin < one.stop:
            end = one.stop
            if mark.leader_group and begin == 0:
                end = 1
            elif mark.size and not mark.per_job:
                end = min(end, (begin // mark.size + 1) * mark.size)
            total[mark.place(job_index, begin)] += end - begin
            begin = end
    return total


def _full_seats_of_job(pod_set: PodSet, job_index: int) -> Counter[Place]:
    spec = pod_set.spec
    full = range(spec.parallelism if spec.completions is None else spec.completions)
    return _seats(pod_set, job_index, (full,), spec.parallelism)


def _seats_of_job(
    pod_set: PodSet, job_index: int, job: Job, succeeded: Mapping[str, list[Pod]]
) -> Counter[Place]:
    if job.failed:
        return _full_seats_of_job(pod_set, job_index)
    if job.finished:
        return Counter()
    left = tuple(_unfinished_indexes(job, succeeded.get(job.metadata.uid, [])))
    return _seats(pod_set, job_index, left, job.spec.parallelism)


def _unfinished_indexes(job: Job, succeeded: list[Pod]) -> Iterator[range]:
    """The completion indexes a Job has still to run; for a NonIndexed Job as many numbers as pods to come."""
    spec, status = job.spec, job.status
    if spec.indexed and spec.completions is not None:
        done = [*_indexes(status.completed_indexes), *_indexes(status.failed_indexes)]
        ended = (marks.completion_index(pod.metadata.labels) for pod in succeeded)
        yield from _gaps(spec.completions, (*done, *(range(index, index + 1) for index in ended)))
    elif spec.completions is None:
        # A work queue: after the first success no new pods are made (batch/v1 types.go, JobSpec.completions).
        yield range(status.active if status.succeeded else spec.parallelism)
    else:
        yield range(spec.completions - max(status.succeeded, len(succeeded)))


def _gaps(end: int, taken: Iterable[range]) -> Iterator[range]:
    """The numbers below `end` that are in none of some ranges, which may overlap."""
    begin = 0
    for one in sorted(taken, key=lambda one: one.start):
        yield range(begin, min(one.start, end))
        begin = max(begin, one.stop)
    yield range(begin, end)


def _succeeded(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The pods that succeeded, by the UID of their Job."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        controller = pod.metadata.controller
        if pod.status.phase == "Succeeded" and controller is not None:
            found.setdefault(controller.uid, []).append(pod)
    return found


def _indexes(text: str) -> Iterator[range]:
    """The numbers of an index list such as `0,3-5`."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield range(int(first), int(last or first) + 1)


def _job_key(job: Job) -> tuple[str, int]:
    labels = job.metadata.labels
    return labels.get(marks.REPLICATED_JOB, ""), marks.job_index(labels)


def _place_of_unstamped(gang: Gang, pod: Pod) -> Place:
    labels = pod.metadata.labels
    for pod_set in gang.pod_sets:
        if pod_set.mark and pod_set.replicated_job == labels.get(marks.REPLICATED_JOB, ""):
            return pod_set.mark.place(labels.get(marks.JOB_INDEX, "0"), marks.completion_index(labels))
    return "", ""
