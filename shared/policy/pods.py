"""patch_pods: lifting Muster's gate from the pods of a group that exists."""

from __future__ import annotations

from datetime import datetime

from shared.objects.jobs import Pod
from shared.objects.meta import ObjectRef
from shared.objects.patches import PatchType
from shared.objects.scheduling import PodGroup
from shared.policy.marks import GATE
from shared.policy.model import Action, Decision, Nothing, Observed, Plan, Reply, Verb
from shared.policy.ownership import consider
from shared.policy.reasons import Reason
from shared.policy.resize import follows, wanted_sizes


def plan_pods(observed: Observed, now: datetime) -> Decision:  # noqa: ARG001 - every plan takes the time
    """The gates to lift: all of a group at once, since one gated pod holds back every pending one of it."""
    held = _held(observed.pods)
    stranded = [pod for pod in held if not (pod.pod_group_name and observed.scheduling.served)]
    if stranded:
        message = (
            f"{len(stranded)} pods run without a group: the scheduling API is off, or was at their birth"
        )
        return Plan(Reason.API_NOT_SERVED, message, tuple(map(lift_gate, stranded)))
    group = next(iter(observed.groups), None)
    if group is None and not observed.pods:
        return Nothing(Reason.OBJECT_GONE, f"{observed.subject} does not exist, or another one has its name")
    if group is not None:  # for a gang placed before, the pods of all its owner's groups were read
        held = [pod for pod in held if pod.pod_group_name == group.metadata.name]
    if not held:
        return Nothing(Reason.UP_TO_DATE, f"{observed.subject}: no pod has Muster's gate")
    if group is None:
        return Nothing(Reason.AWAITING_POD_GROUP, f"PodGroup {held[0].pod_group_name} does not exist yet")
    wait = _must_wait(observed, group) if _was_placed_gang(group) else None
    return wait or _lift(held, group)


def needs_owner(groups: tuple[PodGroup, ...], pods: tuple[Pod, ...]) -> bool:
    """Whether plan_pods has to know the owner and its Jobs: held pods of a gang that was placed before."""
    return bool(_held(pods)) and any(map(_was_placed_gang, groups))


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


def _was_placed_gang(group: PodGroup) -> bool:
    return group.placed and group.spec.scheduling_policy.gang is not None


def _must_wait(observed: Observed, group: PodGroup) -> Nothing | None:
    """Whether new pods of a gang that was placed before would be placed a few at a time.

    The scheduler counts terminating members, and minCount may have been lowered, so the gate stays until
    minCount is what the live Jobs need and that many members exist. Where minCount never follows the pods,
    only members are waited for.
    """
    considered = consider(observed)
    if isinstance(considered, Nothing) or considered.flaw:
        return None  # nobody resizes this group: nothing to wait for
    minimum = group.spec.scheduling_policy.min_count
    wanted = wanted_sizes(observed, considered).get(group.metadata.name, minimum)
    if wanted != minimum and follows(observed, considered):
        return Nothing(Reason.AWAITING_RESIZE, f"{group.ref} has minCount {minimum}, its Jobs need {wanted}")
    members = [pod for pod in observed.pods if pod.pod_group_name == group.metadata.name and _alive(pod)]
    if len(members) < minimum:
        return Nothing(Reason.AWAITING_MEMBERS, f"{group.ref}: {len(members)} of {minimum} pods exist")
    return None


def _lift(held: list[Pod], group: PodGroup) -> Plan:
    owner = group.metadata.controller
    data = {"podGroup": group.metadata.name, "pods": len(held)}
    namespace = group.metadata.namespace
    reply = None
    if owner is not None:
        reply = Reply(
            "lifted", ObjectRef(owner.api_version, owner.kind, namespace, owner.name, owner.uid), data
        )
    message = f"{len(held)} pods of {group.ref}"
    return Plan(Reason.GATES_LIFTED, message, tuple(map(lift_gate, held)), reply)


def _held(pods: tuple[Pod, ...]) -> list[Pod]:
    return [pod for pod in pods if GATE in pod.gates and _alive(pod)]


def _alive(pod: Pod) -> bool:
    return not (pod.finished or pod.being_deleted)
