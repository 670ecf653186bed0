"""A PodGroup appears or is resized, or a pod of it appears: the gate that made the pod wait is removed."""

from __future__ import annotations

from dataclasses import dataclass

from muster.cluster import execute, permissions, read
from muster.cluster.interface import FROM_CACHE, Cluster
from muster.cluster.observe import sweep
from muster.cluster.observe.members import pods_of_group, read_members
from muster.cluster.observe.owner import read_owner
from muster.cluster.permissions import may
from muster.events.parse import ResourceEvent, owner_of
from muster.events.predicates import ADD, not_for_step
from muster.objects.meta import ObjectRef
from muster.objects.pods import Pod
from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import GATE, GATED, is_gathered
from muster.policy.groups.gate_release import placed_together
from muster.policy.groups.gathered import names_its_gang
from muster.policy.model import NoOp, Reply
from muster.policy.owners import kind_of
from muster.policy.plans.patch_pods import PodInputs, needs_owner, plan_pods
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnerGroups
from muster.runtime.step import Step


@dataclass(frozen=True)
class AddedPod(ObjectRef):
    """A pod, with the name of the PodGroup that its event gave; "" if it gave none."""

    group: str = ""


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """Return the added PodGroup, CompositePodGroup or gated Pod; a NoOp for a pod without the gate.

    A change of minCount, for which pods of a placed group may wait, has a reply event of resize_gang.
    """
    skipped = not_for_step(event, PodGroup={ADD}, CompositePodGroup={ADD}, Pod={ADD})
    ref = event.ref
    if skipped is not None or event.object is None:
        return skipped or ref
    if ref.kind == PODS.kind:
        pod = Pod.read(event.object)
        if GATE not in pod.gates:
            return NoOp(Reason.UP_TO_DATE, f"{ref} does not have Muster's gate")
        if names_its_gang(pod):
            return NoOp(Reason.NOT_FOR_THIS_STEP, f"{ref}: gather_pods replies when its gang exists")
        return AddedPod(ref.api_version, ref.kind, ref.namespace, ref.name, ref.uid, pod.pod_group_name)
    if ref.kind == POD_GROUPS.kind and is_gathered(PodGroup.read(event.object).metadata.labels):
        return NoOp(Reason.NOT_FOR_THIS_STEP, f"{ref}: gather_pods replies when its pods exist")
    return ref


def added(event: ResourceEvent) -> Reply | None:
    """Return the reply to a new pod that names its gang itself: gather_pods looks at its PodGroup."""
    if event.object is None or not_for_step(event, Pod={ADD}) is not None:
        return None
    pod = Pod.read(event.object)
    group = ObjectRef(POD_GROUPS.api_version, POD_GROUPS.kind, event.ref.namespace, pod.pod_group_name)
    return Reply("added", group) if names_its_gang(pod) else None


def observe(cluster: Cluster, subject: ObjectRef) -> PodInputs:
    """Return a PodGroup and its pods or a pod and its PodGroup; if `needs_owner`, all groups of its tree."""
    if kind_of(subject) is not None:
        waiting = cluster.list(PODS, subject.namespace, labels=GATED, as_of=FROM_CACHE)
        return _observe_tree(cluster, subject) if waiting else PodInputs(subject, cluster.scheduling())
    if subject.kind == COMPOSITE_POD_GROUPS.kind:
        return _observe_tree(cluster, subject)
    if subject.kind == PODS.kind:
        return _observe_pod(cluster, subject)
    group = read.get(cluster, PodGroup, POD_GROUPS, subject) if cluster.scheduling().served else None
    if group is None:
        return PodInputs(subject, cluster.scheduling())
    return _observe_group(cluster, subject, group, pods_of_group(cluster, group, gated=True))


def _observe_pod(cluster: Cluster, subject: ObjectRef) -> PodInputs:
    """Return a pod and its PodGroup; each gated pod has an event of its own."""
    api = cluster.scheduling()
    named = subject.group if isinstance(subject, AddedPod) else ""
    group = _group_named(cluster, subject.namespace, named) if api.served else None
    if named and api.served and group is None:
        return PodInputs(subject, api, awaited=named)
    pod = read.get(cluster, Pod, PODS, subject)
    name = pod.pod_group_name if pod and GATE in pod.gates else ""
    if name != named and api.served:
        group = _group_named(cluster, subject.namespace, name)
    pods = (pod,) if pod else ()
    if not name or group is None:
        return PodInputs(subject, api, pods)
    return _observe_group(cluster, subject, group, pods)


def _group_named(cluster: Cluster, namespace: str, name: str) -> PodGroup | None:
    ref = ObjectRef(POD_GROUPS.api_version, POD_GROUPS.kind, namespace, name)
    return read.get(cluster, PodGroup, POD_GROUPS, ref) if name else None


def _observe_group(cluster: Cluster, subject: ObjectRef, group: PodGroup, pods: tuple[Pod, ...]) -> PodInputs:
    """Return a PodGroup with its pods; if `needs_owner`, with all groups that are placed together with it."""
    alone = PodInputs(subject, cluster.scheduling(), pods, (group,))
    if is_gathered(group.metadata.labels) or not needs_owner(group, pods):
        return alone
    live, resolved = read_owner(cluster, group.ref)
    if live.owner is None:
        return alone
    members = read_members(cluster, live, resolved)
    together = placed_together(members, group)
    return PodInputs(subject, live.api, members.pods, together, OwnerGroups(resolved, members))


def _observe_tree(cluster: Cluster, subject: ObjectRef) -> PodInputs:
    """Return the pods and PodGroups below a CompositePodGroup, or all of an owner."""
    live, resolved = read_owner(cluster, subject)
    members = read_members(cluster, live, resolved)
    together = members.groups
    if subject.kind == COMPOSITE_POD_GROUPS.kind:
        top = members.composite_named.get(subject.name)
        together = placed_together(members, top) if top else ()
    return PodInputs(subject, live.api, members.pods, together, OwnerGroups(resolved, members))


STEP = Step(
    name="patch_pods",
    predicate=predicate,
    observe=observe,
    plan=plan_pods,
    execute=execute.in_parallel,
    other_events=owner_of,
    passed_on=added,
    swept=sweep.gated_pods,
    lists=(sweep.Listing(POD_GROUPS),),
    permissions=permissions.READ_OWNER | permissions.READ_COMPOSITES | may("get list patch", PODS),
)
