"""What `muster status` keeps of the pods of a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from muster.cluster.errors import AnswerTooLarge
from muster.cluster.interface import Object
from muster.objects.meta import LONGEST_NAME
from muster.objects.pods import Pod
from muster.policy.group_labels import GATE
from muster.policy.groups.manifests import LABEL_VALUE_LIMIT
from muster.policy.owners import KINDS, runs_as

MOST_PODS = 250_000
"""The most pods that are kept, at up to two kilobytes each; Kubernetes is tested with 150,000."""

# The messages that are searched are written by the function emit_conditions, which names PodGroups and pods.
_NAME = re.compile(r"[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?")
"""A DNS subdomain in a condition message, which may be the name of an object."""

IN_GROUP = "schedulingGroup"
"""Stands for a label where pods are found by their PodGroup."""

_POD_LABELS = frozenset(runs_as(kind).pod_label for kind in KINDS)
"""The labels by which the pods of an owner are found."""


@dataclass(frozen=True, slots=True)
class PodOutline:
    """What is kept of a pod that is still to end; a tenant may give a pod a megabyte of labels or gates.

    Attributes:
        namespace: of the pod.
        name: of the pod.
        created: RFC 3339.
        group: the PodGroup that its schedulingGroup names; "" if none.
        owners: names and values of the labels by which the pods of an owner are found.
        bound: whether it has a node.
        gated: whether it has Muster's gate.
    """

    namespace: str
    name: str
    created: str
    group: str
    owners: tuple[tuple[str, str], ...]
    bound: bool
    gated: bool

    def keys(self) -> Iterator[tuple[str, str, str]]:
        """Yield namespace, label or `schedulingGroup`, and name of its PodGroup and each of its owners."""
        yield self.namespace, IN_GROUP, self.group
        for label, value in self.owners:
            yield self.namespace, label, value


def outlines(bodies: Iterable[Object], *, gated: bool = False, before: int = 0) -> Iterator[PodOutline]:
    """Yield the outlines of the pods that are still to end.

    Args:
        bodies: the pods.
        gated: whether to leave out those without Muster's gate.
        before: the number of outlines of other lists, which count too.

    Raises:
        AnswerTooLarge: there are more than MOST_PODS.
    """
    number = before
    for pod in map(Pod.read, bodies):
        if pod.finished or pod.being_deleted or (gated and GATE not in pod.gates):
            continue
        number += 1
        if number > MOST_PODS:
            raise AnswerTooLarge(f"more than {MOST_PODS} pods: choose a namespace with -n")
        metadata = pod.metadata
        owners = tuple(
            (label, metadata.labels[label][:LABEL_VALUE_LIMIT])
            for label in _POD_LABELS & metadata.labels.keys()
        )
        yield PodOutline(
            namespace=metadata.namespace,
            name=metadata.name,
            created=metadata.creation_timestamp,
            group=pod.pod_group_name[:LONGEST_NAME],
            owners=owners,
            bound=pod.bound,
            gated=GATE in pod.gates,
        )


class PodStates:
    """The pods of groups, and which owners and groups have pods that run or are still to run."""

    def __init__(self, pods: list[PodOutline]) -> None:
        self.all = pods
        self._running: set[tuple[str, str, str]] = set()
        self._pending: set[tuple[str, str, str]] = set()
        self._owners: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}
        self._oldest_alone: dict[str, tuple[str, str]] = {}
        for pod in pods:
            (self._running if pod.bound else self._pending).update(pod.keys())
            group = pod.namespace, pod.group
            common = self._owners.setdefault(group, pod.owners)
            if common != pod.owners:
                self._owners[group] = tuple(owner for owner in common if owner in pod.owners)
            if pod.gated and not (pod.bound or pod.group):
                age = pod.created, pod.name
                self._oldest_alone[pod.namespace] = min(age, self._oldest_alone.get(pod.namespace, age))

    def run(self, namespace: str, label: str, name: str) -> bool:
        """Whether pods run that have a label or group, and none of them waits."""
        key = (namespace, label, name)
        return key in self._running and key not in self._pending

    def have_group(self, namespace: str, group: str) -> bool:
        """Whether pods have a group."""
        return (namespace, group) in self._owners

    def groups_in(self, message: str, namespace: str, owner: tuple[str, str]) -> Iterator[str]:
        """Yield the groups of pods of an owner that its message names; "" for pods without one.

        A message hides no group of which a pod belongs to another owner: its user chooses words of it.

        Args:
            message: the message of a condition.
            namespace: that of the owner.
            owner: label and name by which its pods are found.
        """
        key = (namespace, *owner)
        if not (key in self._running or key in self._pending):
            return
        _, alone = self._oldest_alone.get(namespace, ("", ""))
        for name in frozenset(_NAME.findall(message)):
            if owner in self._owners.get((namespace, name), ()):
                yield name
            if name == alone and owner in self._owners[namespace, ""]:
                yield ""
