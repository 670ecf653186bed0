"""The simulated scheduler: queue order, scheduling of group trees and single pods, and the resulting writes.

`tree` decides which trees are in the queue, `cycle` schedules a tree. A sync is level-triggered: it schedules
everything that fits, and writes a condition only if it differs from the stored condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from muster.cluster.interface import Object
from muster.objects.resources import COMPOSITE_POD_GROUPS, NODES, POD_GROUPS, PODS, Resource
from muster.simulator.controllers.fields import condition, is_deleting, key_of, node_of, with_condition
from muster.simulator.controllers.loop import Cache, Key, ReconcileRequest
from muster.simulator.controllers.scheduler.nodes import FitError, Nodes
from muster.simulator.controllers.scheduler.tree import (
    NO_VICTIMS,
    UNSCHEDULABLE,
    Attempt,
    GroupTree,
    Status,
    by_age,
    group_of,
    run_cycle,
    trees,
    uses_default_scheduler,
)
from muster.simulator.controllers.writes import SCHEDULER, Bind, RecordEvent, Result, Write, strategic_status

COMPONENT = "default-scheduler"
OLD_POD_GROUPS = replace(POD_GROUPS, version="v1alpha2")
"""The version that Kubernetes 1.36 serves; the controller uses the version that is served."""
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
CONDITIONS = {POD_GROUPS.api_version: INITIALLY_SCHEDULED, OLD_POD_GROUPS.api_version: "PodGroupScheduled"}
"""The condition of a scheduled PodGroup by API version; Kubernetes 1.37 renamed it."""
BATCH_SECONDS = 0.005
"""How long changes are collected, so that a burst of pods causes one sync."""
MAX_MESSAGE_LENGTH = 32768


class SchedulerController:
    """Binds pods; the pods of a gang together or not at all."""

    name = "scheduler"
    watches: tuple[Resource, ...] = (NODES, PODS, POD_GROUPS, OLD_POD_GROUPS, COMPOSITE_POD_GROUPS)

    def requests_for(self, _resource: Resource, _item: Object) -> Iterable[ReconcileRequest]:
        """Return the single key: any change can free resources or complete a group."""
        yield ReconcileRequest(("cluster",), BATCH_SECONDS)

    def reconcile(self, _key: Key, cache: Cache, now: float) -> Result:
        """Schedule all pending pods."""
        pods = cache.all(PODS)
        nodes = Nodes(cache.all(NODES), pods)
        writes: list[Write] = []
        groups = cache.all(POD_GROUPS) or cache.all(OLD_POD_GROUPS)
        for entity in entities(groups, cache.all(COMPOSITE_POD_GROUPS), pods):
            if isinstance(entity, GroupTree):
                writes += schedule_group(entity, nodes, now)
            else:
                writes += schedule_pod(entity, nodes, now)
        return Result(tuple(writes))


def entities(
    pod_groups: list[Object], composites: list[Object], pods: list[Object]
) -> list[GroupTree | Object]:
    """Return schedulable trees and ungrouped pods in queue order: by priority descending, then by age."""
    queue: list[tuple[tuple[int, tuple[str, str]], GroupTree | Object]] = []
    for root in trees(pod_groups, composites, pods):
        queued = [pod for leaf in root.leaves() for pod in leaf.queued()]
        if queued and root.has_quorum() and not root.has_gated_pod():
            queue.append(((-root.priority, min(map(by_age, queued))), root))
    for pod in pods:
        pending = not node_of(pod) and not is_deleting(pod) and not pod["spec"].get("schedulingGates")
        if pending and not group_of(pod) and uses_default_scheduler(pod):
            queue.append(((-(pod["spec"].get("priority") or 0), by_age(pod)), pod))
    return [entity for _, entity in sorted(queue, key=lambda entry: entry[0])]


def schedule_pod(pod: Object, nodes: Nodes, now: float) -> list[Write]:
    """Bind an ungrouped pod, or write why it is unschedulable."""
    node = nodes.fit(pod, nodes.names)
    if isinstance(node, FitError):
        return list(_rejection(pod, node.message, now))
    nodes.add_pod(pod, node)
    return list(_binding(pod, node))


def schedule_group(root: GroupTree, nodes: Nodes, now: float) -> list[Write]:
    """Run a scheduling cycle for a tree and return its writes; `nodes` keeps the scheduled pods."""
    whole = run_cycle(root, nodes)
    leaves = list(_leaves(whole, whole.status))
    writes: list[Write] = []
    for attempt in leaves:
        writes += _conditions(attempt, now, whole_tree_rejected=not whole.status.ok)
    for attempt in leaves:
        writes += [write for pod, node in attempt.assignments() for write in _binding(pod, node)]
    return writes


def _leaves(attempt: Attempt, status: Status) -> Iterator[Attempt]:
    """Yield the attempt of each PodGroup of a tree, also of those that the cycle did not try."""
    group = attempt.group
    if group.is_leaf:
        yield replace(attempt, status=status)
    tried = {key_of(child.group.item): child for child in attempt.children}
    for child in group.children:
        result = tried.get(key_of(child.item)) or Attempt(child, status)
        yield from _leaves(result, result.status if status.ok or not result.status.ok else status)


def _conditions(attempt: Attempt, now: float, *, whole_tree_rejected: bool) -> Iterator[Write]:
    """Yield the conditions of a PodGroup and of its pods that are not bound."""
    leaf, status = attempt.group, attempt.status
    full = f"{status.message}, {NO_VICTIMS}" if whole_tree_rejected else status.message
    if status.ok:
        yield from _group_condition(leaf, "True", "Scheduled", "", now)
    bound = {pod["metadata"]["uid"] for pod, _ in attempt.assignments()}
    for pod in leaf.queued():
        uid = pod["metadata"]["uid"]
        if uid not in bound:
            default = f"{UNSCHEDULABLE}, {full}" if uid in attempt.nodes else status.message
            yield from _rejection(pod, attempt.fit_errors.get(uid, default), now)
    if not status.ok:
        yield from _group_condition(leaf, "False", "Unschedulable", full, now)


def _group_condition(leaf: GroupTree, status: str, reason: str, message: str, now: float) -> Iterator[Write]:
    """Set the condition of a PodGroup unless it is set already; True never becomes False."""
    kind = CONDITIONS[leaf.item["apiVersion"]]
    old = condition((leaf.item.get("status") or {}).get("conditions"), kind)
    if old and (old["status"] == "True" or (old["reason"], old.get("message", "")) == (reason, message)):
        return
    new = {"type": kind, "status": status, "reason": reason, "message": message[:MAX_MESSAGE_LENGTH]}
    written = with_condition([old] if old else [], new, now)
    served = OLD_POD_GROUPS if leaf.item["apiVersion"] == OLD_POD_GROUPS.api_version else POD_GROUPS
    yield strategic_status(served, leaf.item, {"conditions": written}, SCHEDULER)


def _rejection(pod: Object, message: str, now: float) -> Iterator[Write]:
    """Set PodScheduled=False and record an Event, unless the condition is set already."""
    old = condition((pod.get("status") or {}).get("conditions"), "PodScheduled")
    if old and (old.get("reason"), old.get("message")) == ("Unschedulable", message):
        return
    new = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastProbeTime": None,
    }
    written = with_condition([old] if old else [], new, now)
    yield strategic_status(PODS, pod, {"conditions": written}, SCHEDULER)
    yield RecordEvent(pod, "Warning", "FailedScheduling", message, COMPONENT)


def _binding(pod: Object, node: str) -> Iterator[Write]:
    yield Bind(pod, node)
    namespace, name = key_of(pod)
    message = f"Successfully assigned {namespace}/{name} to {node}"
    yield RecordEvent(pod, "Normal", "Scheduled", message, COMPONENT)
