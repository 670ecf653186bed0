"""The cluster of a command that asks steps what they would do: its lists are as light as in a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from muster.cluster.interface import Objects, Page, RawCluster
from muster.cluster.paging import all_pages, with_short_texts, without_containers
from muster.cluster.versioned import Versioned
from muster.objects.resources import EVENTS, Resource


class _Request(NamedTuple):
    resource: Resource
    namespace: str
    labels: str
    fields: str


class LightLists(Versioned):
    """A `Versioned` cluster that reads each list once, for all steps that are asked, without containers.

    Args:
        cluster: the cluster to read.
        reading: called with the name of a kind before it is listed, and after each page with the number of
            objects so far, `pods: 120`.
    """

    def __init__(self, cluster: RawCluster, *, reading: Callable[[str], object] = lambda _step: None) -> None:
        super().__init__(cluster)
        self._reading = reading
        self._kept: dict[_Request, Objects] = {}

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind that match the selectors; one whole page is in memory at a time."""
        request = _Request(resource, namespace, labels, fields)
        if request not in self._kept:
            self._kept[request] = self._read(request, as_of)
        return [*self._kept[request]]

    def _read(self, request: _Request, as_of: str) -> Objects:
        """Return a list from the cluster."""
        resource, namespace, labels, fields = request
        light = with_short_texts if resource == EVENTS else without_containers
        read = 0

        def page_at(token: str) -> Page:
            nonlocal read
            if not token:
                read = 0  # anew after a list that expired
                self._reading(resource.plural)
            page = self.page(resource, namespace, labels=labels, fields=fields, as_of=as_of, token=token)
            kept = [light(body) for body in page.objects]
            read += len(kept)
            self._reading(f"{resource.plural}: {read}")
            return replace(page, objects=kept)

        return all_pages(page_at).objects
