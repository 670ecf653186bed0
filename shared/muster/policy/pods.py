"""patch_pods: lifting Muster's gate from the pods of a group that exists."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from muster.objects.jobs import Pod
from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.objects.scheduling import PodGroup
from muster.policy.marks import GATE
from muster.policy.model import Action, Decision, Nothing, Observed, Plan, Reply, Verb
from muster.policy.reasons import Reason
from muster.policy.waiting import in_tree, root_of, waits, was_placed


def plan_pods(observed: Observed, now: datetime) -> Decision:  # noqa: ARG001 - every plan takes the time
    """The gates to lift: all at once, since one gated pod holds back every pending one of its group or tree.

    Args:
        observed: one PodGroup, or all those of one tree; where they were placed before, their owner too.
        now: the time.
    """
    held, served = _held(observed.pods), observed.scheduling.served
    stranded = [pod for pod in held if not (pod.pod_group_name and served)]
    grouped = _plan_grouped(observed, [pod for pod in held if pod.pod_group_name and served])
    if not stranded:
        return grouped
    message = f"{len(stranded)} pods run without a group: the scheduling API is off, or was at their birth"
    plan = Plan(Reason.API_NOT_SERVED, message, tuple(map(lift_gate, stranded)))
    if isinstance(grouped, Nothing):
        return plan
    both = (*grouped.actions, *plan.actions)
    return replace(grouped, reason=plan.reason, message=f"{grouped.message}; {message}", actions=both)


def needs_owner(groups: tuple[PodGroup, ...], pods: tuple[Pod, ...]) -> bool:
    """Whether plan_pods has to know the owner: held pods of a gang placed before, or of a group in a tree."""
    return bool(_held(pods)) and any(was_placed(group) or in_tree(group) for group in groups)


def lift_gate(pod: Pod) -> Action:
    """The one request that removes our gate and nobody else's.

    A strategic merge patch that deletes the list entry by name: server-side apply cannot remove a gate, merge
    and JSON patches hit other people's. The UID is a precondition: of another pod of that name it is refused
    (422), and no resourceVersion, so that it never conflicts with those who write beside us.
    """
    body = {
        "metadata": {"uid": pod.metadata.uid},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]},
    }
    return Action(Verb.PATCH, pod.ref, body, patch=PatchType.STRATEGIC)


def _plan_grouped(observed: Observed, held: list[Pod]) -> Decision:
    if not (observed.groups or observed.pods):
        return Nothing(Reason.OBJECT_GONE, f"{observed.subject} does not exist, or another one has its name")
    names = {group.metadata.name for group in observed.groups}
    if names:  # with the owner, the pods of all its groups were read
        held = [pod for pod in held if pod.pod_group_name in names]
    if not held:
        return Nothing(Reason.UP_TO_DATE, f"{observed.subject}: no pod has Muster's gate")
    if not names:
        return Nothing(Reason.AWAITING_POD_GROUP, f"PodGroup {held[0].pod_group_name} does not exist yet")
    waiting = waits(observed)
    free = [pod for pod in held if pod.pod_group_name not in waiting]
    return _lift(free, observed) if free else waiting[held[0].pod_group_name]


def _lift(free: list[Pod], observed: Observed) -> Plan:
    whole = root_of(observed, observed.groups[0])
    owner, namespace = whole.metadata.controller, whole.metadata.namespace
    data = {"podGroup": whole.metadata.name, "pods": len(free)}
    reply = None
    if owner is not None:
        reply = Reply(
            "lifted", ObjectRef(owner.api_version, owner.kind, namespace, owner.name, owner.uid), data
        )
    message = f"{len(free)} pods of {whole.ref}"
    return Plan(Reason.GATES_LIFTED, message, tuple(map(lift_gate, free)), reply)


def _held(pods: tuple[Pod, ...]) -> list[Pod]:
    return [pod for pod in pods if GATE in pod.gates and _alive(pod)]


def _alive(pod: Pod) -> bool:
    return not (pod.finished or pod.being_deleted)
