"""The scheduler has placed a PodGroup: it is labelled with the racks of its pods' nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from muster import (
    NODES,
    POD_GROUPS,
    PODS,
    Action,
    Cluster,
    Decision,
    Happened,
    NoOp,
    ObjectRef,
    PatchType,
    Plan,
    PodGroup,
    Reason,
    Reply,
    ResourceEvent,
    Step,
    Verb,
    get,
    in_order,
    may,
    not_for_step,
    objects_of,
    pods_of_group,
)

NODE_LABEL = "topology.kubernetes.io/rack"
PREFIX = "racks.example.com/"
"""The labels of a PodGroup: `racks.example.com/rack-1: "2"` for two pods on nodes of rack-1."""


@dataclass(frozen=True)
class Placement:
    """A PodGroup, and the number of its bound pods on each rack; "" for nodes without a rack."""

    group: PodGroup | None
    racks: Counter[str]


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """PodGroup update."""
    return not_for_step(event, PodGroup={Happened.UPDATE}) or event.ref


def observe(cluster: Cluster, subject: ObjectRef) -> Placement:
    """The live PodGroup, and the nodes of its pods."""
    group = get(cluster, PodGroup, POD_GROUPS, subject)
    pods = pods_of_group(cluster, group) if group else ()
    nodes = Counter(pod.spec.node_name for pod in pods if pod.bound)
    racks = Counter[str]()
    for name, count in nodes.items():
        node = cluster.get(NODES, name) or {"metadata": {}}
        racks[(node["metadata"].get("labels") or {}).get(NODE_LABEL, "")] += count
    return Placement(group, racks)


def plan(found: Placement, now: datetime) -> Decision:
    """The labels to set and to remove; the event comes again until the gang's pods are bound."""
    group, bound = found.group, found.racks.total()
    if group is None or group.being_deleted:
        return NoOp(Reason.DELETED)
    if not group.placed:
        return NoOp("NotPlaced")
    if bound < max(1, group.spec.scheduling_policy.min_count):
        return NoOp("AwaitingBindings", f"{bound} pods are bound", requeue=True)
    racks = {f"{PREFIX}{rack}": str(count) for rack, count in sorted(found.racks.items()) if rack}
    labels = {name: value for name, value in group.metadata.labels.items() if name.startswith(PREFIX)}
    if labels == racks:
        return NoOp(Reason.UP_TO_DATE)
    changes = dict.fromkeys(labels) | racks
    body = {"metadata": {"labels": changes, "resourceVersion": group.metadata.resource_version}}
    action = Action(Verb.PATCH, group.ref, body, patch=PatchType.MERGE)
    reply = Reply("labelled", group.ref, {"racks": racks})
    return Plan("RacksLabelled", f"{bound} pods on {len(racks)} racks", (action,), reply)


STEP = Step(
    name="label_racks",
    predicate=predicate,
    observe=observe,
    plan=plan,
    execute=in_order,
    swept=lambda cluster, namespace: objects_of(cluster, namespace, POD_GROUPS),
    permissions=may("get list patch", POD_GROUPS) | may("list", PODS) | may("get", NODES),
)
