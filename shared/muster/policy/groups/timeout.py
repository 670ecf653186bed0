"""Gangs that wait for room longer than their policy allows (`schedulingTimeoutSeconds`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from muster.objects.pods import Pod
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import is_musters
from muster.policy.groups.manifests import FALLBACK
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.members import LiveMembers


@dataclass(frozen=True)
class SchedulingTimeout:
    """The gangs of an owner that have waited too long.

    Attributes:
        groups: the names of their PodGroups.
        limit: the time that the policy allows, in seconds.
        then: what the policy asks for: `Report`, `Basic` or `Suspend`.
    """

    groups: frozenset[str]
    limit: int
    then: str

    def __str__(self) -> str:
        return f"{', '.join(sorted(self.groups))} waited for room for more than {self.limit} s"


def scheduling_timeout(
    resolved: ResolvedOwner, members: LiveMembers, now: datetime
) -> SchedulingTimeout | None:
    """Return the gangs of an owner that have waited too long, or None.

    The times are those that the scheduler and the API server wrote, so a function that was down loses none.
    """
    policy = resolved.policy.workload
    if policy is None or policy.scheduling_timeout_seconds is None or resolved.own is not None:
        return None
    limit = timedelta(seconds=policy.scheduling_timeout_seconds)
    pods: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in members.staying:
        pods[pod.pod_group_name].append(pod)
    waiting = {
        group.metadata.name: _waiting_since(group, pods[group.metadata.name]) for group in members.groups
    }
    given_up = groups_given_up(members.groups)
    late = frozenset(
        name
        for name, since in waiting.items()
        if since is not None and now - since >= limit and name not in given_up
    )
    return SchedulingTimeout(late, policy.scheduling_timeout_seconds, policy.on_timeout) if late else None


def groups_given_up(groups: Iterable[PodGroup]) -> frozenset[str]:
    """Return the names of PodGroups given up after their timeout: their pods are scheduled one by one."""
    beginning = f"{Reason.SCHEDULING_TIMED_OUT}: "
    return frozenset(
        group.metadata.name
        for group in groups
        if group.metadata.annotations.get(FALLBACK, "").startswith(beginning)
    )


def _waiting_since(group: PodGroup, staying: list[Pod]) -> datetime | None:
    """When a gang of Muster's began to wait for room; None if it does not.

    Before its first placement that is when the scheduler first refused it, so the time behind gates does not
    count. The refusal is not repeated for pods of a restarted or resumed owner; their creation counts.
    """
    policy = group.spec.scheduling_policy
    if not is_musters(group.metadata.labels) or group.being_deleted:
        return None
    if policy.gang is None or len(staying) < policy.min_count:
        return None
    if any(pod.bound or pod.gates for pod in staying):
        return None
    created = [pod.metadata.created_at for pod in staying if pod.metadata.created_at is not None]
    if group.refused_at is not None and all(group.refused_at < time for time in created):
        return max(created, default=group.refused_at)
    return group.refused_at or max(created, default=None)
