"""Trees of PodGroups and CompositePodGroups, and the conditions under which a tree is schedulable.

The rules are those of kubernetes v1.37.1, pkg/scheduler/framework/plugins/gangscheduling and
pkg/scheduler/backend/queue: a pod whose group, or an ancestor of it, does not exist stays pending without a
condition; a single gated pod, or a missing quorum, keeps the whole tree pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from muster.cluster.interface import Object
from muster.simulator.controllers.fields import ObjectKey, is_deleting, is_finished_pod, key_of, node_of

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
