"""The cluster interface: everything that a step may ask of a cluster."""

from __future__ import annotations

from typing import Any, Protocol

from muster.objects.resources import Resource, SchedulingApi
from muster.policy.model import Action, PatchType

__all__ = ["FROM_CACHE", "POLICY_NAMESPACE", "Cluster", "Object", "Objects", "PatchType", "RawCluster"]

Object = dict[str, Any]
"""A Kubernetes object as parsed JSON; never a typed model, so that no field is lost on the way back."""

Objects = list[Object]

FROM_CACHE = "0"
"""`as_of` of a list: what the API server has in its cache, usually milliseconds old."""

POLICY_NAMESPACE = "muster-system"
"""Muster's own namespace as the overlays call it, which has the administrator's ConfigMap `muster-policy`."""


class RawCluster(Protocol):
    """Reads and writes of Kubernetes objects, in the versions that the caller names.

    Every method raises a `muster.cluster.errors.ClusterError` if the server refuses or does not answer.
    """

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the live object, or None if there is none of that name."""

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return the objects of a kind in one namespace or in all; `labels` and `fields` are selectors.

        `as_of` is a hint: the resourceVersion of an object just read, for the state of that moment;
        FROM_CACHE; or "" for the newest state, which may wait 100 ms.
        """

    def write(self, action: Action, manager: str) -> Object:
        """Carry out one action as a field manager; returns the object as it is stored, {} after a deletion.

        A deletion carries the UID of its target as a precondition; an object that is gone already is fine.
        """

    def served_versions(self, group: str) -> frozenset[str]:
        """Return the served versions of an API group with their resources, as `v1beta1/podgroups`."""


class Cluster(RawCluster, Protocol):
    """A cluster read and written in one shape, whichever version of scheduling.k8s.io it serves."""

    @property
    def policy_namespace(self) -> str:
        """The namespace of the administrator's ConfigMap `muster-policy`."""

    @property
    def expects_new(self) -> bool:
        """Whether what a step would create is taken for absent without a read: at its first try for an event.

        Where it exists after all, the creation is refused, and the step runs again with reads.
        """

    def scheduling(self) -> SchedulingApi:
        """Return the versions of scheduling.k8s.io that the API server serves."""

    def refresh(self) -> None:
        """Discover the served versions again at the next need."""
