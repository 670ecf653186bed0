"""The cluster of a command that asks steps what they would do: its lists are as light as in a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from muster.cluster.interface import Objects, Page, RawCluster
from muster.cluster.paging import all_pages, with_short_texts, without_containers
from muster.cluster.versioned import Versioned
from muster.objects.resources import EVENTS, Resource
from muster.runtime.sharing.list_memory import ListMemory, SharedListMemory


class _Request(NamedTuple):
    resource: Resource
    namespace: str
    labels: str
    fields: str


@dataclass(frozen=True)
class _Kept:
    """A list that was read, and the memory that it takes."""

    objects: Objects
    size: int


class LightLists(Versioned):
    """A `Versioned` cluster whose lists keep what a function keeps, and have at most the memory of an event.

    A tenant decides how large the pods of an owner are: hundreds of a megabyte each. Each list is read once,
    for all steps that are asked, unless those read later need its memory.

    Args:
        cluster: the cluster to read.
        reading: called with the name of a kind before it is listed, and after each page with the number of
            objects so far, `pods: 120`.
    """

    def __init__(self, cluster: RawCluster, *, reading: Callable[[str], object] = lambda _step: None) -> None:
        super().__init__(cluster)
        self._reading = reading
        self._kept: dict[_Request, _Kept] = {}

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind that match the selectors; one whole page is in memory at a time.

        Raises:
            TooManyObjects: the list needs more than three quarters of the default of
                MUSTER_LIMIT_EVENT_BYTES; a function with that default does not look at them either.
        """
        request = _Request(resource, namespace, labels, fields)
        if request not in self._kept:
            self._kept[request] = self._read(request, as_of)
        return [*self._kept[request].objects]

    def _read(self, request: _Request, as_of: str) -> _Kept:
        """Return a list from the cluster; lists that were kept are forgotten as it needs their memory."""
        resource, namespace, labels, fields = request
        light = with_short_texts if resource == EVENTS else without_containers
        shared = SharedListMemory()
        memory = ListMemory(shared)
        read = 0

        def page_at(token: str) -> Page:
            nonlocal read
            if not token:
                memory.release()  # of a list that expired
                read = 0
                self._reading(resource.plural)
            page = self.page(resource, namespace, labels=labels, fields=fields, as_of=as_of, token=token)
            kept = [light(body) for body in page.objects]
            memory.add(kept, namespace, page.size)
            self._forget_until(shared.of_a_namespace - memory.used)
            read += len(kept)
            self._reading(f"{resource.plural}: {read}")
            return replace(page, objects=kept)

        return _Kept(all_pages(page_at).objects, memory.used)

    def _forget_until(self, most: int) -> None:
        """Forget the lists that were read first until the rest takes at most so many bytes."""
        taken = sum(kept.size for kept in self._kept.values())
        for request in [*self._kept]:
            if taken <= most:
                break
            taken -= self._kept.pop(request).size
