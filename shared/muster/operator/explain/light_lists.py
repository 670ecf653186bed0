"""The cluster of a command that asks several steps what they would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from muster.cluster.interface import Objects, RawCluster
from muster.cluster.versioned import Versioned
from muster.objects.resources import Resource


class _Request(NamedTuple):
    resource: Resource
    namespace: str
    labels: str
    fields: str


class LightLists(Versioned):
    """A `Versioned` cluster of which each list is read once, for all steps that are asked.

    Args:
        cluster: the cluster to read.
        reading: called with the name of a kind before it is listed.
    """

    def __init__(self, cluster: RawCluster, *, reading: Callable[[str], object] = lambda _step: None) -> None:
        super().__init__(cluster)
        self._reading = reading
        self._kept: dict[_Request, Objects] = {}

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind that match the selectors."""
        request = _Request(resource, namespace, labels, fields)
        if request not in self._kept:
            self._reading(resource.plural)
            self._kept[request] = super().list(resource, namespace, labels=labels, fields=fields, as_of=as_of)
        return [*self._kept[request]]
