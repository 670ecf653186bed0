"""The simulated scheduler: groups as whole trees, ordinary pods one by one, and what it writes about them.

`scheduler_tree` says what may be tried at all, `scheduler_cycle` tries it. A look here is level-based:
whatever could be placed now is placed, and a verdict is written only where it differs from the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from muster.cluster.port import Object, PatchType
from muster.objects.resources import COMPOSITE_POD_GROUPS, NODES, POD_GROUPS, PODS, Resource
from muster.simulator.controllers.execute import SCHEDULER
from muster.simulator.controllers.fields import condition, is_deleting, key_of, node_of, timestamp
from muster.simulator.controllers.loop import Key, Wake
from muster.simulator.controllers.scheduler_cycle import (
    NO_VICTIMS,
    UNSCHEDULABLE,
    Attempt,
    Status,
    disagreement,
    run_cycle,
)
from muster.simulator.controllers.scheduler_nodes import Misfit, Nodes
from muster.simulator.controllers.scheduler_tree import Group, by_age, group_of, is_ours, trees
from muster.simulator.controllers.store import View
from muster.simulator.controllers.writes import Bind, Patch, Record, Result, Write

COMPONENT = "default-scheduler"
OLD_POD_GROUPS = replace(POD_GROUPS, version="v1alpha2")
"""What Kubernetes 1.36 serves; whichever of the two is served is used."""
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
CONDITIONS = {POD_GROUPS.api_version: INITIALLY_SCHEDULED, OLD_POD_GROUPS.api_version: "PodGroupScheduled"}
"""The condition of a group that was placed: 1.37 renamed it."""
BATCH_SECONDS = 0.005
"""Changes are collected this long, so that a burst of pods costs one look."""
LONGEST_MESSAGE = 32768


class SchedulerController:
    """Binds pods: those of a group together or not at all."""

    name = "scheduler"
    watches = (NODES, PODS, POD_GROUPS, OLD_POD_GROUPS, COMPOSITE_POD_GROUPS)

    def wakes(self, _resource: Resource, _item: Object) -> Iterable[Wake]:
        """Everything can make room or complete a group: one look at the whole."""
        yield Wake(("cluster",), BATCH_SECONDS)

    def reconcile(self, _key: Key, view: View, now: float) -> Result:
        """One look at all pods that wait."""
        pods = view.all(PODS)
        nodes = Nodes(view.all(NODES), pods)
        writes: list[Write] = []
        groups = view.all(POD_GROUPS) or view.all(OLD_POD_GROUPS)
        for entity in entities(groups, view.all(COMPOSITE_POD_GROUPS), pods):
            if isinstance(entity, Group):
                writes += schedule_group(entity, nodes, now)
            else:
                writes += schedule_pod(entity, nodes, now)
        return Result(tuple(writes))


def entities(pod_groups: list[Object], composites: list[Object], pods: list[Object]) -> list[Group | Object]:
    """What may be tried, in the order of the queue: higher priority first, then the older."""
    found: list[tuple[tuple[int, tuple[str, str]], Group | Object]] = []
    for root in trees(pod_groups, composites, pods):
        queued = [pod for leaf in root.leaves() for pod in leaf.queued()]
        if queued and root.has_quorum() and not root.is_held_back():
            found.append(((-root.priority, min(map(by_age, queued))), root))
    for pod in pods:
        waiting = not node_of(pod) and not is_deleting(pod) and not pod["spec"].get("schedulingGates")
        if waiting and not group_of(pod) and is_ours(pod):
            found.append(((-(pod["spec"].get("priority") or 0), by_age(pod)), pod))
    return [entity for _, entity in sorted(found, key=lambda entry: entry[0])]


def schedule_pod(pod: Object, nodes: Nodes, now: float) -> list[Write]:
    """Bind an ordinary pod or say why it fits nowhere."""
    found = nodes.fit(pod, nodes.names)
    if isinstance(found, Misfit):
        return list(_rejection(pod, "Unschedulable", found.message, now))
    nodes.take(pod, found)
    return list(_binding(pod, found))


def schedule_group(root: Group, nodes: Nodes, now: float) -> list[Write]:
    """Run a cycle for a tree and write its outcome; `nodes` keeps what was placed."""
    why = disagreement(root)
    if why:
        return [write for leaf in root.leaves() for write in _refused(leaf, why, now)]
    attempt = run_cycle(root, nodes)
    outcomes = list(_outcomes(attempt, attempt.status))
    rejected = not attempt.status.ok
    writes: list[Write] = []
    for outcome in outcomes:
        writes += _nominations(outcome)
    for outcome in outcomes:
        writes += outcome.verdict(now, whole_tree_rejected=rejected)
    for outcome in outcomes:
        writes += [write for pod, node in outcome.assignments for write in _binding(pod, node)]
    return writes


@dataclass(frozen=True)
class _Outcome:
    """What a cycle came to for one PodGroup.

    Attributes:
        leaf: the PodGroup.
        status: its own, or that of the failed parent that takes it along.
        assignments: its pods that are bound now.
        fitted: uids of pods that would have fitted.
        misfits: why single pods fit nowhere, by uid.
    """

    leaf: Group
    status: Status
    assignments: tuple[tuple[Object, str], ...]
    fitted: frozenset[str]
    misfits: dict[str, str]

    def verdict(self, now: float, *, whole_tree_rejected: bool) -> Iterator[Write]:
        """The group's condition and those of its pods that stay behind."""
        message = self.status.message
        full = f"{message}, {NO_VICTIMS}" if whole_tree_rejected else message
        if self.status.ok:
            yield from _group_condition(self.leaf, "True", "Scheduled", "", now)
        bound = {pod["metadata"]["uid"] for pod, _ in self.assignments}
        for pod in self.leaf.queued():
            uid = pod["metadata"]["uid"]
            if uid in bound:
                continue
            said = self.misfits.get(uid, f"{UNSCHEDULABLE}, {full}" if uid in self.fitted else message)
            yield from _rejection(pod, "Unschedulable", said, now)
        if not self.status.ok:
            yield from _group_condition(self.leaf, "False", "Unschedulable", full, now)


def _outcomes(attempt: Attempt, status: Status) -> Iterator[_Outcome]:
    """One outcome for each PodGroup of a tree, also for those that were not tried any more."""
    group = attempt.group
    if group.is_leaf:
        held = attempt.nodes if status.ok else {}
        assigned = [(pod, held[uid]) for pod in group.pending if (uid := pod["metadata"]["uid"]) in held]
        yield _Outcome(group, status, tuple(assigned), frozenset(attempt.nodes), attempt.misfits)
    tried = {key_of(child.group.item): child for child in attempt.children}
    for child in group.children:
        known = tried.get(key_of(child.item)) or Attempt(child, status)
        yield from _outcomes(known, known.status if status.ok or not known.status.ok else status)


def _refused(leaf: Group, why: str, now: float) -> Iterator[Write]:
    for pod in leaf.queued():
        yield from _rejection(pod, "SchedulerError", why, now)
    yield from _group_condition(leaf, "False", "SchedulerError", why, now)


def _group_condition(leaf: Group, status: str, reason: str, message: str, now: float) -> Iterator[Write]:
    """The condition of a PodGroup, unless it says so already; True is never taken back."""
    kind = CONDITIONS[leaf.item["apiVersion"]]
    known = condition((leaf.item.get("status") or {}).get("conditions"), kind)
    if known and (
        known["status"] == "True" or (known["reason"], known.get("message", "")) == (reason, message)
    ):
        return
    new = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message[:LONGEST_MESSAGE],
        "lastTransitionTime": timestamp(now),
    }
    if known and known["status"] == status:
        new["lastTransitionTime"] = known["lastTransitionTime"]
    served = OLD_POD_GROUPS if leaf.item["apiVersion"] == OLD_POD_GROUPS.api_version else POD_GROUPS
    yield _status(served, leaf.item, {"conditions": [new]})


def _rejection(pod: Object, reason: str, message: str, now: float) -> Iterator[Write]:
    """PodScheduled=False and an Event, unless the pod says so already."""
    known = condition((pod.get("status") or {}).get("conditions"), "PodScheduled")
    if known and (known.get("reason"), known.get("message")) == (reason, message):
        return
    new = {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
    }
    if known and known["status"] == "False" and known.get("lastTransitionTime"):
        new["lastTransitionTime"] = known["lastTransitionTime"]
    yield _status(PODS, pod, {"conditions": [new]})
    yield Record(pod, "Warning", "FailedScheduling", message, COMPONENT)


def _nominations(outcome: _Outcome) -> Iterator[Write]:
    """Write the nominatedNodeName of every pod of a group but the one placed last, as the scheduler does."""
    for pod, node in outcome.assignments[:-1]:
        if (pod.get("status") or {}).get("nominatedNodeName") != node:
            yield _status(PODS, pod, {"nominatedNodeName": node})


def _binding(pod: Object, node: str) -> Iterator[Write]:
    yield Bind(pod, node)
    namespace, name = key_of(pod)
    message = f"Successfully assigned {namespace}/{name} to {node}"
    yield Record(pod, "Normal", "Scheduled", message, COMPONENT)


def _status(resource: Resource, item: Object, status: Object) -> Patch:
    namespace, name = key_of(item)
    body = {"metadata": {"uid": item["metadata"]["uid"]}, "status": status}
    return Patch(resource, name, namespace, body, PatchType.STRATEGIC, SCHEDULER, subresource="status")
