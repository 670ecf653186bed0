"""The status of one PodGroup of an owner, from its pods and the scheduler's conditions."""

from __future__ import annotations

from dataclasses import dataclass

from muster.objects.meta import find_condition
from muster.objects.pods import Pod
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import GATE
from muster.policy.reasons import Reason

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


@dataclass(frozen=True)
class GroupStatus:
    """The status of one PodGroup of an owner."""

    reason: Reason
    message: str


def status_of(name: str, group: PodGroup | None, pods: list[Pod], needed: int) -> GroupStatus:
    """The status of a group.

    Args:
        name: the name of the PodGroup.
        group: the PodGroup; None if it does not exist.
        pods: pods stamped with the name.
        needed: pods that are still to run at once.
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
        others = ", ".join(sorted(gates - {GATE})) or "Muster's, about to be removed"
        return GroupStatus(Reason.SCHEDULING_GATED, f"{counts}; scheduling gates: {others}")
    if len(live) < max(needed, 0 if group.placed else group.spec.scheduling_policy.min_count):
        return GroupStatus(Reason.WAITING_FOR_PODS, f"{counts}; {len(live)} exist")
    refused = next(filter(None, map(refusal_of_pod, live)), None)
    if refused is not None and not _is_binding(group, live, bound):
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
    causes = sorted({str(target["message"]) for target in targets if target and target.get("message")})
    if not (counted or causes):
        return None
    exist = "; ".join([f"{len(live)} exist", *causes])
    return GroupStatus(Reason.MEMBERS_LOST, f"{_counts(group.metadata.name, live, bound, needed)}; {exist}")


def _live(pods: list[Pod]) -> tuple[list[Pod], int]:
    live = [pod for pod in pods if not (pod.finished or pod.being_deleted)]
    return live, sum(pod.bound for pod in live)


def _counts(name: str, live: list[Pod], bound: int, needed: int) -> str:
    return f"{name}: {bound} of {max(needed, len(live))} pods bound"


def _is_binding(group: PodGroup, live: list[Pod], bound: int) -> bool:
    """Whether the scheduler placed the gang after it refused its pods, and has not bound all of them yet.

    It writes PodScheduled of each pod as it binds the pod; until then the pod has the refusal of before.
    """
    refused_at = [pod.refused_at for pod in live if not pod.bound]
    progress = [at for at in (group.placed_at, *(pod.bound_at for pod in live)) if at is not None]
    fewer_than_placed = bound < group.spec.scheduling_policy.min_count
    return (
        fewer_than_placed and bool(progress) and all(at is None or at <= max(progress) for at in refused_at)
    )


def refusal_of_pod(pod: Pod) -> tuple[Reason, str] | None:
    """The scheduler's refusal of a pod, because after a restart the group itself keeps its old condition."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if pod.bound or condition is None or condition.get("status") == "True":
        return None
    known = {str(reason): reason for reason in (Reason.SCHEDULER_ERROR, Reason.UNSCHEDULABLE)}
    reason = known.get(condition.get("reason", ""))
    return None if reason is None else (reason, condition.get("message", ""))
