"""A cluster made of files that remembers what it was asked."""

from __future__ import annotations

from muster.cluster import errors
from muster.cluster.interface import Object, Objects
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.resources import Resource
from tests.support.builders import (
    a_namespace,
)


class CountingSnapshot(Snapshot):
    """Remembers reads as `get Job llama` and `list Pod`; kinds in `missing` are not served."""

    def __init__(self, *objects: Object, missing: tuple[str, ...] = ()) -> None:
        super().__init__([a_namespace(), *objects])
        self.reads: list[str] = []
        self._missing = missing

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """As the snapshot's."""
        self._read(resource, f"get {resource.kind} {name}")
        return super().get(resource, name, namespace)

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """As the snapshot's."""
        self._read(resource, f"list {resource.kind}")
        return super().list(resource, namespace, labels=labels, fields=fields, as_of=as_of)

    def _read(self, resource: Resource, what: str) -> None:
        self.reads.append(what)
        if resource.kind in self._missing:
            raise errors.ApiGone("404 page not found", status=404)
