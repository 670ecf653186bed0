"""PodGroups and CompositePodGroups as trees, and what keeps a tree out of the scheduling queue.

The rules are those of kubernetes v1.37.1, pkg/scheduler/framework/plugins/gangscheduling and
pkg/scheduler/backend/queue: a pod whose group, or a parent of it, does not exist is parked without a word;
one gated pod holds back its whole tree; so does a quorum that the known pods do not make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from muster.cluster.port import Object
from muster.simulator.controllers.fields import Key, is_deleting, is_finished_pod, key_of, node_of

SCHEDULER_NAME = "default-scheduler"


@dataclass
class Group:
    """One (composite) pod group with its pods or child groups.

    Attributes:
        item: the PodGroup or CompositePodGroup.
        children: child groups by name; a PodGroup has none.
        pending: unbound pods of a PodGroup, oldest first.
        placed: its bound pods, those being deleted too, until they are gone or finished.
    """

    item: Object
    children: list[Group] = field(default_factory=list)
    pending: list[Object] = field(default_factory=list)
    placed: list[Object] = field(default_factory=list)

    @property
    def is_leaf(self) -> bool:
        """Whether this is a PodGroup."""
        return bool(self.item["kind"] == "PodGroup")

    @property
    def minimum(self) -> int:
        """Pods, or child groups, that must be placed together; 1 for basic groups."""
        gang = self.item["spec"]["schedulingPolicy"].get("gang")
        return int(gang["minCount" if self.is_leaf else "minGroupCount"]) if gang else 1

    @property
    def topology_key(self) -> str:
        """The node label all pods must agree in; empty without such a constraint."""
        constraints = (self.item["spec"].get("schedulingConstraints") or {}).get("topology") or []
        return str(constraints[0]["key"]) if constraints else ""

    @property
    def priority(self) -> int:
        """What the group's PriorityClass resolved to."""
        return int(self.item["spec"].get("priority") or 0)

    def leaves(self) -> Iterator[Group]:
        """The PodGroups of this tree."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()

    def queued(self) -> list[Object]:
        """The pods of a PodGroup that a cycle tries to place."""
        return [pod for pod in self.pending if not is_deleting(pod)]

    def is_held_back(self) -> bool:
        """Whether a pod of the tree still has scheduling gates."""
        return any(pod["spec"].get("schedulingGates") for leaf in self.leaves() for pod in leaf.pending)

    def has_quorum(self) -> bool:
        """Whether enough pods are known, placed or not (isPGReady, isCPGTreeReady)."""
        if self.is_leaf:
            return len(self.pending) + len(self.placed) >= self.minimum
        return sum(child.has_quorum() for child in self.children) >= self.minimum


def group_of(pod: Object) -> str:
    """The PodGroup a pod names; empty for an ordinary pod."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def is_ours(pod: Object) -> bool:
    """Whether the pod is left to the default scheduler."""
    return bool(pod["spec"].get("schedulerName", SCHEDULER_NAME) == SCHEDULER_NAME)


def by_age(pod: Object) -> tuple[str, str]:
    """The order in which pods of one priority are tried."""
    return str(pod["metadata"].get("creationTimestamp")), pod["metadata"]["name"]


def trees(pod_groups: Iterable[Object], composites: Iterable[Object], pods: Iterable[Object]) -> list[Group]:
    """The roots of all complete trees with the pods that count; what misses its parent is left out."""
    leaves = {key_of(item): Group(item) for item in pod_groups}
    inner = {key_of(item): Group(item) for item in composites}
    for pod in sorted(pods, key=by_age):
        group = leaves.get((pod["metadata"].get("namespace", ""), group_of(pod)))
        if group is None or is_finished_pod(pod):
            continue
        if node_of(pod):
            group.placed.append(pod)
        elif is_ours(pod):
            group.pending.append(pod)
    roots: list[Group] = []
    for group in [*inner.values(), *leaves.values()]:
        parent = _parent(group)
        if parent is None:
            roots.append(group)
        elif parent in inner:
            inner[parent].children.append(group)
    for group in inner.values():
        group.children.sort(key=lambda child: key_of(child.item))
    return roots


def _parent(group: Group) -> Key | None:
    name = group.item["spec"].get("parentCompositePodGroupName")
    return (group.item["metadata"]["namespace"], name) if name else None
