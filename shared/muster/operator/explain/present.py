"""The current reasons why an owner's groups and pods wait, for `muster explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from muster.cluster.interface import Cluster
from muster.cluster.observe.members import failed_create, pods_of, read_members
from muster.objects.meta import find_condition
from muster.objects.pods import Pod
from muster.policy.group_labels import GATE
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.status.conditions import Condition, condition_type
from muster.policy.status.owner_status import owner_status


@dataclass(frozen=True)
class Now:
    """One fact about the present.

    Attributes:
        about: the condition `PodGroupsReady` or `PodGroupsScheduled`, or `pods`.
        true: whether it is as wanted.
        reason: of the condition, or of the scheduler's answer about a pod; "" if there is none.
        since: when the condition got this reason, RFC 3339; "" if unknown.
        message: with names and numbers.
    """

    about: str
    true: bool
    reason: str
    since: str
    message: str


def groups_now(cluster: Cluster, live: LiveOwner, resolved: ResolvedOwner, now: datetime) -> Iterator[Now]:
    """Yield the conditions of an owner as emit_conditions would write them, if it has pods or groups.

    They are computed from its groups and pods, so they are right also where that function does not run.
    """
    members = read_members(cluster, live, resolved)
    if not (members.pods or members.groups):
        return
    missing = len(members.pods) < sum(job.spec.parallelism for job in members.jobs)
    events = failed_create(cluster, members.jobs) if missing else ""
    for condition in owner_status(resolved, members, events, now).conditions:
        since = _since(live, condition)
        yield Now(condition.type, condition.true, str(condition.reason), since, condition.message)


def pods_now(cluster: Cluster, live: LiveOwner) -> Iterator[Now]:
    """Yield how many pods of an owner that is not grouped have a node, and why the others have none."""
    pods = [pod for pod in pods_of(cluster, live) if not (pod.finished or pod.being_deleted)]
    if pods:
        yield Now("pods", all(pod.bound for pod in pods), *_why_unbound(pods))


def _since(live: LiveOwner, condition: Condition) -> str:
    """Return when the owner's condition got its present reason, if it was written."""
    if live.owner is None:
        return ""
    stored = find_condition(live.owner.status.conditions, condition_type(live.owner, condition.type)) or {}
    return str(stored.get("lastTransitionTime") or "") if stored.get("reason") == condition.reason else ""


def _why_unbound(pods: Sequence[Pod]) -> tuple[str, str, str]:
    """Return the reason, the time and the message of the first pod without a node."""
    unbound = [pod for pod in pods if not pod.bound]
    count = f"{len(pods) - len(unbound)} of {len(pods)} have a node"
    for pod in unbound:
        reason, since, message = pod_waits_for(pod)
        if reason:
            return reason, since, f"{count}; {pod.metadata.name}: {message}"
    return "", "", count


def pod_waits_for(pod: Pod) -> tuple[str, str, str]:
    """Return reason, time and message of what a pod without a node waits for; empty texts if unknown."""
    if pod.gates:
        others = sorted(pod.gates - {GATE})
        message = f"scheduling gates {', '.join(sorted(pod.gates))}"
        if others:
            message += f"; the controller of {others[0]} removes it"
        return "SchedulingGated", pod.metadata.creation_timestamp, message
    condition = find_condition(pod.status.conditions, "PodScheduled") or {}
    if condition.get("status") != "False":
        return "", "", ""
    return (
        str(condition.get("reason") or ""),
        str(condition.get("lastTransitionTime") or ""),
        " ".join(str(condition.get("message") or "").split()),
    )
