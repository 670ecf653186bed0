"""The cluster interface: everything that a step may ask of a cluster."""

from __future__ import annotations

from typing import Any, Protocol

from muster.cluster.paging import Page
from muster.objects.patches import PatchType
from muster.objects.resources import Resource, SchedulingApi
from muster.policy.model import Action

__all__ = [
    "CACHED",
    "POLICY_NAMESPACE",
    "SINGLE_READS",
    "Cluster",
    "Object",
    "Objects",
    "Page",
    "PatchType",
    "RawCluster",
]

Object = dict[str, Any]
"""A Kubernetes object as parsed JSON; never a typed model, so that no field is lost on the way back."""

Objects = list[Object]

CACHED = "0"
"""`as_of` of a list: what the API server has in its cache, usually milliseconds old."""

SINGLE_READS = 8
"""Fewer GETs than these cost less than a list of a namespace."""

POLICY_NAMESPACE = "muster-system"
"""Muster's own namespace as the overlays call it, which has the administrator's ConfigMap `muster-policy`."""


class RawCluster(Protocol):
    """Reads and writes of Kubernetes objects, in the versions that the caller names.

    Every method raises a `muster.cluster.errors.ClusterError` if the server refuses or does not answer.
    """

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the live object, or None if there is none of that name."""
        ...

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return the objects of a kind in one namespace or in all; `labels` and `fields` are selectors.

        A list of the newest state waits up to 100 ms until the API server's cache is as new as etcd
        (KEP-2340); one with `as_of` does not. In a function, lists leave out the containers and volumes of
        pods and pod templates, managedFields, and what a text of an Event has beyond 2,048 characters;
        `get` has all.

        Args:
            resource: the kind.
            namespace: the namespace; "" for all.
            labels: a label selector.
            fields: a field selector.
            as_of: the resourceVersion of an object just read, for the state of that moment; CACHED for what
                the API server has in its cache; "" for the newest state. A hint: where that state is not to
                be had, or in a sweep, the list is of the newest.
        """
        ...

    def page(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        as_of: str = "",
        token: str = "",
    ) -> Page:
        """Return one page of such a list, from the continue token on; the empty token begins a list.

        Raises:
            Expired: the token is too old; the error has one that continues from there, at a later moment.
        """
        ...

    def write(self, action: Action, manager: str) -> Object:
        """Carry out one action as a field manager.

        A deletion carries the UID of its target as a precondition; an object that is gone already is fine.

        Returns:
            The object as it is stored; {} after a deletion.
        """
        ...

    def served_versions(self, group: str) -> frozenset[str]:
        """Return the served versions of an API group with their resources, as `v1beta1/podgroups`."""
        ...


class Cluster(RawCluster, Protocol):
    """A cluster read and written in one shape, whichever version of scheduling.k8s.io it serves.

    Attributes:
        single_reads: up to that many objects are read one by one; more are picked out of one list.
        policy_namespace: the namespace of the administrator's ConfigMap `muster-policy`.
    """

    @property
    def single_reads(self) -> int:
        """See above."""
        ...

    @property
    def policy_namespace(self) -> str:
        """See above."""
        ...

    def scheduling(self) -> SchedulingApi:
        """Return the versions of scheduling.k8s.io that the API server serves."""
        ...

    def refresh(self) -> None:
        """Discover the served versions again at the next need."""
        ...
