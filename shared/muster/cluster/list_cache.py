"""A cluster as lists showed it: what a sweep decides from, without a call for each object."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from muster.cluster import errors
from muster.cluster.interface import Cluster, Object, Objects
from muster.cluster.paging import Page
from muster.cluster.snapshot import ReadOnly, selected
from muster.objects.meta import KubernetesObject
from muster.objects.resources import EVENTS, Resource, SchedulingApi
from muster.policy.group_labels import JOB_NAME, JOBSET_NAME

_INDEXED = (JOBSET_NAME, JOB_NAME)
"""Labels by which the Jobs and pods of one owner are chosen."""

_INVOLVED = "involvedObject.uid"

_Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True)
class Listing:
    """One list, page by page.

    Attributes:
        resource: of which kind.
        view: the fields that are kept of each object; None keeps all of it.
        labels: selector that the API server is asked with.
        fields: likewise.
    """

    resource: Resource
    view: type[KubernetesObject] | None
    labels: str = ""
    fields: str = ""

    def kept(self, body: Object) -> bytes:
        """An object as it is kept: a tenth of its size as parsed JSON, so that many fit into a small pod."""
        if self.view is not None:
            try:
                return self.view.read(body).model_dump_json(by_alias=True, exclude_unset=True).encode()
            except ValidationError:
                pass  # whole, so that whoever looks at this one object finds what is wrong with it
        return json.dumps(body, separators=(",", ":")).encode()


class _Table:
    """The objects of one list, found by name, by owner or by namespace."""

    def __init__(self) -> None:
        self._objects: dict[_Key, bytes] = {}
        self._places: defaultdict[_Key, dict[_Key, None]] = defaultdict(dict)
        """By ("", namespace) and by (label, value)."""
        self._chosen: dict[tuple[str, str, str], list[_Key]] = {}

    def add(self, body: Object, kept: bytes) -> None:
        metadata = body["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        self._objects[key] = kept
        self._places["", key[0]][key] = None
        labels = metadata.get("labels") or {}
        for label in _INDEXED:
            if label in labels:
                self._places[label, labels[label]][key] = None
        if body["kind"] == EVENTS.kind:
            self._places[_INVOLVED, body["involvedObject"].get("uid", "")][key] = None

    def get(self, key: _Key) -> Object | None:
        kept = self._objects.get(key)
        return None if kept is None else json.loads(kept)

    def choose(self, namespace: str, labels: str, fields: str) -> Iterator[Object]:
        indexed = self._indexed(labels or fields)
        for key in self._searched(namespace, labels, fields) if indexed is None else indexed:
            if namespace in {"", key[0]}:
                yield json.loads(self._objects[key])

    def _indexed(self, selector: str) -> Iterable[_Key] | None:
        label, equals, value = selector.partition(",")[0].partition("=")
        if not equals or label not in (*_INDEXED, _INVOLVED):
            return None
        return self._places.get((label, value), {})

    def _searched(self, namespace: str, labels: str, fields: str) -> Iterable[_Key]:
        """Searched for once: the selectors that are left are few, and the same for all owners."""
        asked = (namespace, labels, fields)
        if asked not in self._chosen:
            among = self._places.get(("", namespace), {}) if namespace else self._objects
            self._chosen[asked] = [
                key for key in among if selected(json.loads(self._objects[key]), labels, fields)
            ]
        return self._chosen[asked]


class ListCache(ReadOnly):
    """Reads from lists; what was not listed is read live, once.

    The lists are of different moments, and old by the time they are complete. So they tell where there is
    something to do, and whoever does it looks again.

    Args:
        cluster: where to read.
        listings: what to list, in this order.

    Attributes:
        cluster: the same; each sweep that goes on with the lists has its own.
        pages: how many were read.
    """

    single_reads = 1_000_000
    """A read costs nothing."""

    def __init__(self, cluster: Cluster, listings: Iterable[Listing]) -> None:
        self.cluster = cluster
        self.pages = 0
        self._to_read = deque(listings)
        self._token = ""
        self._tables: dict[Resource, _Table] = {}
        self._not_served: dict[Resource, errors.ApiGone] = {}
        self._answers: dict[tuple[str, ...], Any] = {}

    @property
    def complete(self) -> bool:
        """Whether all lists were read to their end."""
        return not self._to_read

    def read_page(self) -> None:
        """Read the next page; where it fails, nothing has changed and it can be read again.

        A continue token that is too old (410) is answered with one that goes on at a later moment. Objects
        that were there all the time are in such a list as well, because pages are cut by name.

        Raises:
            ClusterError: the page cannot be had.
        """
        listing = self._to_read[0]
        try:
            page = self.cluster.page(
                listing.resource, labels=listing.labels, fields=listing.fields, token=self._token
            )
        except errors.Expired as error:
            if not self._token:
                raise
            self._token = error.token
            return
        except errors.ApiGone as error:
            self._not_served[listing.resource] = error
            page = Page([])
        table = self._tables.setdefault(listing.resource, _Table())
        for body in page.objects:
            table.add(body, listing.kept(body))
        self.pages += 1
        self._token = page.token
        if not page.token:
            self._to_read.popleft()

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The object as the list had it."""
        table = self._table(resource)
        if table is not None:
            return table.get((namespace, name))
        found: Object | None = self._once(
            ("get", resource.plural, namespace, name), lambda: self.cluster.get(resource, name, namespace)
        )
        return found

    def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Objects:
        """Those of the list that the selectors choose."""
        table = self._table(resource)
        if table is not None:
            return list(table.choose(namespace, labels, fields))
        found: Objects = self._once(
            ("list", resource.plural, namespace, labels, fields),
            lambda: self.cluster.list(resource, namespace, labels=labels, fields=fields),
        )
        return found

    def served_versions(self, group: str) -> frozenset[str]:
        """As the cluster's."""
        return self.cluster.served_versions(group)

    def scheduling(self) -> SchedulingApi:
        """As the cluster's."""
        return self.cluster.scheduling()

    def refresh(self) -> None:
        """As the cluster's."""
        self.cluster.refresh()

    def _table(self, resource: Resource) -> _Table | None:
        if resource in self._not_served:
            raise self._not_served[resource]
        return self._tables.get(resource)

    def _once(self, question: tuple[str, ...], ask: Callable[[], Any]) -> Any:
        if question not in self._answers:
            self._answers[question] = ask()
        return self._answers[question]
