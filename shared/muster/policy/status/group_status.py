"""The status of each PodGroup of an owner, from its pods and the scheduler's conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from muster.objects.meta import find_condition
from muster.objects.pods import Pod, to_run
from muster.objects.scheduling import PodGroup
from muster.objects.text import counted
from muster.policy.group_labels import GATE
from muster.policy.groups.gate_release import held_groups
from muster.policy.groups.gathered import whole_size, why_held
from muster.policy.groups.wanted_groups import pods_to_run
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnerGroups, ResolvedOwner
from muster.policy.status.conditions import MESSAGE_LIMIT
from muster.policy.tree.members import LiveMembers, by_group

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
"""How long the binding of placed pods usually takes at most."""

_FIT = re.compile(r"minCount \((\d+)\) cannot be satisfied: (\d+) scheduled")
_NO_NODE = re.compile(r"0/(\d+) nodes are available: (.+?)\.(?: |$)")


@dataclass(frozen=True)
class GroupStatus:
    """The status of one PodGroup of an owner."""

    reason: Reason
    message: str


@dataclass(frozen=True)
class _GroupPods:
    """A PodGroup and its pods."""

    name: str
    group: PodGroup | None
    pods: list[Pod]
    needed: int

    @cached_property
    def live(self) -> list[Pod]:
        """The pods that are to run."""
        return [pod for pod in self.pods if to_run(pod)]

    @cached_property
    def bound(self) -> int:
        """The number of live pods that have a node."""
        return sum(pod.bound for pod in self.live)

    @property
    def refusal(self) -> GroupStatus | None:
        """The scheduler's refusal of the first live pod that has one."""
        return next(filter(None, map(refusal_of_pod, self.live)), None)

    def __str__(self) -> str:
        return f"{self.name}: {self.bound} of {counted(max(self.needed, len(self.live)), 'pod')} bound"


def group_statuses(resolved: ResolvedOwner, members: LiveMembers) -> dict[str, GroupStatus]:
    """Return the status of every PodGroup that an owner should have, by name."""
    fixed_in = "" if resolved.api.resizable else resolved.api.version
    gated = any(GATE in pod.gates for pod in members.pods)
    held = held_groups(members.groups, OwnerGroups(resolved, members)) if gated else {}
    job_lost_pods = any(job.lost_pods for job in members.jobs)
    pods = by_group(members.pods)
    statuses: dict[str, GroupStatus] = {}
    for name, count in pods_to_run(resolved, members).items():
        group = _GroupPods(name, members.group_named.get(name), pods[name], count)
        statuses[name] = (
            (_too_few_pods(group, fixed_in) if fixed_in else None)
            or _lost_members(group, job_lost_pods=job_lost_pods)
            or _bound(group)
            or _status(group, held.get(name), suspended=resolved.suspended)
        )
    return statuses


def status_of_gathered(group: PodGroup, pods: Iterable[Pod]) -> GroupStatus:
    """Return the status of a PodGroup that gather_pods made, from the pods that name it."""
    members = _GroupPods(group.metadata.name, group, list(pods), whole_size(group))
    held = why_held(group, members.pods)
    if held is not None:
        return GroupStatus(
            Reason(held.reason), f"{members.name}: {held.message.partition(': ')[2] or held.message}"
        )
    return _bound(members) or _status(members, None, suspended=False)


def placed_gang(group: PodGroup) -> GroupStatus:
    """Return the status of a placed gang that needs all its pods."""
    count = group.spec.scheduling_policy.min_count
    return GroupStatus(Reason.SCHEDULED, f"{group.metadata.name}: {counted(count, 'pod')} placed")


def groups_bound_alone(members: LiveMembers, now: datetime) -> set[str]:
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


def with_shortfall(refusal: str, pods: Iterable[Pod]) -> str:
    """Return a refusal of a group after what its pods lack, as far as the refusals tell it.

    The scheduler (v1.37.1, schedule_one_podgroup.go) tries one pod after another, up to the one without which
    minCount is out of reach. A pod that fits nowhere has a refusal of its own (FitError), the others have the
    group's. Without one of its own none was tried, and the figure would say nothing.
    """
    refusals = [refusal, *(one.message for one in map(refusal_of_pod, pods) if one)]
    lacks = next(filter(None, map(_lacks, refusals)), "")
    fit = next(filter(None, map(_FIT.search, refusals)), None)
    if not lacks:
        return refusal
    if fit is None or fit[1] == "1":
        return f"a pod {lacks}; {refusal}"
    racks = re.search("0/([2-9]|[0-9]{2,}) placements", fit.string)
    place = f" in the first of {racks[1]} placements" if racks else ""
    return f"{fit[2]} of {fit[1]} pods would fit{place}; the next {lacks}; {refusal}"


def _lacks(refusal: str) -> str:
    """Return `lacks cpu on 3 of 3 nodes`, or all reasons where others are among them; "" if it has none."""
    nodes = _NO_NODE.match(refusal)
    if nodes is None:
        return ""
    found = [re.fullmatch(r"(\d+) Insufficient (\S+)", reason) for reason in nodes[2].split(", ")]
    every = counted(int(nodes[1]), "node")
    if None in found:
        return f"fits on none of {every}: {nodes[2]}"
    return "lacks " + " and ".join(f"{one[2]} on {one[1]} of {every}" for one in found if one)


def refusal_of_pod(pod: Pod) -> GroupStatus | None:
    """Return the scheduler's refusal of a pod: after a restart its group keeps its old condition."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if pod.bound or condition is None or condition.get("status") == "True":
        return None
    known = {str(reason): reason for reason in (Reason.SCHEDULER_ERROR, Reason.UNSCHEDULABLE)}
    reason = known.get(condition.get("reason", ""))
    return None if reason is None else GroupStatus(reason, condition.get("message", ""))


def _status(pods: _GroupPods, held: NoOp | None, *, suspended: bool) -> GroupStatus:
    """Return the status of a group whose pods are all there, or still to come."""
    group, live = pods.group, pods.live
    if group is None:
        when = "is made when its suspended owner is resumed" if suspended else "does not exist yet"
        return GroupStatus(Reason.WAITING_FOR_POD_GROUP, f"{pods.name}: the PodGroup {when}")
    if not live and pods.needed <= 0:
        return GroupStatus(Reason.SCHEDULED, f"{pods.name}: no pod is left to run")
    if group.refusal is not None and not pods.bound:
        error = group.refusal[0] == Reason.SCHEDULER_ERROR
        reason = Reason.SCHEDULER_ERROR if error else Reason.UNSCHEDULABLE
        return GroupStatus(reason, f"{pods}; {with_shortfall(group.refusal[1] or group.refusal[0], live)}")
    gates = {gate for pod in live for gate in pod.gates}
    if gates:
        musters = f"Muster's, kept: {held.message}" if held else "Muster's, about to be removed"
        others = ", ".join(sorted(gates - {GATE}))
        return GroupStatus(Reason.SCHEDULING_GATED, f"{pods}; scheduling gates: {others or musters}")
    if len(live) < max(pods.needed, 0 if group.placed else group.spec.scheduling_policy.min_count):
        return GroupStatus(Reason.WAITING_FOR_PODS, f"{pods}; {len(live)} exist")
    refused = pods.refusal
    if refused is not None and not _placed_after_refusals(group, pods):
        return GroupStatus(refused.reason, f"{pods}; {with_shortfall(refused.message, live)}")
    if not (group.placed and all(pod.bound or _is_being_bound(pod, group) for pod in live)):
        return GroupStatus(Reason.WAITING_FOR_SCHEDULER, str(pods))
    return _scheduled(pods, group)


def _is_being_bound(pod: Pod, group: PodGroup) -> bool:
    """Whether a pod existed when its group was placed, so that the scheduler is binding it."""
    created, placed = pod.metadata.created_at, group.placed_at
    return created is not None and placed is not None and created <= placed


def _bound(pods: _GroupPods) -> GroupStatus | None:
    """Scheduled for a placed gang with as many bound pods as it needs, else None; the rest may wait."""
    group = pods.group
    if group is None or not group.placed:
        return None
    return _scheduled(pods, group) if 0 < group.spec.scheduling_policy.min_count <= pods.bound else None


def _scheduled(pods: _GroupPods, group: PodGroup) -> GroupStatus:
    minimum, members = group.spec.scheduling_policy.min_count, max(pods.needed, len(pods.live))
    if minimum == members:
        return placed_gang(group)
    rest = f", {minimum} needed" if 0 < minimum < members else ""
    waits = f"; {pods.refusal.message}" if rest and pods.refusal else ""
    return GroupStatus(Reason.SCHEDULED, f"{pods}{rest}{waits}")


def _too_few_pods(pods: _GroupPods, version: str) -> GroupStatus | None:
    """GangSizeFixed for a gang with fewer pods left to run than its immutable minCount, else None."""
    minimum = pods.group.spec.scheduling_policy.min_count if pods.group else 0
    if not pods.bound < pods.needed < minimum:
        return None
    cause = f"minCount {minimum} is immutable in {version}, {counted(pods.needed, 'pod')} left to run"
    return GroupStatus(Reason.GANG_SIZE_FIXED, f"{pods}; {cause}: create the job again")


def _lost_members(pods: _GroupPods, *, job_lost_pods: bool) -> GroupStatus | None:
    """MembersLost for a placed gang with fewer pods than its minCount, else None.

    A restart or a suspension by its owner is none: there no Job counts a lost pod, and no pod was evicted.
    """
    group, live = pods.group, pods.live
    if group is None or not group.placed:
        return None
    if len(live) >= min(pods.needed, group.spec.scheduling_policy.min_count):
        return None
    gone = (pod for pod in pods.pods if not to_run(pod))
    targets = (find_condition(pod.status.conditions, "DisruptionTarget") for pod in gone)
    messages = (str(target["message"]) for target in targets if target and target.get("message"))
    causes = sorted({message[:MESSAGE_LIMIT] for message in messages})
    if not (job_lost_pods or causes):
        return None
    return GroupStatus(Reason.MEMBERS_LOST, "; ".join([str(pods), f"{len(live)} exist", *causes]))


def _placed_after_refusals(group: PodGroup, pods: _GroupPods) -> bool:
    """Whether the scheduler is still binding a gang whose pods it refused before it placed the gang.

    It writes PodScheduled of each pod as it binds the pod; until then the pod has the refusal of before.
    """
    refused_at = [pod.refused_at for pod in pods.live if not pod.bound]
    progress = [at for at in (group.placed_at, *(pod.bound_at for pod in pods.live)) if at is not None]
    fewer_than_placed = pods.bound < group.spec.scheduling_policy.min_count
    return (
        fewer_than_placed and bool(progress) and all(at is None or at <= max(progress) for at in refused_at)
    )
