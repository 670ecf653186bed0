"""patch_pods: Muster's scheduling gate is removed from the pods of a group that exists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from muster.objects.meta import ObjectRef
from muster.objects.pods import Pod, to_run
from muster.objects.resources import SchedulingApi
from muster.objects.scheduling import AnyGroup, PodGroup
from muster.objects.text import counted
from muster.policy.group_labels import GATE, GATED, is_gathered
from muster.policy.groups.gate_release import held_groups, root_of, was_placed
from muster.policy.groups.gathered import why_held
from muster.policy.model import Action, Decision, NoOp, PatchType, Plan, Reply, Verb
from muster.policy.owners import kind_of
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnerGroups
from muster.policy.tree.members import LiveMembers


@dataclass(frozen=True)
class PodInputs:
    """The inputs of patch_pods.

    Attributes:
        subject: the PodGroup, CompositePodGroup or pod that the event was about.
        api: the versions of scheduling.k8s.io that the API server serves.
        pods: the pods of the groups; with the owner, all its pods.
        groups: the PodGroup, or all PodGroups that are placed together with it; empty if there is none.
        tree: the owner with all its groups and Jobs; None if `needs_owner` says that it does not matter.
        awaited: the PodGroup that the event gave and that does not exist; then nothing else was read.
    """

    subject: ObjectRef
    api: SchedulingApi
    pods: tuple[Pod, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    tree: OwnerGroups | None = None
    awaited: str = ""


def plan_pods(inputs: PodInputs, now: datetime) -> Decision:  # noqa: ARG001 - every plan takes the time
    """Remove the gates of all free pods at once, since one gated pod holds back its whole group or tree."""
    if inputs.awaited:
        return NoOp(Reason.WAITING_FOR_POD_GROUP, f"PodGroup {inputs.awaited} does not exist yet")
    gated, served = gated_pods(inputs.pods), inputs.api.served
    without_group = [pod for pod in gated if not (pod.pod_group_name and served)]
    grouped = _plan_grouped(inputs, [pod for pod in gated if pod.pod_group_name and served])
    if not without_group:
        return grouped
    message = f"{counted(len(without_group), 'pod')} without a group: the scheduling API is or was off"
    plan = Plan(Reason.API_NOT_SERVED, message, tuple(map(remove_gate, without_group)))
    if isinstance(grouped, NoOp):
        return plan
    actions = (*grouped.actions, *plan.actions)
    return replace(grouped, reason=plan.reason, message=f"{grouped.message}; {message}", actions=actions)


def needs_owner(group: PodGroup, pods: tuple[Pod, ...]) -> bool:
    """Whether plan_pods needs the owner: for gated pods of a gang placed before, or of a group in a tree."""
    return bool(gated_pods(pods)) and (was_placed(group) or group.spec.parent != "")


def gated_pods(pods: tuple[Pod, ...]) -> list[Pod]:
    """Return the pods that are to run and have Muster's gate."""
    return [pod for pod in pods if GATE in pod.gates and to_run(pod)]


def remove_gate(pod: Pod) -> Action:
    """Remove Muster's gate from a pod, and no other, with the label that makes its source send events of it.

    A strategic merge patch that deletes the list entry by name: server-side apply cannot remove a gate, merge
    and JSON patches change those of others. The UID is a precondition: for another pod of that name it is
    refused (422). There is no resourceVersion, so that it never conflicts with other writers.
    """
    body = {
        "metadata": {"uid": pod.metadata.uid, "labels": {GATED: None}},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]},
    }
    return Action(Verb.PATCH, pod.ref, body, patch=PatchType.STRATEGIC)


def _plan_grouped(inputs: PodInputs, gated: list[Pod]) -> Decision:
    subject = inputs.subject
    if not (inputs.groups or inputs.pods or kind_of(subject)):
        return NoOp(Reason.DELETED, f"{subject} does not exist, or has another UID")
    names = {group.metadata.name for group in inputs.groups}
    if names:  # with the owner, the pods of all its groups were read
        gated = [pod for pod in gated if pod.pod_group_name in names]
    if not gated:
        return NoOp(Reason.UP_TO_DATE, f"{subject}: no pod has Muster's gate")
    if not names:
        return NoOp(Reason.WAITING_FOR_POD_GROUP, f"PodGroup {gated[0].pod_group_name} does not exist yet")
    if is_gathered(inputs.groups[0].metadata.labels) and (kept := why_held(inputs.groups[0], inputs.pods)):
        return kept
    top = root_of(inputs.tree.members if inputs.tree else LiveMembers(), inputs.groups[0])
    held = held_groups(inputs.groups, inputs.tree)
    free = [pod for pod in gated if pod.pod_group_name not in held]
    return _remove_gates(free, top) if free else held[gated[0].pod_group_name]


def _remove_gates(free: list[Pod], top: AnyGroup) -> Plan:
    owner, reply = top.metadata.controller, None
    if owner is not None:
        data = {"podGroup": top.metadata.name, "pods": len(free)}
        reply = Reply("lifted", owner.ref_in(top.metadata.namespace), data)
    message = f"{counted(len(free), 'pod')} of {top.ref}"
    return Plan(Reason.GATES_LIFTED, message, tuple(map(remove_gate, free)), reply)
