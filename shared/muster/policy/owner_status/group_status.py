"""The status of each PodGroup and gang of an owner, from its pods and the scheduler's conditions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from muster.objects.meta import find_condition, is_true, turned_at
from muster.objects.pods import Pod
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import GATE, REPLICATED_JOB
from muster.policy.model import GangsPlaced
from muster.policy.owner_status.conditions import MESSAGE_LIMIT, SCHEDULED, Condition, condition_type
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerObject, PodSet
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.groups import Group
from muster.policy.tree.members import LiveMembers, members_to_run

WORST_FIRST = (
    Reason.API_NOT_SERVED,
    Reason.GANG_SIZE_FIXED,
    Reason.SCHEDULER_ERROR,
    Reason.SCHEDULING_TIMED_OUT,
    Reason.UNSCHEDULABLE,
    Reason.MEMBERS_LOST,
    Reason.WAITING_FOR_POD_GROUP,
    Reason.SCHEDULING_GATED,
    Reason.GROUPS_IGNORED,
    Reason.WAITING_FOR_SCHEDULER,
    Reason.WAITING_FOR_PODS,
    Reason.SCHEDULED,
)
"""Reasons of groups; an owner of several groups gets the first."""


BINDING_TIME = timedelta(seconds=5)
"""How long the binding of placed pods may take: shorter than all retries of a trigger together, so that a pod
that stays unbound causes no dead letter. So much may clocks differ, too."""


@dataclass(frozen=True)
class GroupStatus:
    """The status of one PodGroup of an owner."""

    reason: Reason
    message: str


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
    resolved: ResolvedOwner, members: LiveMembers, statuses: Mapping[str, GroupStatus]
) -> Iterator[GangStatus]:
    """Yield the gangs of an owner that have pods or are to get some now.

    Left out are basic groups, gangs whose pods have all run, those of a suspended owner without pods, and
    those whose Jobs wait for other replicatedJobs.

    Args:
        resolved: the owner.
        members: its Jobs, pods and groups.
        statuses: the status of each of its PodGroups by name.
    """
    groups = {group.metadata.name: group for group in members.groups}
    pods = by_group(members.staying)
    first_jobs = _first_jobs(members.jobs)
    lost_at = turned_at(resolved.owner.status.conditions, condition_type(resolved.owner, SCHEDULED), "False")
    for leaf in resolved.leaves():
        for suffix in leaf.sizes:
            name = resolved.pod_sets.pod_group_name(leaf.name, suffix)
            group, own, reason = groups.get(name), pods[name], statuses[name].reason
            if not _is_gang(resolved, leaf, group):
                continue
            later = _replicated_jobs_if_later(leaf.pod_sets_at(suffix))
            begun = not later or any(job in first_jobs for job in later)
            if own or (begun and not resolved.suspended and reason != Reason.SCHEDULED):
                began = _latest(_began(resolved), _earliest(*(first_jobs.get(job) for job in later)))
                since = _waiting_since(group, own, began, lost_at)
                yield GangStatus(reason, since, _latest(*(pod.bound_at for pod in own)))


def gangs_placed(owner: OwnerObject, gangs: Iterable[GangStatus], scheduled: Condition) -> GangsPlaced | None:
    """Return GangsPlaced with the longest wait of a gang if PodGroupsScheduled turns True, else None.

    Gangs that stayed placed while others of the owner were restarted do not count again.

    Args:
        owner: with the conditions of before.
        gangs: its gangs.
        scheduled: its new condition.
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


def group_statuses(
    resolved: ResolvedOwner, members: LiveMembers, held: Mapping[str, str] | None = None
) -> dict[str, GroupStatus]:
    """Return the status of every PodGroup that an owner should have, by name.

    Args:
        resolved: the owner.
        members: its Jobs, pods and groups.
        held: why patch_pods leaves Muster's gate on the pods of a PodGroup, by name.
    """
    groups = {group.metadata.name: group for group in members.groups}
    fixed_in = "" if resolved.api.resizable else resolved.api.version
    needed = members_to_run(resolved.pod_sets, members.jobs, members.pods)
    lost_pods = any(job.lost_pods for job in members.jobs)
    pods = by_group(members.pods)
    statuses: dict[str, GroupStatus] = {}
    for instance, name in resolved.pod_groups():
        group = groups.get(name)
        too_few = too_few_pods(group, pods[name], needed[instance], fixed_in) if group and fixed_in else None
        lost = lost_members(group, pods[name], needed[instance], counted=lost_pods) if group else None
        why_held = (held or {}).get(name, "")
        status = status_of(name, group, pods[name], needed[instance], why_held=why_held)
        statuses[name] = too_few or lost or status
    return statuses


def by_group(pods: Iterable[Pod]) -> defaultdict[str, list[Pod]]:
    """Return the pods by the name of their PodGroup."""
    grouped: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        grouped[pod.pod_group_name].append(pod)
    return grouped


def bound_alone(members: LiveMembers, now: datetime) -> set[str]:
    """Return the names of PodGroups without a status whose pods were bound over five seconds ago.

    A scheduler with the feature gates places a group and then binds its pods; one without binds each pod by
    itself.
    """
    without_status = {
        group.metadata.name for group in members.groups if not group.placed and group.refusal is None
    }
    return {
        pod.pod_group_name
        for pod in members.pods
        if pod.pod_group_name in without_status
        and pod.bound_at is not None
        and now - pod.bound_at > BINDING_TIME
        and not pod.finished
    }


def status_of(
    name: str, group: PodGroup | None, pods: list[Pod], needed: int, *, why_held: str = ""
) -> GroupStatus:
    """Return the status of a group.

    Args:
        name: the name of the PodGroup.
        group: the PodGroup; None if it does not exist.
        pods: pods stamped with the name.
        needed: pods that are still to run at once.
        why_held: why Muster's gate is left on its pods; "" if it is about to be removed.
    """
    live, bound = _live(pods)
    counts = _counts(name, live, bound, needed)
    if group is None:
        return GroupStatus(Reason.WAITING_FOR_POD_GROUP, f"{name}: the PodGroup does not exist yet")
    if not live and needed <= 0:
        return GroupStatus(Reason.SCHEDULED, f"{name}: no pod is left to run")
    if group.refusal is not None and not bound:
        error = group.refusal[0] == Reason.SCHEDULER_ERROR
        reason = Reason.SCHEDULER_ERROR if error else Reason.UNSCHEDULABLE
        return GroupStatus(reason, f"{counts}; {group.refusal[1] or group.refusal[0]}")
    gates = {gate for pod in live for gate in pod.gates}
    if gates:
        musters = f"Muster's, kept: {why_held}" if why_held else "Muster's, about to be removed"
        others = ", ".join(sorted(gates - {GATE}))
        return GroupStatus(Reason.SCHEDULING_GATED, f"{counts}; scheduling gates: {others or musters}")
    if len(live) < max(needed, 0 if group.placed else group.spec.scheduling_policy.min_count):
        return GroupStatus(Reason.WAITING_FOR_PODS, f"{counts}; {len(live)} exist")
    refused = next(filter(None, map(refusal_of_pod, live)), None)
    if refused is not None and not _placed_after_refusals(group, live, bound):
        return GroupStatus(refused[0], f"{counts}; {refused[1]}")
    if bound < len(live) or not group.placed:
        return GroupStatus(Reason.WAITING_FOR_SCHEDULER, counts)
    return GroupStatus(Reason.SCHEDULED, counts)


def too_few_pods(group: PodGroup, pods: list[Pod], needed: int, version: str) -> GroupStatus | None:
    """GangSizeFixed for a gang with fewer pods left to run than its immutable minCount, else None.

    Args:
        group: the PodGroup.
        pods: pods stamped with its name.
        needed: pods that are still to run at once.
        version: of the API, where minCount is immutable.
    """
    live, bound = _live(pods)
    minimum = group.spec.scheduling_policy.min_count
    if not bound < needed < minimum:
        return None
    cause = f"minCount {minimum} is immutable in {version}, and {needed} pods are left to run"
    counts = _counts(group.metadata.name, live, bound, needed)
    return GroupStatus(Reason.GANG_SIZE_FIXED, f"{counts}; {cause}: create the job again")


def lost_members(group: PodGroup, pods: list[Pod], needed: int, *, counted: bool) -> GroupStatus | None:
    """MembersLost for a placed gang with fewer pods than its minCount, else None.

    A restart or a suspension by its owner is none: there no Job counts a lost pod, and no pod was evicted.

    Args:
        group: the PodGroup.
        pods: pods stamped with its name.
        needed: pods that are still to run at once; those that succeeded are not missed.
        counted: whether a Job of the owner counts pods that failed or are being deleted.
    """
    live, bound = _live(pods)
    if not group.placed or len(live) >= min(needed, group.spec.scheduling_policy.min_count):
        return None
    gone = (pod for pod in pods if pod.finished or pod.being_deleted)
    targets = (find_condition(pod.status.conditions, "DisruptionTarget") for pod in gone)
    messages = [str(target["message"]) for target in targets if target and target.get("message")]
    causes = sorted({message[:MESSAGE_LIMIT] for message in messages})
    if not (counted or causes):
        return None
    exist = "; ".join([f"{len(live)} exist", *causes])
    return GroupStatus(Reason.MEMBERS_LOST, f"{_counts(group.metadata.name, live, bound, needed)}; {exist}")


def _is_gang(resolved: ResolvedOwner, leaf: Group, group: PodGroup | None) -> bool:
    """Whether a PodGroup is a gang, or is going to be one."""
    if group is None:
        return leaf.gang and resolved.why_no_groups is None
    return group.spec.scheduling_policy.gang is not None


def _replicated_jobs_if_later(pod_sets: Iterable[PodSet]) -> tuple[str, ...]:
    """Return the names of a group's replicatedJobs if each waits for another one; else an empty tuple."""
    sets = tuple(pod_sets)
    return tuple(one.replicated_job for one in sets) if all(one.waits_for for one in sets) else ()


def _first_jobs(jobs: Iterable[Job]) -> dict[str, datetime | None]:
    """When the first of the Jobs of each replicatedJob was created."""
    first: dict[str, datetime | None] = {}
    for job in jobs:
        name = job.metadata.labels.get(REPLICATED_JOB, "")
        if not job.being_deleted:
            first[name] = _earliest(job.metadata.created_at, first.get(name))
    return first


def _began(resolved: ResolvedOwner) -> datetime | None:
    """When an owner was created, or last resumed."""
    owner, runner = resolved.owner, resolved.live.runner or resolved.owner
    resumed = (turned_at(one.status.conditions, "Suspended", "False") for one in (owner, runner))
    return _latest(owner.metadata.created_at, *resumed)


def _waiting_since(
    group: PodGroup | None, pods: list[Pod], began: datetime | None, lost_at: datetime | None
) -> datetime | None:
    """When a gang began to wait, for its first placement or for another one.

    Args:
        group: its PodGroup; None if it does not exist.
        pods: its pods that are to run.
        began: when its owner was created or resumed, or its Jobs were created if they waited for others.
        lost_at: when PodGroupsScheduled of the owner turned False; None if it is not False.
    """
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


def _live(pods: list[Pod]) -> tuple[list[Pod], int]:
    live = [pod for pod in pods if not (pod.finished or pod.being_deleted)]
    return live, sum(pod.bound for pod in live)


def _counts(name: str, live: list[Pod], bound: int, needed: int) -> str:
    return f"{name}: {bound} of {max(needed, len(live))} pods bound"


def _placed_after_refusals(group: PodGroup, live: list[Pod], bound: int) -> bool:
    """Whether the scheduler is still binding a gang whose pods it refused before it placed the gang.

    It writes PodScheduled of each pod as it binds the pod; until then the pod has the refusal of before.
    """
    refused_at = [pod.refused_at for pod in live if not pod.bound]
    progress = [at for at in (group.placed_at, *(pod.bound_at for pod in live)) if at is not None]
    fewer_than_placed = bound < group.spec.scheduling_policy.min_count
    return (
        fewer_than_placed and bool(progress) and all(at is None or at <= max(progress) for at in refused_at)
    )


def refusal_of_pod(pod: Pod) -> tuple[Reason, str] | None:
    """Return the scheduler's refusal of a pod: after a restart its group keeps its old condition."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if pod.bound or condition is None or condition.get("status") == "True":
        return None
    known = {str(reason): reason for reason in (Reason.SCHEDULER_ERROR, Reason.UNSCHEDULABLE)}
    reason = known.get(condition.get("reason", ""))
    return None if reason is None else (reason, condition.get("message", ""))
