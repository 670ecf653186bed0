"""The narrow door to a cluster: what a step may ask of it."""

from __future__ import annotations

from typing import Any, Protocol

from muster.cluster.paging import Page
from muster.objects.patches import PatchType
from muster.objects.resources import Resource
from muster.objects.versions import SchedulingApi

__all__ = ["SINGLE_READS", "Cluster", "Object", "Objects", "Page", "PatchType", "RawCluster"]

Object = dict[str, Any]
"""A Kubernetes object as parsed JSON; never a typed model, so that no field is lost on the way back."""

Objects = list[Object]


class RawCluster(Protocol):
    """Reads and writes of Kubernetes objects, in the versions the caller names.

    Every method raises a `muster.cluster.errors.ClusterError` when the server refuses or does not answer.
    """

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The live object, or None when there is none of that name."""
        ...

    def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Objects:
        """All objects of a kind in a namespace, or in all of them; `labels` and `fields` are selectors."""
        ...

    def page(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", token: str = ""
    ) -> Page:
        """One page of the same, from `token` on; the empty token begins a list.

        Raises:
            Expired: the token is too old; the error has one that goes on from there, at a later moment.
        """
        ...

    def create(self, resource: Resource, body: Object, *, manager: str) -> Object:
        """The stored object."""
        ...

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        body: Any,
        *,
        patch: PatchType,
        manager: str,
        subresource: str = "",
    ) -> Object:
        """The object after the patch."""
        ...

    def replace(self, resource: Resource, body: Object, *, manager: str, subresource: str = "") -> Object:
        """The object after a PUT; the body carries the resourceVersion it was read with."""
        ...

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        propagation: str = "Background",
    ) -> None:
        """Delete an object, only that of `uid` where one is given; one that is gone already is fine."""
        ...

    def served_versions(self, group: str) -> frozenset[str]:
        """The versions of an API group and what they serve, as `v1beta1/podgroups`; empty when none is."""
        ...


SINGLE_READS = 8
"""Fewer GETs than these cost less than a list of a namespace."""


class Cluster(RawCluster, Protocol):
    """A cluster that is spoken to in one shape, whichever version of the scheduling API it serves.

    Attributes:
        single_reads: up to that many objects are read one by one; more are picked out of one list.
    """

    @property
    def single_reads(self) -> int:
        """See above."""
        ...

    def scheduling(self) -> SchedulingApi:
        """What the API server serves of scheduling.k8s.io."""
        ...

    def refresh(self) -> None:
        """Ask again at the next need what is served."""
        ...
