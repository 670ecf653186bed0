"""A snapshot of the nodes on which a scheduling cycle places pods.

Filters: nodeSelector, resources and the number of pods. Not simulated: unschedulable nodes, taints, affinity,
topology spread, ports, volumes, dynamic resources. Instead of scoring, the feasible node with the fewest pods
is chosen, then the first by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.interface import Object
from muster.simulator.controllers.fields import is_finished_pod, labels_of, node_of
from muster.simulator.quantities import milli

PODS = "pods"


@dataclass(frozen=True)
class FitError:
    """Why a pod fits on no node; the message is that of kube-scheduler's FitError."""

    message: str


class Nodes:
    """The free resources of each node; pods can be added and removed."""

    def __init__(self, nodes: Iterable[Object], pods: Iterable[Object]) -> None:
        self._nodes = {node["metadata"]["name"]: node for node in nodes}
        self._free = {name: _allocatable(node) for name, node in self._nodes.items()}
        self._count = dict.fromkeys(self._nodes, 0)
        for pod in pods:
            if node_of(pod) in self._nodes and not is_finished_pod(pod):
                self.add_pod(pod, node_of(pod))

    @property
    def names(self) -> frozenset[str]:
        """The names of all nodes."""
        return frozenset(self._nodes)

    def label(self, name: str, key: str) -> str | None:
        """Return the value of a node's label; None if the label or the node does not exist."""
        return labels_of(self._nodes[name]).get(key) if name in self._nodes else None

    def add_pod(self, pod: Object, name: str) -> None:
        """Subtract the requests of a pod from a node."""
        self._change(pod, name, -1)

    def remove_pod(self, pod: Object, name: str) -> None:
        """Return the requests of a pod to its node."""
        self._change(pod, name, 1)

    def fit(self, pod: Object, allowed: frozenset[str]) -> str | FitError:
        """Return the name of the node for a pod among the allowed ones, or why none fits."""
        reasons: Counter[str] = Counter()
        fitting: list[str] = []
        for name in sorted(allowed):
            failures = self._filter(pod, name)
            reasons.update(failures)
            if not failures:
                fitting.append(name)
        if fitting:
            return min(fitting, key=lambda name: (self._count[name], name))
        if not allowed:
            return FitError("no nodes available to schedule pods")
        summary = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return FitError(f"0/{len(allowed)} nodes are available: {summary}.")

    def _change(self, pod: Object, name: str, sign: int) -> None:
        free = self._free[name]
        for resource, amount in pod_requests(pod).items():
            free[resource] = free.get(resource, 0) + sign * amount
        self._count[name] -= sign

    def _filter(self, pod: Object, name: str) -> list[str]:
        """Return the reasons why a pod does not fit on a node; empty if it fits."""
        node = self._nodes[name]
        selector = pod["spec"].get("nodeSelector") or {}
        if any(labels_of(node).get(key) != value for key, value in selector.items()):
            return ["node(s) didn't match Pod's node affinity/selector"]
        free = self._free[name]
        insufficient = [key for key, amount in pod_requests(pod).items() if amount > free.get(key, 0)]
        return ["Too many pods" if key == PODS else f"Insufficient {key}" for key in insufficient]


def pod_requests(pod: Object) -> dict[str, int]:
    """Return the resource requests of a pod in thousandths, including one pod; they default to the limits."""
    total: Counter[str] = Counter()
    for container in pod["spec"].get("containers") or []:
        total.update(_container_requests(container))
    for container in pod["spec"].get("initContainers") or []:
        total |= Counter(_container_requests(container))
    return {PODS: 1000, **{key: amount for key, amount in total.items() if amount}}


def _container_requests(container: Object) -> dict[str, int]:
    resources = container.get("resources") or {}
    quantities = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {key: milli(str(value)) for key, value in quantities.items()}


def _allocatable(node: Object) -> dict[str, int]:
    status = node.get("status") or {}
    quantities = status.get("allocatable") or status.get("capacity") or {}
    return {key: milli(str(value)) for key, value in quantities.items()}
