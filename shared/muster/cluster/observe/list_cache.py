"""A read-only cluster backed by lists, from which a sweep plans without a call for each object."""

from __future__ import annotations

import json
import sys
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from muster.cluster import errors
from muster.cluster.interface import Cluster, Object, Objects
from muster.cluster.observe.snapshot import ReadOnly, selected
from muster.cluster.paging import Page
from muster.objects.meta import KubernetesObject
from muster.objects.resources import EVENTS, Resource, SchedulingApi
from muster.policy.group_labels import GROUP, JOB_NAME, JOBSET_NAME, MANAGED_BY, MUSTER

KEPT_BYTES = 32 * 1024
"""Bytes that a sweep keeps of one object; larger ones are read again one by one."""

SWEEP_BYTES = 64 * 1024 * 1024
"""Bytes that a sweep keeps of all objects."""

_INDEXED = (JOBSET_NAME, JOB_NAME)
"""Labels that select the Jobs and pods of an owner."""

_OF_A_KIND = (GROUP, f"{MANAGED_BY}={MUSTER}")
"""Label selectors of reads that go through all objects of a kind."""

_SELECTED = (*_INDEXED, GROUP, MANAGED_BY)
"""Labels in the selectors of all reads."""

_INVOLVED = "involvedObject.uid"

_Key = tuple[str, str]
"""Namespace and name."""

_Bodies = list[Any]
"""The objects of an answer; None in place of one that does not exist."""

_PAGE_OBJECTS = 16
"""Objects that are parsed at a time for one that goes through all of a kind."""

_BeforeParsing = Callable[[bytes, str], None]
"""Takes the JSON of an object and its namespace."""

_FREE_BYTES = 512
"""Bytes of each object that do not count: as much is kept of one for which there is no room."""

_KEY_BYTES = 512
"""What the keys and the index of an object take: an Event of 330 bytes takes 800 in all."""


@dataclass(frozen=True)
class Listing:
    """One list, page by page.

    Attributes:
        resource: the resource to list.
        view: the fields that are kept of each object; None keeps all.
        labels: the label selector of the request.
        fields: the field selector of the request.
        needless: whether an object, as `view` shows it, needs nothing; only its name and UID are kept.
        optional: whether an object for which there is no room is left out, and not kept by its name.
    """

    resource: Resource
    view: type[KubernetesObject] | None
    labels: str = ""
    fields: str = ""
    needless: Callable[[Any], bool] = lambda _object: False
    optional: bool = False

    def kept(self, body: Object, most_bytes: int) -> bytes:
        """Return the text to keep of an object: a tenth of the memory of parsed JSON."""
        view: Any = body
        kept = None
        if self.view is not None:
            with suppress(ValidationError):  # kept in full, so that a plan about it reports the invalid field
                view = self.view.read(body)
                kept = view.model_dump_json(by_alias=True, exclude_unset=True).encode()
        if (self.view is None or kept is not None) and self._is_needless(view):
            return _json(_identity(body))
        if kept is None:
            kept = _json(body)
        if len(kept) <= most_bytes:
            return kept
        # A text as spec is invalid, so that the step runs live on the object and on whatever it is part of.
        return _json(_identity(body) | {"spec": f"more than {most_bytes} bytes"})

    def _is_needless(self, view: Any) -> bool:
        """Whether nothing but the name is kept; an invalid object is kept, so that the step reports it."""
        with suppress(ValidationError):
            return self.needless(view)
        return False

    def counted(self, kept: bytes) -> int:
        """Return the bytes that count of a kept object; of one that may be left out all that it takes."""
        return len(kept) + _KEY_BYTES if self.optional else max(0, len(kept) - _FREE_BYTES)


def _identity(body: Object) -> Object:
    """Return the object with name, UID, the labels that selectors use, and its deletionTimestamp alone."""
    names = ("name", "namespace", "uid", "deletionTimestamp")
    metadata = {name: body["metadata"][name] for name in names if name in body["metadata"]}
    labels = body["metadata"].get("labels") or {}
    metadata["labels"] = {label: labels[label] for label in _SELECTED if label in labels}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata}


def _json(body: Object | None) -> bytes:
    """Return an object as JSON; half characters, which a text of the API may have, stay as they are."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")


def _json_of_each(bodies: Iterable[Object | None], most_bytes: int) -> Sequence[bytes] | None:
    """Return each object as JSON; None if that takes more bytes: then the rest is not encoded."""
    kept = []
    for body in bodies:
        kept.append(_json(body))
        most_bytes -= len(kept[-1])
        if most_bytes < 0:
            return None
    return kept


class _Compressed(Mapping[_Key, Object]):
    """Objects of one kind, as texts compressed to a tenth by what they share with the first."""

    def __init__(self) -> None:
        self._texts: dict[_Key, bytes] = {}
        self._first = b""

    def add(self, key: _Key, text: bytes) -> None:
        """Keep an object, given as JSON."""
        self._first = self._first or text
        compressor = zlib.compressobj(level=1, wbits=-zlib.MAX_WBITS, zdict=self._first)
        self._texts[key] = compressor.compress(text) + compressor.flush()

    def __getitem__(self, key: _Key) -> Object:
        body: Object = json.loads(self.text(key))
        return body

    def text(self, key: _Key) -> bytes:
        """Return the JSON of an object."""
        inflater = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=self._first)
        return inflater.decompress(self._texts[key])

    def __contains__(self, key: object) -> bool:
        return key in self._texts

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


class _Table:
    """The objects of one list, indexed by name, owner and namespace."""

    def __init__(self) -> None:
        self._objects = _Compressed()
        self._index: defaultdict[_Key, dict[_Key, None]] = defaultdict(dict)
        """Keys of objects by ("", namespace), by (label, value), and by (selector of _OF_A_KIND, "")."""
        self._selected: dict[tuple[str, str, str], list[_Key]] = {}

    def add(self, body: Object, kept: bytes) -> None:
        metadata = body["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        self._index["", key[0]][key] = None
        labels = metadata.get("labels") or {}
        for label in _INDEXED:
            if label in labels:
                self._index[label, labels[label]][key] = None
        for selector in _OF_A_KIND:
            if selected(body, selector):
                self._index[selector, ""][key] = None
        if body["kind"] == EVENTS.kind:
            self._index[_INVOLVED, body["involvedObject"].get("uid", "")][key] = None
        self._objects.add(key, kept)

    def get(self, key: _Key, before: _BeforeParsing | None = None) -> Object | None:
        """Return the object of a key, or None; `before` may refuse it by an exception."""
        return self.parsed([key], before)[0] if key in self._objects else None

    def choose(self, namespace: str, labels: str, fields: str) -> Sequence[_Key]:
        indexed = self._indexed(labels or fields)
        if indexed is None:
            return self._searched(namespace, labels, fields)
        return [key for key in indexed if namespace in {"", key[0]}]

    def parsed(self, keys: Iterable[_Key], before_each: _BeforeParsing | None = None) -> Objects:
        """Return the objects; `before_each` may refuse one by an exception."""
        bodies = []
        for key in keys:
            text = self._objects.text(key)
            if before_each is not None:
                before_each(text, key[0])
            bodies.append(json.loads(text))
        return bodies

    def _indexed(self, selector: str) -> Iterable[_Key] | None:
        label, equals, value = selector.partition(",")[0].partition("=")
        if not equals or label not in (*_INDEXED, _INVOLVED):
            return None
        return self._index.get((label, value), {})

    def _searched(self, namespace: str, labels: str, fields: str) -> Sequence[_Key]:
        """Cached: the remaining selectors are few, and the same for all owners."""
        query = (namespace, labels, fields)
        if query not in self._selected:
            among = self._index.get(("", namespace), {}) if namespace else self._objects
            self._selected[query] = list(filter(self._matching(labels, fields), among))
        return self._selected[query]

    def _matching(self, labels: str, fields: str) -> Callable[[_Key], bool]:
        """Return whether an object matches, as a function of its key; without _OF_A_KIND it is parsed."""
        if labels in _OF_A_KIND and not fields:
            return self._index.get((labels, ""), {}).__contains__
        return lambda key: not (labels or fields) or selected(self._objects[key], labels, fields)


class ListCache(ReadOnly):
    """Reads from lists; resources that are not listed are read live, once.

    The lists are of different moments, and old by the time they are complete. So they only show which objects
    need a write; the step then reads those live.

    Args:
        cluster: the cluster to read.
        listings: the lists to read, in this order.

    Attributes:
        cluster: the cluster to read; replaced by each sweep that continues the lists.
        reading: entered before a page is read, and left when no more of it is in memory than is kept.
        before_parsing: called before an object is parsed for a plan; an exception refuses the read.
        before_page: called before each page of listed objects is parsed.
        pages: the number of pages read.
    """

    single_reads = 1_000_000
    """Reads from memory cost nothing."""

    def __init__(self, cluster: Cluster, listings: Iterable[Listing]) -> None:
        self.cluster = cluster
        self.reading: Callable[[], AbstractContextManager[None]] = nullcontext
        self.before_parsing: _BeforeParsing | None = None
        self.before_page: Callable[[], None] = lambda: None
        self.pages = 0
        self._to_read = deque(listings)
        self._token = ""
        self._tables: dict[Resource, _Table] = {}
        self._not_served: dict[Resource, errors.ApiGone] = {}
        self._answers: dict[tuple[str, ...], Sequence[bytes]] = {}
        self._bytes: Counter[str] = Counter()
        """The bytes that are kept, by namespace."""
        self._all_bytes = 0

    @property
    def policy_namespace(self) -> str:
        """That of the cluster."""
        return self.cluster.policy_namespace

    @property
    def complete(self) -> bool:
        """Whether all lists were read to the end."""
        return not self._to_read

    def read_page(self) -> None:
        """Read the next page; after a failure it can be read again.

        An expired continue token (410) is replaced by the one in the answer, which continues the list at a
        later moment. No object that existed all the time is missed, because pages are ordered by name.

        Raises:
            ClusterError: the page cannot be read.
        """
        with self.reading():
            self._read_page()

    def _read_page(self) -> None:
        listing = self._to_read[0]
        try:
            page = self.cluster.page(
                listing.resource, labels=listing.labels, fields=listing.fields, token=self._token
            )
        except errors.Expired as error:
            if not error.token:
                raise
            self._token = error.token
            return
        except errors.ApiGone as error:
            self._not_served[listing.resource] = error
            page = Page([])
        table = self._tables.setdefault(listing.resource, _Table())
        for body in page.objects:
            namespace = body["metadata"].get("namespace") or ""
            left = self._bytes_left(namespace)
            kept = listing.kept(body, min(KEPT_BYTES, left))
            counted = listing.counted(kept)  # not as compressed: all of an owner's may be parsed at once
            if listing.optional and counted > left:
                continue
            self._count(namespace, counted)
            table.add(body, kept)
        self.pages += 1
        self._token = page.token
        if not page.token:
            self._to_read.popleft()

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the object as it was listed."""
        table = self._table(resource)
        if table is not None:
            return table.get((namespace, name), self.before_parsing)
        key = ("get", resource.plural, namespace, name)
        bodies: Sequence[Object | None] = self._once(
            key, lambda: [self.cluster.get(resource, name, namespace)], KEPT_BYTES
        )
        return bodies[0]

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return the listed objects that match the selectors; of kinds not listed, those as of `as_of`."""
        table = self._table(resource)
        if table is not None:
            return table.parsed(table.choose(namespace, labels, fields), self.before_parsing)
        return self._once(
            ("list", resource.plural, namespace, labels, fields),
            lambda: self.cluster.list(resource, namespace, labels=labels, fields=fields, as_of=as_of),
        )

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
        """Return a part of the listed objects; the token is the number of those before it."""
        table = self._table(resource)
        if table is None:
            return super().page(resource, namespace, labels=labels, fields=fields, as_of=as_of, token=token)
        self.before_page()
        keys = table.choose(namespace, labels, fields)
        begin = int(token or 0)
        end = begin + _PAGE_OBJECTS
        return Page(table.parsed(keys[begin:end]), str(end) if end < len(keys) else "")

    def served_versions(self, group: str) -> frozenset[str]:
        """See `Cluster`."""
        return self.cluster.served_versions(group)

    def scheduling(self) -> SchedulingApi:
        """See `Cluster`."""
        return self.cluster.scheduling()

    def refresh(self) -> None:
        """See `Cluster`."""
        self.cluster.refresh()

    def _table(self, resource: Resource) -> _Table | None:
        if resource in self._not_served:
            raise self._not_served[resource]
        return self._tables.get(resource)

    def _once(
        self, key: tuple[str, ...], read: Callable[[], _Bodies], most_bytes: int = sys.maxsize
    ) -> _Bodies:
        """Return the objects of an answer, which are kept if they are small enough."""
        if key in self._answers:
            return [json.loads(text) for text in self._answers[key]]
        bodies, namespace = read(), key[2]
        kept = _json_of_each(bodies, min(most_bytes, self._bytes_left(namespace)))
        if kept is not None:
            self._answers[key] = kept
            self._count(namespace, max(0, sum(map(len, kept)) - _FREE_BYTES))
        return bodies

    def _bytes_left(self, namespace: str) -> int:
        """Return the bytes that a namespace may still keep: as many as it has are left for the others.

        So however much the objects of some namespaces have, those of a further one are kept.
        """
        return SWEEP_BYTES - self._all_bytes - self._bytes[namespace]

    def _count(self, namespace: str, counted: int) -> None:
        self._bytes[namespace] += counted
        self._all_bytes += counted
