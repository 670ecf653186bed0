"""What `muster status` keeps of the pods of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from muster.cluster.errors import AnswerTooLarge
from muster.cluster.interface import Object
from muster.cluster.paging import without_containers
from muster.objects.meta import LONGEST_NAME
from muster.objects.pods import Pod
from muster.policy.group_labels import GATE
from muster.policy.owners import KINDS, runs_as
from muster.policy.plans.manifests import LABEL_VALUE_LIMIT

MOST_PODS = 250_000
"""The most pods that are kept, at up to three kilobytes each; Kubernetes is tested with 150,000."""

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


def outlines(bodies: Iterable[Object]) -> Iterator[PodOutline]:
    """Yield the outlines of the pods that are still to end.

    Raises:
        AnswerTooLarge: there are more than MOST_PODS.
    """
    number = 0
    for pod in map(Pod.read, map(without_containers, bodies)):
        if not (pod.finished or pod.being_deleted):
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


def gated_outlines(bodies: Iterable[Object]) -> Iterator[PodOutline]:
    """Yield those of `outlines` that have Muster's gate."""
    return (outline for outline in outlines(bodies) if outline.gated)


class PodStates:
    """The pods of groups, and which owners and groups have pods that run or are still to run."""

    def __init__(self, pods: list[PodOutline]) -> None:
        self.all = pods
        self._running: set[tuple[str, str, str]] = set()
        self._pending: set[tuple[str, str, str]] = set()
        self._owners: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
        for pod in pods:
            (self._running if pod.bound else self._pending).update(pod.keys())
            group = pod.namespace, pod.group
            self._owners[group] = self._owners.get(group, frozenset(pod.owners)).intersection(pod.owners)

    def run(self, namespace: str, label: str, name: str) -> bool:
        """Whether pods run that have a label or group, and none of them waits."""
        key = (namespace, label, name)
        return key in self._running and key not in self._pending

    def owners_of(self, namespace: str, group: str) -> frozenset[tuple[str, str]]:
        """Return label and name of each owner of all pods of a group, or, if "", of all pods without one.

        The message of another owner, in which its user chooses words, says nothing of these pods.
        """
        return self._owners.get((namespace, group), frozenset())
