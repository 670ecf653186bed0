"""The gangs of an owner, which wait or are placed, for metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from muster.objects.meta import is_true, turned_at
from muster.objects.pods import Pod
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import REPLICATED_JOB
from muster.policy.model import GangsPlaced
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.status.conditions import SCHEDULED, Condition, condition_type
from muster.policy.status.group_status import BINDING_TIME, by_group
from muster.policy.tree.groups import Group
from muster.policy.tree.members import LiveMembers


@dataclass(frozen=True)
class GangStatus:
    """The status of one gang of an owner.

    Attributes:
        reason: why it waits; Scheduled if it is placed.
        since: when it began to wait; None if its owner has no creationTimestamp.
        bound_at: when its last pod was bound; None if that is unknown or no pod is.
    """

    reason: Reason
    since: datetime | None
    bound_at: datetime | None


def gang_statuses(
    resolved: ResolvedOwner, members: LiveMembers, reasons: Mapping[str, Reason]
) -> Iterator[GangStatus]:
    """Yield the gangs of an owner that have pods or are to get some now.

    Left out are basic groups, gangs whose pods have all run, those of a suspended owner without pods, and
    those whose Jobs wait for other replicatedJobs.
    """
    groups = {group.metadata.name: group for group in members.groups}
    pods_of = by_group(members.staying)
    first_jobs = _first_jobs(members.jobs)
    started_at = _started_at(resolved)
    lost_at = turned_at(resolved.owner.status.conditions, condition_type(resolved.owner, SCHEDULED), "False")
    for leaf, suffix, name in resolved.pod_groups():
        group, pods, reason = groups.get(name), pods_of[name], reasons[name]
        if not _is_gang(resolved, leaf, group):
            continue
        pod_sets = leaf.pod_sets_at(suffix)
        waits_for_others = all(pod_set.waits_for for pod_set in pod_sets)
        later = tuple(pod_set.replicated_job for pod_set in pod_sets) if waits_for_others else ()
        has_begun = not later or any(job in first_jobs for job in later)
        if pods or (has_begun and not resolved.suspended and reason != Reason.SCHEDULED):
            began = _latest(started_at, _earliest(*(first_jobs.get(job) for job in later)))
            since = _waiting_since(group, pods, began, lost_at)
            yield GangStatus(reason, since, _latest(*(pod.bound_at for pod in pods)))


def gangs_placed(owner: OwnerObject, gangs: Iterable[GangStatus], scheduled: Condition) -> GangsPlaced | None:
    """Return GangsPlaced with the longest wait of a gang if PodGroupsScheduled turns True, else None.

    Gangs that stayed placed while others of the owner were restarted do not count again.
    """
    conditions, kind = owner.status.conditions, condition_type(owner, scheduled.type)
    if not scheduled.true or is_true(conditions, kind):
        return None
    lost_at = turned_at(conditions, kind, "False")
    waits = [
        gang.bound_at - gang.since
        for gang in gangs
        if gang.bound_at is not None
        and gang.since is not None
        and (lost_at is None or lost_at - gang.bound_at < BINDING_TIME)
    ]
    return GangsPlaced(owner.kind, max(max(waits).total_seconds(), 0.0)) if waits else None


def _is_gang(resolved: ResolvedOwner, leaf: Group, group: PodGroup | None) -> bool:
    if group is None:
        return leaf.gang and resolved.why_no_groups is None
    return group.spec.scheduling_policy.gang is not None


def _first_jobs(jobs: Iterable[Job]) -> dict[str, datetime | None]:
    first: dict[str, datetime | None] = {}
    for job in jobs:
        name = job.metadata.labels.get(REPLICATED_JOB, "")
        if not job.being_deleted:
            first[name] = _earliest(job.metadata.created_at, first.get(name))
    return first


def _started_at(resolved: ResolvedOwner) -> datetime | None:
    owner, runner = resolved.owner, resolved.live.runner or resolved.owner
    resumed = (turned_at(one.status.conditions, "Suspended", "False") for one in (owner, runner))
    return _latest(owner.metadata.created_at, *resumed)


def _waiting_since(
    group: PodGroup | None, pods: list[Pod], began: datetime | None, lost_at: datetime | None
) -> datetime | None:
    """When a gang began to wait, for its first placement or for another one."""
    placed_at = group.placed_at if group is not None else None
    if began is None or placed_at is None or placed_at < began:
        return began
    if not pods:
        return _latest(began, lost_at)
    created = (pod.metadata.created_at for pod in pods)
    return min((at for at in created if at is not None and at > placed_at), default=began)


def _latest(*times: datetime | None) -> datetime | None:
    return max((at for at in times if at is not None), default=None)


def _earliest(*times: datetime | None) -> datetime | None:
    return min((at for at in times if at is not None), default=None)
