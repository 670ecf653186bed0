"""The status of an owner: PodGroupsReady, PodGroupsScheduled and its gangs, from its groups and pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from muster.objects.scheduling import CompositePodGroup, PodGroup
from muster.objects.versions import GATES_OF_THE_SCHEDULER
from muster.policy.group_labels import belongs_to, is_musters
from muster.policy.groups.manifests import FALLBACK
from muster.policy.groups.wanted_groups import (
    child_groups,
    existing_groups,
    only_flags,
    scheduling_timeout,
    wanted_counts,
    wanted_groups,
)
from muster.policy.model import GroupingFailure
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.status.conditions import READY, SCHEDULED, Condition
from muster.policy.status.gangs import GangStatus, gang_statuses
from muster.policy.status.group_status import WORST_FIRST, GroupStatus, group_statuses, groups_bound_alone
from muster.policy.tree.members import LiveMembers

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
    reasons = {name: group.reason for name, group in groups.items()}
    for name, reason in reasons.items():
        if timeout is not None and name in timeout.groups:
            reasons[name] = Reason.SCHEDULING_TIMED_OUT
        elif name in bound_alone and reason == Reason.WAITING_FOR_SCHEDULER:
            reasons[name] = Reason.GROUPS_IGNORED
    gangs = tuple(gang_statuses(resolved, members, reasons))
    return GroupingStatus(_ready(resolved, members, tuple(groups)), scheduled, gangs)


def not_ready(failure: GroupingFailure) -> Condition:
    """Return the condition PodGroupsReady of an owner whose groups cannot be made."""
    return Condition(READY, true=False, reason=failure.reason, message=failure.message)


def _dropped_settings(resolved: ResolvedOwner) -> str:
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
    done = f"{len(groups) - len(waiting)} of {len(groups)} groups scheduled"
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
        {group.metadata.name for group in groups} for groups in (members.groups, members.composites)
    )
    wanted_composites = tuple(resolved.composite_names())
    missing = [name for name in wanted_composites if name not in composites]
    missing += [name for name in wanted if name not in existing]
    total = len(wanted) + len(wanted_composites)
    exist = f"{total - len(missing)} of {total} PodGroups exist"
    if missing:
        message = f"{exist}; missing: {', '.join(missing)}"
        return Condition(READY, true=False, reason=Reason.WAITING_FOR_POD_GROUP, message=message)
    foreign, never_placed = _foreign_groups(resolved, members)
    if never_placed:
        message = "; ".join([foreign, *never_placed])
        return Condition(READY, true=False, reason=Reason.NOT_MUSTERS, message=message)
    notes: list[_Note] = [(None, foreign)] if foreign else []
    notes += _wrong_sizes(resolved, members)
    dropped = _dropped_settings(resolved)
    if dropped:
        notes.append((Reason.FIELDS_DROPPED, f"dropped by the API server: {dropped}"))
    reason = next((reason for reason, _ in notes if reason), Reason.POD_GROUPS_EXIST)
    message = "; ".join([exist, *(text for _, text in notes)])
    return Condition(READY, true=True, reason=reason, message=message)


def _fallback_failure(
    resolved: ResolvedOwner, members: LiveMembers, wanted: tuple[str, ...]
) -> GroupingFailure | None:
    """Return why an owner has fallback PodGroups, also under other names that its pods have; else None."""
    existing = {group.metadata.name: group for group in members.groups}
    named = {pod.pod_group_name for pod in members.pods if not (pod.finished or pod.being_deleted)}
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
    """Return, as text, the owner's groups that Muster did not create, and those that are never placed.

    A group that a user created under the stamped name is adopted: its pods are placed as it says (KEP-5547).
    """
    workload = resolved.own or resolved.live.workload
    if workload is None:
        return "", []
    existing, wanted = existing_groups(members), tuple(wanted_groups(resolved, workload))
    children = child_groups(wanted, existing)
    names: dict[str, list[str]] = {}
    never_placed = []
    for one in wanted:
        group = existing.get(one.key)
        if group is None or belongs_to(group.metadata.labels, resolved.root.uid):
            continue
        names.setdefault(f"{group.kind}s", []).append(one.name)
        most = children[one.name] if one.composite else one.pods
        minimum = group.spec.scheduling_policy.needs
        if minimum > max(most, 1):
            never_placed.append(
                f"{one.name} has {group.minimum_field} {minimum} and {most} {group.member_kind}"
            )
    named = "; ".join(f"{kind} {', '.join(of_kind)}" for kind, of_kind in names.items())
    return f"not created by Muster for {resolved.root}: {named}" if named else "", never_placed


def _wrong_sizes(resolved: ResolvedOwner, members: LiveMembers) -> Iterator[_Note]:
    """Yield a note about the groups whose minCount or minGroupCount does not follow their pods.

    Where minCount is immutable only growth is reported: a gang shrinks as its members finish.
    """
    flagged = only_flags(resolved)
    if resolved.own is not None or (resolved.api.resizable and not flagged):
        return
    wanted = wanted_counts(resolved, members)
    groups: tuple[PodGroup | CompositePodGroup, ...] = (*members.composites, *members.groups)
    differing = []
    for group in groups:
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
