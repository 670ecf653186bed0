"""The status of an owner: PodGroupsReady, PodGroupsScheduled and its gangs, from its groups and pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from muster.objects.meta import is_true, turned_at
from muster.objects.pods import Pod, to_run
from muster.objects.scheduling import ManagedPodGroup, PodGroup
from muster.objects.text import counted
from muster.objects.versions import GATES_OF_THE_SCHEDULER
from muster.policy.group_labels import REPLICATED_JOB, belongs_to, is_musters
from muster.policy.groups.manifests import FALLBACK, PLAIN_GROUPS
from muster.policy.groups.wanted_groups import (
    child_groups,
    only_flags,
    scheduling_timeout,
    wanted_counts,
    wanted_groups,
)
from muster.policy.model import GangsPlaced, GangStatus, GroupingFailure
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.status.conditions import READY, SCHEDULED, Condition, condition_type, stored_condition
from muster.policy.status.group_status import (
    BINDING_TIME,
    WORST_FIRST,
    GroupStatus,
    group_statuses,
    groups_bound_alone,
    placed_gang,
)
from muster.policy.tree.groups import Group
from muster.policy.tree.members import LiveMembers, by_group

_REASONS = frozenset(map(str, Reason))
_MAY_LACK_PODS = (Reason.WAITING_FOR_PODS, Reason.SCHEDULING_GATED)

_FEATURE_GATES = {
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
    "preemptionPolicy": "PodGroupPreemptionPolicy",
    "resourceClaims": "DRAWorkloadResourceClaims",
    "disruptionMode": "WorkloadAwarePreemption, Kubernetes 1.36",
}
"""The feature gate of each setting of a group, without which the API server drops it without an error
(pkg/registry/scheduling, Kubernetes v1.37.1)."""

_Note = tuple[Reason | None, str]
"""The reason and the message of what PodGroupsReady says beside that all groups exist."""


@dataclass(frozen=True)
class GroupingStatus:
    """The status of an owner and its groups."""

    ready: Condition
    scheduled: Condition
    gangs: tuple[GangStatus, ...] = ()
    placed: GangsPlaced | None = None

    @property
    def conditions(self) -> tuple[Condition, Condition]:
        """Both conditions."""
        return self.ready, self.scheduled


def owner_status(
    resolved: ResolvedOwner, members: LiveMembers, failed_create: str, now: datetime
) -> GroupingStatus:
    """Return the status of an owner as it is now."""
    failure = resolved.failure
    if failure is not None and not (resolved.tree and resolved.api.served):
        effect = "the pods stay gated" if resolved.policy.holds else "the pods are scheduled one by one"
        message = f"{effect}: {failure.message}"
        scheduled = Condition(SCHEDULED, true=False, reason=failure.reason, message=message)
        return GroupingStatus(not_ready(failure), scheduled)
    groups = group_statuses(resolved, members)
    timeout = scheduling_timeout(resolved, members, now)
    bound_alone = groups_bound_alone(members, now)
    scheduled = _scheduled(groups, failed_create)
    if scheduled.reason == Reason.WAITING_FOR_SCHEDULER and bound_alone:
        names = ", ".join(sorted(bound_alone))
        cause = f"kube-scheduler bound pods of {names} one by one: {GATES_OF_THE_SCHEDULER}"
        message = f"{scheduled.message}; {cause}"
        scheduled = replace(scheduled, reason=Reason.GROUPS_IGNORED, message=message)
    if timeout is not None:
        message = f"{timeout}; {scheduled.message}"
        scheduled = replace(scheduled, true=False, reason=Reason.SCHEDULING_TIMED_OUT, message=message)
    before = scheduled.stored(resolved.owner)
    if resolved.suspended and before.get("reason") == Reason.SCHEDULING_TIMED_OUT:
        # Without pods nothing else would say why it was suspended.
        message = str(before.get("message"))
        scheduled = replace(scheduled, true=False, reason=Reason.SCHEDULING_TIMED_OUT, message=message)
    reasons = {name: group.reason for name, group in groups.items()}
    for name, reason in reasons.items():
        if timeout is not None and name in timeout.groups:
            reasons[name] = Reason.SCHEDULING_TIMED_OUT
        elif name in bound_alone and reason == Reason.WAITING_FOR_SCHEDULER:
            reasons[name] = Reason.GROUPS_IGNORED
    gangs = tuple(_gang_statuses(resolved, members, reasons))
    placed = _gangs_placed(resolved.owner, gangs, scheduled)
    return GroupingStatus(_ready(resolved, members, tuple(groups)), scheduled, gangs, placed)


def placed_status(
    owner: OwnerObject, runner: OwnerObject | None, groups: Sequence[ManagedPodGroup]
) -> GroupingStatus | None:
    """Return the status of an owner that its PodGroups alone tell, once they are placed for the first time.

    None unless create_pod_groups wrote on each that these are all, nobody else wrote on them, and the owner
    was neither changed nor suspended, restarted or ended: then its Jobs and pods count, too.
    """
    numbers = {group.metadata.annotations.get(PLAIN_GROUPS) for group in groups}
    as_created = all(group.placed and group.metadata.written_by_creator_alone for group in groups)
    if numbers != {str(len(groups))} or not as_created:
        return None
    runs = runner or owner
    if owner.being_deleted or owner.finished or owner.spec.suspend or runs.spec.suspend:
        return None
    lost = stored_condition(owner, SCHEDULED).get("reason") == Reason.MEMBERS_LOST
    if not runs.has_original_size or lost or stored_condition(owner, READY).get("status") == "False":
        return None
    statuses = {group.metadata.name: placed_gang(group) for group in groups}
    exist = f"{len(groups)} of {counted(len(groups), 'PodGroup')} created"
    ready = Condition(READY, true=True, reason=Reason.POD_GROUPS_EXIST, message=exist)
    scheduled = _scheduled(statuses, "")
    began = _started_at(owner, runner)
    gangs = tuple(GangStatus(Reason.SCHEDULED, began, group.placed_at) for group in groups)
    return GroupingStatus(ready, scheduled, gangs, _gangs_placed(owner, gangs, scheduled))


def not_ready(failure: GroupingFailure) -> Condition:
    """Return the condition PodGroupsReady of an owner whose groups cannot be made."""
    return Condition(READY, true=False, reason=failure.reason, message=failure.message)


def dropped_settings(resolved: ResolvedOwner) -> str:
    """Return the settings that the stored Workload of Muster's lacks, with their feature gates, as text."""
    workload = resolved.live.musters_workload
    if workload is None:
        return ""
    kept = {template.name: template.settings for template, _ in workload.hierarchy()}
    dropped: dict[str, list[str]] = {}
    for group in resolved.groups.values():
        for setting in group.settings.keys() - kept.get(group.name, group.settings).keys():
            dropped.setdefault(setting, []).append(group.name)
    return "; ".join(
        f"{setting} of {', '.join(dropped[setting])}: feature gate {gate} is off"
        for setting, gate in _FEATURE_GATES.items()
        if setting in dropped
    )


def _scheduled(groups: Mapping[str, GroupStatus], failed_create: str) -> Condition:
    by_severity = sorted(groups.values(), key=lambda group: WORST_FIRST.index(group.reason))
    worst = by_severity[0].reason if by_severity else Reason.SCHEDULED
    waiting = [group for group in by_severity if group.reason != Reason.SCHEDULED]
    messages = [group.message for group in waiting or by_severity]
    done = f"{len(groups) - len(waiting)} of {counted(len(groups), 'group')} scheduled"
    message = f"{done}; {'; '.join(messages)}"
    if failed_create and any(group.reason in _MAY_LACK_PODS for group in waiting):
        message += f"; pods could not be created: {failed_create}"
    return Condition(SCHEDULED, true=worst == Reason.SCHEDULED, reason=worst, message=message)


def _ready(resolved: ResolvedOwner, members: LiveMembers, wanted: tuple[str, ...]) -> Condition:
    """Return PodGroupsReady of an owner that should have PodGroups of these names."""
    failure = resolved.why_no_groups or _fallback_failure(resolved, members, wanted)
    if failure is not None:
        return not_ready(failure)
    existing, composites = (
        {group.metadata.name for group in groups if not group.being_deleted}
        for groups in (members.groups, members.composites)
    )
    wanted_composites = list(resolved.composite_names())
    missing = [name for name in wanted_composites if name not in composites]
    missing += [name for name in wanted if name not in existing]
    total = len(wanted) + len(wanted_composites)
    exist = f"{total - len(missing)} of {counted(total, 'PodGroup')} created"
    if missing:
        what = "suspended: they are made when it is resumed" if resolved.suspended else "missing"
        message = f"{exist}; {what}: {', '.join(missing)}"
        return Condition(READY, true=False, reason=Reason.WAITING_FOR_POD_GROUP, message=message)
    foreign, wrong = _foreign_groups(resolved, members)
    if wrong:
        message = "; ".join([foreign, *wrong])
        return Condition(READY, true=False, reason=Reason.NOT_MUSTERS, message=message)
    notes: list[_Note] = [(None, foreign)] if foreign else []
    notes += _wrong_sizes(resolved, members)
    dropped = dropped_settings(resolved)
    if dropped:
        notes.append((Reason.FIELDS_DROPPED, f"dropped by the API server: {dropped}"))
    reason = next((reason for reason, _ in notes if reason), Reason.POD_GROUPS_EXIST)
    message = "; ".join([exist, *(text for _, text in notes)])
    return Condition(READY, true=True, reason=reason, message=message)


def _fallback_failure(
    resolved: ResolvedOwner, members: LiveMembers, wanted: tuple[str, ...]
) -> GroupingFailure | None:
    """Return why an owner has fallback PodGroups, also under other names that its pods have; else None."""
    existing = members.group_named
    named = {pod.pod_group_name for pod in members.pods if to_run(pod)}
    groups = [existing[name] for name in wanted if name in existing]
    groups += [
        group
        for name, group in existing.items()
        if name in named - set(wanted) and belongs_to(group.metadata.labels, resolved.root.uid)
    ]
    fallback = [
        group
        for group in groups
        if FALLBACK in group.metadata.annotations and is_musters(group.metadata.labels)
    ]
    if not fallback:
        return None
    reason, _, message = fallback[0].metadata.annotations[FALLBACK].partition(": ")
    if reason not in _REASONS:  # somebody else wrote the annotation, and the API refuses most texts
        reason = Reason.NOT_MUSTERS
    names = ", ".join(group.metadata.name for group in fallback)
    return GroupingFailure(reason, f"fallback PodGroups {names}: {message}")


def _foreign_groups(resolved: ResolvedOwner, members: LiveMembers) -> tuple[str, list[str]]:
    """Return, as text, the owner's groups that Muster did not create, and why some are not what it needs.

    A group that a user created under the stamped name is adopted: its pods are placed as it says (KEP-5547).
    It may name no Workload, or the owner's; with a minimum that its pods never reach it is never placed.
    """
    workload = resolved.workload
    wanted = tuple(wanted_groups(resolved, workload)) if workload is not None else ()
    children = child_groups(wanted, {one.name: one.pods for one in wanted}, members)
    names: dict[str, list[str]] = {}
    wrong = []
    for one in wanted:
        group = members.existing.get(one.key)
        if group is None or belongs_to(group.metadata.labels, resolved.root.uid):
            continue
        names.setdefault(f"{group.kind}s", []).append(one.name)
        most = children[one.name] if one.composite else one.pods
        minimum, template = group.spec.scheduling_policy.needs, group.spec.workload_ref
        if minimum > max(most, 1):
            wrong.append(f"{one.name} has {group.minimum_field} {minimum} and {most} {group.member_kind}")
        if template and workload and template.workload_name != workload.metadata.name:
            wrong.append(f"{one.name} names Workload {template.workload_name}, not {workload.metadata.name}")
    named = "; ".join(f"{kind} {', '.join(of_kind)}" for kind, of_kind in names.items())
    return f"not created by Muster for {resolved.root}: {named}" if named else "", wrong


def _wrong_sizes(resolved: ResolvedOwner, members: LiveMembers) -> Iterator[_Note]:
    """Yield a note about the groups whose minCount or minGroupCount does not follow their pods.

    Where minCount is immutable only growth is reported: a gang shrinks as its members finish.
    """
    flagged = only_flags(resolved)
    if resolved.own is not None or (resolved.api.resizable and not flagged):
        return
    wanted = wanted_counts(resolved, members)
    differing = []
    for group in members.existing.values():
        name, minimum = group.metadata.name, group.spec.scheduling_policy.needs
        needed = wanted.get(name, 0)
        if needed > minimum or (flagged and 0 < needed < minimum):
            differing.append(
                f"{name} has {group.minimum_field} {minimum}, its {group.member_kind} need {needed}"
            )
    if not differing:
        return
    cause = "onScale is Flag" if flagged else f"minCount is immutable in {resolved.api.version}"
    reason = Reason.SCALING_FLAGGED if flagged else Reason.GANG_SIZE_FIXED
    yield reason, f"{cause}: {'; '.join(differing)}"


def _gang_statuses(
    resolved: ResolvedOwner, members: LiveMembers, reasons: Mapping[str, Reason]
) -> Iterator[GangStatus]:
    """Yield the gangs of an owner that have pods or are to get some now.

    Left out are basic groups, gangs whose pods have all run, those of a suspended owner without pods, and
    those whose Jobs wait for other replicatedJobs.
    """
    pods_of = by_group(members.staying)
    first_jobs = _first_jobs(members.jobs)
    started_at = _started_at(resolved.owner, resolved.live.runner)
    lost_at = turned_at(resolved.owner.status.conditions, condition_type(resolved.owner, SCHEDULED), "False")
    for one in resolved.pod_groups:
        group, pods, reason = members.group_named.get(one.name), pods_of[one.name], reasons[one.name]
        if not _is_gang(resolved, one.group, group):
            continue
        pod_sets = one.group.pod_sets_at(one.suffix)
        waits_for_others = all(pod_set.waits_for for pod_set in pod_sets)
        later = tuple(pod_set.replicated_job for pod_set in pod_sets) if waits_for_others else ()
        has_begun = not later or any(job in first_jobs for job in later)
        if pods or (has_begun and not resolved.suspended and reason != Reason.SCHEDULED):
            began = _latest(started_at, _earliest(*(first_jobs.get(job) for job in later)))
            since = _waiting_since(group, pods, began, lost_at)
            yield GangStatus(reason, since, _latest(*(pod.bound_at for pod in pods)))


def _gangs_placed(
    owner: OwnerObject, gangs: Iterable[GangStatus], scheduled: Condition
) -> GangsPlaced | None:
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


def _started_at(owner: OwnerObject, runner: OwnerObject | None) -> datetime | None:
    resumed = (turned_at(one.status.conditions, "Suspended", "False") for one in (owner, runner or owner))
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
