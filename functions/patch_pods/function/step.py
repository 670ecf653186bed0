"""A PodGroup appears, or a pod of it: the gate that made the pod wait is removed."""

from __future__ import annotations

from muster.cluster import execute, permissions, read, sweep
from muster.cluster.interface import Cluster
from muster.cluster.list_cache import Listing
from muster.cluster.members import pods_of_group, read_members
from muster.cluster.owner import read_owner
from muster.cluster.permissions import may
from muster.events.model import ResourceEvent
from muster.events.predicates import ADD, UPDATE, not_for_step
from muster.objects.meta import ObjectRef
from muster.objects.pods import Pod
from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import GATE
from muster.policy.model import NoOp
from muster.policy.plans.gate_release import OwnerGroups, in_tree, placed_together
from muster.policy.plans.patch_pods import PodInputs, needs_owner, plan_pods
from muster.policy.reasons import Reason
from muster.runtime.step import Step


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """PodGroup add and update; Pod add, with Muster's gate; CompositePodGroup add, where one was replaced."""
    foreign = not_for_step(event, PodGroup={ADD, UPDATE}, CompositePodGroup={ADD}, Pod={ADD})
    if foreign is not None or event.object is None:
        return foreign or event.ref
    if event.ref.kind == PODS.kind and GATE not in Pod.read(event.object).gates:
        return NoOp(Reason.UP_TO_DATE, f"{event.ref} does not have Muster's gate")
    if event.ref.kind == POD_GROUPS.kind and event.happened == UPDATE:
        group = PodGroup.read(event.object)
        if not (group.placed or in_tree(group)):
            return NoOp(Reason.UP_TO_DATE, f"{event.ref} was not placed before, so no pod waits for a resize")
    return event.ref


def observe(cluster: Cluster, subject: ObjectRef) -> PodInputs:
    """One PodGroup and its pods; all groups that are placed together, and their owner, where these matter."""
    if subject.kind == COMPOSITE_POD_GROUPS.kind:
        return _observe_composite(cluster, subject)
    group_ref = subject
    pods: tuple[Pod, ...] = ()
    if subject.kind == PODS.kind:
        pod = read.get(cluster, Pod, PODS, subject)
        pods = (pod,) if pod else ()
        name = pod.pod_group_name if pod and GATE in pod.gates else ""
        group_ref = ObjectRef(POD_GROUPS.api_version, POD_GROUPS.kind, subject.namespace, name)
    api = cluster.scheduling()
    group = read.get(cluster, PodGroup, POD_GROUPS, group_ref) if api.served and group_ref.name else None
    if group is None:
        return PodInputs(subject, api, pods)
    # All pods of a group that is new; else the one that is new, because each pod has an event of its own.
    pods = pods or pods_of_group(cluster, group)
    if not needs_owner(group, pods):
        return PodInputs(subject, api, pods, (group,))
    live, resolved = read_owner(cluster, group.ref)
    if live.owner is None:
        return PodInputs(subject, api, pods, (group,))
    members = read_members(cluster, live, resolved)
    together = placed_together(members, group)
    return PodInputs(subject, live.api, members.pods, together, OwnerGroups(resolved, members))


def _observe_composite(cluster: Cluster, subject: ObjectRef) -> PodInputs:
    live, resolved = read_owner(cluster, subject)
    members = read_members(cluster, live, resolved)
    names = {composite.metadata.name: composite for composite in members.composites}
    together = placed_together(members, names[subject.name]) if subject.name in names else ()
    return PodInputs(subject, live.api, members.pods, together, OwnerGroups(resolved, members))


STEP = Step(
    name="patch_pods",
    predicate=predicate,
    observe=observe,
    plan=plan_pods,
    execute=execute.each,
    responsible_for=sweep.gated_pods,
    lists=(sweep.WAITING_PODS, Listing(POD_GROUPS, PodGroup)),
    lists_tell_all=False,  # only the pods that wait are listed
    permissions=permissions.READ_OWNER | permissions.READ_COMPOSITES | may("get list patch", PODS),
)
