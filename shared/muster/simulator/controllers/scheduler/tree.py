"""Trees of PodGroups and CompositePodGroups, and the in-memory scheduling cycle of a tree.

Algorithm and messages are those of kubernetes v1.37.1, pkg/scheduler/schedule_one_podgroup.go,
framework/plugins/gangscheduling and backend/queue: a pod whose group, or an ancestor of it, does not exist
stays pending without a condition; a single gated pod, or a missing quorum, keeps the whole tree pending.
Not simulated: preemption (every unschedulable group reports that there are no victims), and the refusal of
pods whose priority is not that of their group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from muster.cluster.interface import Object
from muster.simulator.controllers.fields import ObjectKey, is_deleting, is_finished_pod, key_of, node_of
from muster.simulator.controllers.scheduler.nodes import FitError, Nodes

SCHEDULER_NAME = "default-scheduler"


@dataclass
class GroupTree:
    """A PodGroup with its unbound and bound pods, or a CompositePodGroup with its child groups."""

    item: Object
    children: list[GroupTree] = field(default_factory=list)
    pending: list[Object] = field(default_factory=list)
    bound: list[Object] = field(default_factory=list)

    @property
    def is_leaf(self) -> bool:
        """Whether this is a PodGroup."""
        return bool(self.item["kind"] == "PodGroup")

    @property
    def minimum(self) -> int:
        """The minCount or minGroupCount of a gang; 1 for the basic policy."""
        gang = self.item["spec"]["schedulingPolicy"].get("gang")
        return int(gang["minCount" if self.is_leaf else "minGroupCount"]) if gang else 1

    @property
    def topology_key(self) -> str:
        """The node label of the topology constraint; empty if unset."""
        constraints = (self.item["spec"].get("schedulingConstraints") or {}).get("topology") or []
        return str(constraints[0]["key"]) if constraints else ""

    @property
    def priority(self) -> int:
        """The priority that the group's PriorityClass resolved to; 0 if unset."""
        return int(self.item["spec"].get("priority") or 0)

    def leaves(self) -> Iterator[GroupTree]:
        """Yield the PodGroups of this tree."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()

    def queued(self) -> list[Object]:
        """Return the pending pods of a PodGroup that are not being deleted."""
        return [pod for pod in self.pending if not is_deleting(pod)]

    def has_gated_pod(self) -> bool:
        """Whether a pending pod of the tree has scheduling gates."""
        return any(pod["spec"].get("schedulingGates") for leaf in self.leaves() for pod in leaf.pending)

    def has_quorum(self) -> bool:
        """Whether enough pods exist, bound or pending (isPGReady, isCPGTreeReady)."""
        if self.is_leaf:
            return len(self.pending) + len(self.bound) >= self.minimum
        return sum(child.has_quorum() for child in self.children) >= self.minimum


def group_of(pod: Object) -> str:
    """Return the name of a pod's PodGroup; empty if ungrouped."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def uses_default_scheduler(pod: Object) -> bool:
    """Whether the pod's schedulerName is the default scheduler."""
    return bool(pod["spec"].get("schedulerName", SCHEDULER_NAME) == SCHEDULER_NAME)


def by_age(pod: Object) -> tuple[str, str]:
    """Return the sort key of pods with equal priority: creation time, then name."""
    return str(pod["metadata"].get("creationTimestamp")), pod["metadata"]["name"]


def trees(
    pod_groups: Iterable[Object], composites: Iterable[Object], pods: Iterable[Object]
) -> list[GroupTree]:
    """Return the roots of all trees with their unfinished pods; groups without their parent are left out."""
    leaves = {key_of(item): GroupTree(item) for item in pod_groups}
    inner = {key_of(item): GroupTree(item) for item in composites}
    for pod in sorted(pods, key=by_age):
        group = leaves.get((pod["metadata"].get("namespace", ""), group_of(pod)))
        if group is None or is_finished_pod(pod):
            continue
        if node_of(pod):
            group.bound.append(pod)
        elif uses_default_scheduler(pod):
            group.pending.append(pod)
    roots: list[GroupTree] = []
    for group in [*inner.values(), *leaves.values()]:
        parent = _parent(group)
        if parent is None:
            roots.append(group)
        elif parent in inner:
            inner[parent].children.append(group)
    for group in inner.values():
        group.children.sort(key=lambda child: key_of(child.item))
    return roots


def _parent(group: GroupTree) -> ObjectKey | None:
    name = group.item["spec"].get("parentCompositePodGroupName")
    return (group.item["metadata"]["namespace"], name) if name else None


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
    place = _place_pods if group.is_leaf else _place_children
    for placement in placements:
        attempt = place(group, nodes, placement)
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


def _place_pods(group: GroupTree, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
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


def _place_children(group: GroupTree, nodes: Nodes, allowed: frozenset[str]) -> Attempt:
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
