"""One scheduling cycle of a tree of groups: all or nothing, in memory.

The algorithm and its words are those of kubernetes v1.37.1, pkg/scheduler/schedule_one_podgroup.go and
framework/plugins/gangscheduling (PlacementFeasible), with the gates TopologyAwareWorkloadScheduling and
CompositePodGroup on. Preemption is left out: every rejected group is told that no victims were found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from muster.cluster.port import Object
from muster.simulator.controllers.scheduler_nodes import Misfit, Nodes
from muster.simulator.controllers.scheduler_tree import Group

UNSCHEDULABLE = "pod group is unschedulable"
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"
DEFAULT_PREEMPTION = "PreemptLowerPriority"


@dataclass(frozen=True)
class Status:
    """How a group fared.

    Attributes:
        ok: it can be placed.
        reason: why not.
        is_final: the reason stands behind the general error, which is all that a parent repeats of it.
    """

    ok: bool
    reason: str = ""
    is_final: bool = False

    @property
    def error(self) -> str:
        """What a parent says of it."""
        return UNSCHEDULABLE if self.is_final else self.reason

    @property
    def message(self) -> str:
        """What the group itself says."""
        return ", ".join(part for part in (UNSCHEDULABLE if self.is_final else "", self.reason) if part)


@dataclass
class Attempt:
    """What a cycle, or one placement tried within it, came to for one group and those below it.

    Attributes:
        group: the group.
        status: how it fared.
        nodes: where each pod would go; pods are named by uid.
        misfits: why single pods fit nowhere.
        children: the attempts of the child groups that were tried.
    """

    group: Group
    status: Status
    nodes: dict[str, str] = field(default_factory=dict)
    misfits: dict[str, str] = field(default_factory=dict)
    children: list[Attempt] = field(default_factory=list)

    def placed(self) -> int:
        """How many pods found a node in successful groups."""
        if not self.status.ok:
            return 0
        return len(self.nodes) + sum(child.placed() for child in self.children)

    def assignments(self) -> Iterator[tuple[Object, str]]:
        """Pod and node of everything that is placed."""
        if not self.status.ok:
            return
        for pod in self.group.pending:
            if pod["metadata"]["uid"] in self.nodes:
                yield pod, self.nodes[pod["metadata"]["uid"]]
        for child in self.children:
            yield from child.assignments()


def disagreement(root: Group) -> str:
    """Why the pods of a tree may not be scheduled together; empty when they may (validatePodGroup)."""
    pods = [pod for leaf in root.leaves() for pod in (*leaf.queued(), *leaf.placed)]
    first = next((pod for leaf in root.leaves() for pod in leaf.queued()), None)
    if first is None:
        return ""
    scheduler = first["spec"].get("schedulerName", "")
    preemption = first["spec"].get("preemptionPolicy", DEFAULT_PREEMPTION)
    for pod in pods:
        spec = pod["spec"]
        if spec.get("schedulerName", "") != scheduler:
            names = f'"{spec.get("schedulerName", "")}" and "{scheduler}"'
            return (
                f"all pods in a single pod group should have the same .spec.schedulerName set, got: {names}"
            )
        if (spec.get("priority") or 0) != root.priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's priority, "
                f"got {spec.get('priority') or 0} and {root.priority}"
            )
        own = spec.get("preemptionPolicy", DEFAULT_PREEMPTION)
        if own != preemption:
            return (
                "all pods in a single pod group should have the same preemption policy, "
                f"got {own} and {preemption}"
            )
    return ""


def run_cycle(root: Group, nodes: Nodes) -> Attempt:
    """Try to place a tree; where it succeeds, `nodes` keeps its pods."""
    attempt = _place(root, nodes, nodes.names)
    if attempt.status.ok and attempt.placed() == 0:
        attempt.status = Status(ok=False, is_final=True)
    return attempt


def _place(group: Group, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
    """The best of the group's placements: most pods, then the first by name; what it holds stays taken."""
    placements = _placements(group, nodes, allowed)
    tried: list[Attempt] = []
    for placement in placements:
        attempt = _try(group, nodes, placement)
        _undo(attempt, nodes)
        tried.append(attempt)
    successful = [attempt for attempt in tried if attempt.status.ok]
    if successful:
        best = max(successful, key=Attempt.placed)
        for pod, node in best.assignments():
            nodes.take(pod, node)
        return best
    said = f"0/{len(placements)} placements are available"
    if not tried:
        return Attempt(group, Status(ok=False, reason=said, is_final=True))
    first = tried[0]
    reason = f"{said}, first placement status: {first.status.error}"
    first.status = Status(ok=False, reason=reason, is_final=True)
    return first


def _placements(group: Group, nodes: Nodes, allowed: frozenset[str]) -> list[frozenset[str]]:
    """The sets of nodes to try: one for each value of the topology label; pods already placed pin theirs."""
    key = group.topology_key
    if not key:
        return [allowed]
    bound = {pod["spec"]["nodeName"] for leaf in group.leaves() for pod in leaf.placed}
    pinned = {value for name in bound if (value := nodes.label(name, key)) is not None}
    domains: dict[str, set[str]] = {}
    for name in allowed:
        value = nodes.label(name, key)
        if value is not None and (not bound or value in pinned):
            domains.setdefault(value, set()).add(name)
    return [frozenset(domains[value]) for value in sorted(domains)]


def _try(group: Group, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
    return _try_pods(group, nodes, allowed) if group.is_leaf else _try_children(group, nodes, allowed)


def _try_pods(group: Group, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
    queued = group.queued()
    remaining, scheduled = len(queued), len(group.placed)
    status = _feasible(group, scheduled, remaining)
    if status is not None and not status.ok:
        return Attempt(group, Status(ok=False, reason=status.reason, is_final=True))
    attempt = Attempt(group, Status(ok=False))
    for pod in queued:
        uid = pod["metadata"]["uid"]
        found = nodes.fit(pod, allowed)
        remaining -= 1
        if isinstance(found, Misfit):
            attempt.misfits[uid] = found.message
        else:
            nodes.take(pod, found)
            attempt.nodes[uid] = found
            scheduled += 1
        status = _feasible(group, scheduled, remaining)
        if status is not None and not status.ok:
            break
    attempt.status = status or Status(ok=False, is_final=True)
    return attempt


def _try_children(group: Group, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
    remaining, scheduled = len(group.children), 0
    status = _feasible(group, scheduled, remaining)
    attempt = Attempt(group, status or Status(ok=False))
    if status is not None and not status.ok:
        return attempt
    for child in group.children:
        tried = _place(child, nodes, allowed)
        attempt.children.append(tried)
        remaining -= 1
        scheduled += tried.status.ok
        status = _feasible(group, scheduled, remaining)
        if status is not None and not status.ok:
            break
    attempt.status = status or Status(ok=False, is_final=True)
    return attempt


def _feasible(group: Group, scheduled: int, remaining: int) -> Status | None:
    """Whether the minimum is met, can no longer be met, or (None) is still open."""
    if remaining + scheduled < group.minimum:
        counts = f"{scheduled} scheduled, {remaining} remaining"
        return Status(ok=False, reason=f"minCount ({group.minimum}) cannot be satisfied: {counts}")
    return Status(ok=True) if scheduled >= group.minimum else None


def _undo(attempt: Attempt, nodes: Nodes) -> None:
    """Free what a try has taken: a PodGroup's own pods, or those of a composite's successful children."""
    if attempt.group.is_leaf:
        for pod in attempt.group.pending:
            node = attempt.nodes.get(pod["metadata"]["uid"])
            if node:
                nodes.give_back(pod, node)
    for child in attempt.children:
        for pod, node in child.assignments():
            nodes.give_back(pod, node)
