"""The in-memory scheduling cycle of a tree of groups.

Algorithm and messages are those of kubernetes v1.37.1, pkg/scheduler/schedule_one_podgroup.go and
framework/plugins/gangscheduling (PlacementFeasible), with the feature gates TopologyAwareWorkloadScheduling
and CompositePodGroup. Preemption is not simulated: every unschedulable group reports that there are no
victims.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.cluster.interface import Object
from muster.simulator.controllers.scheduler.nodes import FitError, Nodes
from muster.simulator.controllers.scheduler.tree import GroupTree

UNSCHEDULABLE = "pod group is unschedulable"
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


@dataclass(frozen=True)
class Status:
    """The result of a group in a scheduling cycle; of a final one a parent repeats only the generic error."""

    ok: bool
    reason: str = ""
    is_final: bool = False

    @property
    def error(self) -> str:
        """The text that a parent repeats."""
        return UNSCHEDULABLE if self.is_final else self.reason

    @property
    def message(self) -> str:
        """The message of the group's own condition."""
        return ", ".join(part for part in (UNSCHEDULABLE if self.is_final else "", self.reason) if part)


@dataclass
class Attempt:
    """The result of trying one placement for a group and its descendants."""

    group: GroupTree
    status: Status
    nodes: dict[str, str] = field(default_factory=dict)  # by uid of the pod
    fit_errors: dict[str, str] = field(default_factory=dict)  # by uid of the pod
    children: list[Attempt] = field(default_factory=list)

    def scheduled_pods(self) -> int:
        """Number of pods with a node in successful groups."""
        if not self.status.ok:
            return 0
        return len(self.nodes) + sum(child.scheduled_pods() for child in self.children)

    def assignments(self) -> Iterator[tuple[Object, str]]:
        """Yield pod and node name of every scheduled pod."""
        if not self.status.ok:
            return
        for pod in self.group.pending:
            if pod["metadata"]["uid"] in self.nodes:
                yield pod, self.nodes[pod["metadata"]["uid"]]
        for child in self.children:
            yield from child.assignments()


def validation_error(root: GroupTree) -> str:
    """Why the pods of a tree must not be scheduled together; empty if valid (validatePodGroup)."""
    for leaf in root.leaves():
        for pod in (*leaf.queued(), *leaf.bound):
            priority = pod["spec"].get("priority") or 0
            if priority != root.priority:
                return (
                    "all pods in a pod group should have the priority of the group, "
                    f"got {priority} and {root.priority}"
                )
    return ""


def run_cycle(root: GroupTree, nodes: Nodes) -> Attempt:
    """Schedule a tree; on success `nodes` keeps its pods."""
    attempt = _schedule(root, nodes, nodes.names)
    if attempt.status.ok and attempt.scheduled_pods() == 0:
        attempt.status = Status(ok=False, is_final=True)
    return attempt


def _schedule(group: GroupTree, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
    """Return the placement with the most pods, then the first by name; its pods stay on `nodes`."""
    placements = _placements(group, nodes, allowed)
    attempts: list[Attempt] = []
    for placement in placements:
        attempt = _try(group, nodes, placement)
        _undo(attempt, nodes)
        attempts.append(attempt)
    successful = [attempt for attempt in attempts if attempt.status.ok]
    if successful:
        best = max(successful, key=Attempt.scheduled_pods)
        for pod, node in best.assignments():
            nodes.add_pod(pod, node)
        return best
    summary = f"0/{len(placements)} placements are available"
    if not attempts:
        return Attempt(group, Status(ok=False, reason=summary, is_final=True))
    first = attempts[0]
    reason = f"{summary}, first placement status: {first.status.error}"
    first.status = Status(ok=False, reason=reason, is_final=True)
    return first


def _placements(group: GroupTree, nodes: Nodes, allowed: frozenset[str]) -> list[frozenset[str]]:
    """Return the sets of nodes to try: one per value of the topology key; bound pods restrict the values."""
    key = group.topology_key
    if not key:
        return [allowed]
    used = {pod["spec"]["nodeName"] for leaf in group.leaves() for pod in leaf.bound}
    required = {value for name in used if (value := nodes.label(name, key)) is not None}
    domains: dict[str, set[str]] = {}
    for name in allowed:
        value = nodes.label(name, key)
        if value is not None and (not used or value in required):
            domains.setdefault(value, set()).add(name)
    return [frozenset(domains[value]) for value in sorted(domains)]


def _try(group: GroupTree, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
    return _try_pods(group, nodes, allowed) if group.is_leaf else _try_children(group, nodes, allowed)


def _try_pods(group: GroupTree, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
    queued = group.queued()
    remaining, scheduled = len(queued), len(group.bound)
    status = _feasible(group, scheduled, remaining)
    if status is not None and not status.ok:
        return Attempt(group, Status(ok=False, reason=status.reason, is_final=True))
    attempt = Attempt(group, Status(ok=False))
    for pod in queued:
        uid = pod["metadata"]["uid"]
        node = nodes.fit(pod, allowed)
        remaining -= 1
        if isinstance(node, FitError):
            attempt.fit_errors[uid] = node.message
        else:
            nodes.add_pod(pod, node)
            attempt.nodes[uid] = node
            scheduled += 1
        status = _feasible(group, scheduled, remaining)
        if status is not None and not status.ok:
            break
    attempt.status = status or Status(ok=False, is_final=True)
    return attempt


def _try_children(group: GroupTree, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
    remaining, scheduled = len(group.children), 0
    status = _feasible(group, scheduled, remaining)
    attempt = Attempt(group, status or Status(ok=False))
    if status is not None and not status.ok:
        return attempt
    for child in group.children:
        result = _schedule(child, nodes, allowed)
        attempt.children.append(result)
        remaining -= 1
        scheduled += result.status.ok
        status = _feasible(group, scheduled, remaining)
        if status is not None and not status.ok:
            break
    attempt.status = status or Status(ok=False, is_final=True)
    return attempt


def _feasible(group: GroupTree, scheduled: int, remaining: int) -> Status | None:
    """Return the status once the minimum is met or can no longer be met; None while undecided."""
    if remaining + scheduled < group.minimum:
        counts = f"{scheduled} scheduled, {remaining} remaining"
        return Status(ok=False, reason=f"minCount ({group.minimum}) cannot be satisfied: {counts}")
    return Status(ok=True) if scheduled >= group.minimum else None


def _undo(attempt: Attempt, nodes: Nodes) -> None:
    """Remove the pods of an attempt from `nodes`: a PodGroup's own, or those of successful children."""
    if attempt.group.is_leaf:
        for pod in attempt.group.pending:
            node = attempt.nodes.get(pod["metadata"]["uid"])
            if node:
                nodes.remove_pod(pod, node)
    for child in attempt.children:
        for pod, node in child.assignments():
            nodes.remove_pod(pod, node)
