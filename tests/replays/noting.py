"""A cluster that notes every write that passes, in a form in which two runs can be compared."""

from __future__ import annotations

import json
from typing import Any

from muster.cluster.paging import Page
from muster.cluster.port import SINGLE_READS, Cluster, Object, Objects, PatchType
from muster.objects.resources import Resource
from muster.objects.versions import SchedulingApi

Write = tuple[str, str, str, str]
"""What was done, to which resource, to which object, and with what body."""


class NotingCluster:
    """Passes every call on, and notes the writes.

    Attributes:
        writes: all that were asked for, in order, also those that the API server refused.
    """

    single_reads = SINGLE_READS

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.writes: list[Write] = []

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """As the cluster's."""
        return self._cluster.get(resource, name, namespace)

    def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Objects:
        """As the cluster's."""
        return self._cluster.list(resource, namespace, labels=labels, fields=fields)

    def page(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", token: str = ""
    ) -> Page:
        """As the cluster's."""
        return self._cluster.page(resource, namespace, labels=labels, fields=fields, token=token)

    def create(self, resource: Resource, body: Object, *, manager: str) -> Object:
        """As the cluster's, noted."""
        self._note("create", resource, body["metadata"].get("namespace", ""), body["metadata"]["name"], body)
        return self._cluster.create(resource, body, manager=manager)

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
        """As the cluster's, noted."""
        self._note(f"patch {subresource}".strip(), resource, namespace, name, body)
        return self._cluster.patch(
            resource, name, namespace, body, patch=patch, manager=manager, subresource=subresource
        )

    def replace(self, resource: Resource, body: Object, *, manager: str, subresource: str = "") -> Object:
        """As the cluster's, noted."""
        self._note("replace", resource, body["metadata"].get("namespace", ""), body["metadata"]["name"], body)
        return self._cluster.replace(resource, body, manager=manager, subresource=subresource)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        propagation: str = "Background",
    ) -> None:
        """As the cluster's, noted."""
        self._note("delete", resource, namespace, name, {"uid": uid, "propagation": propagation})
        self._cluster.delete(resource, name, namespace, uid=uid, propagation=propagation)

    def served_versions(self, group: str) -> frozenset[str]:
        """As the cluster's."""
        return self._cluster.served_versions(group)

    def scheduling(self) -> SchedulingApi:
        """As the cluster's."""
        return self._cluster.scheduling()

    def refresh(self) -> None:
        """As the cluster's."""
        self._cluster.refresh()

    def _note(self, what: str, resource: Resource, namespace: str, name: str, body: Any) -> None:
        told = json.dumps(_without_versions(body), sort_keys=True)
        self.writes.append((what, resource.plural, f"{namespace}/{name}", told))


def _without_versions(body: Any) -> Any:
    """A body without resourceVersions: a write that came before moves them on."""
    if isinstance(body, list):
        return [_without_versions(entry) for entry in body]
    if isinstance(body, dict):
        return {name: _without_versions(value) for name, value in body.items() if name != "resourceVersion"}
    return body
