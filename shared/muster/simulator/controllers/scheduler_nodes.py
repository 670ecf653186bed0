"""Which node a pod fits on: a picture of the nodes that a scheduling cycle tries its pods on.

Filters: unschedulable nodes, taints (NoSchedule, NoExecute), nodeSelector, and resources with the number of
pods. Left out: affinities, spreading, ports, volumes, dynamic resources. Among the nodes that fit, the one
with the fewest pods is taken, then the first by name; the real scheduler scores, with a similar result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.port import Object
from muster.simulator.controllers.fields import is_finished_pod, labels_of, node_of
from muster.simulator.controllers.quantities import milli

PODS = "pods"


@dataclass(frozen=True)
class Misfit:
    """Why a pod fits nowhere, in the words of the scheduler's FitError."""

    message: str


class Nodes:
    """What is free on each node; pods can be put on it and taken away again."""

    def __init__(self, nodes: Iterable[Object], pods: Iterable[Object]) -> None:
        self._nodes = {node["metadata"]["name"]: node for node in nodes}
        self._free = {name: _allocatable(node) for name, node in self._nodes.items()}
        self._count = dict.fromkeys(self._nodes, 0)
        for pod in pods:
            if node_of(pod) in self._nodes and not is_finished_pod(pod):
                self.take(pod, node_of(pod))

    @property
    def names(self) -> frozenset[str]:
        """The names of all nodes."""
        return frozenset(self._nodes)

    def label(self, name: str, key: str) -> str | None:
        """The value of a node's label; None without the label or the node."""
        return labels_of(self._nodes[name]).get(key) if name in self._nodes else None

    def take(self, pod: Object, name: str) -> None:
        """Put a pod on a node."""
        self._change(pod, name, -1)

    def give_back(self, pod: Object, name: str) -> None:
        """Take a pod from the node it was put on."""
        self._change(pod, name, 1)

    def fit(self, pod: Object, allowed: frozenset[str]) -> str | Misfit:
        """The node a pod goes to, among those allowed, or why there is none."""
        reasons: Counter[str] = Counter()
        fitting: list[str] = []
        for name in sorted(allowed):
            why = self._objections(pod, name)
            reasons.update(why)
            if not why:
                fitting.append(name)
        if fitting:
            return min(fitting, key=lambda name: (self._count[name], name))
        if not allowed:
            return Misfit("no nodes available to schedule pods")
        told = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        return Misfit(f"0/{len(allowed)} nodes are available: {told}.")

    def _change(self, pod: Object, name: str, sign: int) -> None:
        free = self._free[name]
        for resource, amount in requests(pod).items():
            free[resource] = free.get(resource, 0) + sign * amount
        self._count[name] -= sign

    def _objections(self, pod: Object, name: str) -> list[str]:
        node = self._nodes[name]
        if node["spec"].get("unschedulable"):
            return ["node(s) were unschedulable"]
        tolerations = pod["spec"].get("tolerations") or []
        for taint in node["spec"].get("taints") or []:
            hard = taint["effect"] in ("NoSchedule", "NoExecute")
            if hard and not any(_tolerates(toleration, taint) for toleration in tolerations):
                return ["node(s) had untolerated taint(s)"]
        selector = pod["spec"].get("nodeSelector") or {}
        if any(labels_of(node).get(key) != value for key, value in selector.items()):
            return ["node(s) didn't match Pod's node affinity/selector"]
        free = self._free[name]
        short = [key for key, amount in requests(pod).items() if amount > free.get(key, 0)]
        return ["Too many pods" if key == PODS else f"Insufficient {key}" for key in short]


def requests(pod: Object) -> dict[str, int]:
    """What a pod takes of a node, in thousandths, its own place among the pods included.

    The sum over containers, or the largest init container where that is more; a limit counts as the request
    where none is given.
    """
    total: Counter[str] = Counter()
    for container in pod["spec"].get("containers") or []:
        total.update(_container(container))
    for container in pod["spec"].get("initContainers") or []:
        total |= Counter(_container(container))
    return {PODS: 1000, **{key: amount for key, amount in total.items() if amount}}


def _container(container: Object) -> dict[str, int]:
    resources = container.get("resources") or {}
    given = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {key: milli(str(value)) for key, value in given.items()}


def _allocatable(node: Object) -> dict[str, int]:
    status = node.get("status") or {}
    given = status.get("allocatable") or status.get("capacity") or {}
    return {key: milli(str(value)) for key, value in given.items()}


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
