"""The cluster of a command that asks steps what they would do: its lists are as light as in a function."""

from __future__ import annotations

from dataclasses import replace

from muster.cluster.interface import Objects, Page
from muster.cluster.paging import all_pages, with_short_texts, without_containers
from muster.cluster.versioned import Versioned
from muster.objects.resources import EVENTS, Resource
from muster.runtime.list_memory import ListMemory, SharedListMemory


class LightLists(Versioned):
    """A `Versioned` cluster whose lists keep what a function keeps, and have at most the memory of an event.

    A tenant decides how large the pods of an owner are: hundreds of a megabyte each.
    """

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind that match the selectors; one whole page is in memory at a time.

        Raises:
            TooManyObjects: the list needs more than three quarters of the default of
                MUSTER_LIMIT_EVENT_BYTES; a function with that default does not look at them either.
        """
        light = with_short_texts if resource == EVENTS else without_containers
        memory = ListMemory(SharedListMemory(self.limits.event_bytes))

        def page_at(token: str) -> Page:
            if not token:
                memory.release()  # of a list that expired
            page = self.page(resource, namespace, labels=labels, fields=fields, as_of=as_of, token=token)
            kept = [light(body) for body in page.objects]
            memory.add(kept, namespace, page.size)
            return replace(page, objects=kept)

        return all_pages(page_at).objects
