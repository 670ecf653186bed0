"""A cluster whose Workloads and PodGroups are read and written in the version it serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from shared.cluster import errors
from shared.cluster.port import Object, Objects, PatchType, RawCluster
from shared.objects import versions
from shared.objects.resources import POD_GROUPS, WORKLOADS, Resource
from shared.objects.versions import SchedulingApi

_Answer = TypeVar("_Answer")


class Versioned:
    """A `Cluster` that speaks v1beta1 to us and whatever is served to the API server.

    What is served is asked at the first need, again when the API answers 404, and after `refresh`: an API
    that is switched on later is used without a restart.
    """

    def __init__(self, cluster: RawCluster) -> None:
        self._cluster = cluster
        self._api: SchedulingApi | None = None

    def scheduling(self) -> SchedulingApi:
        """What the API server serves of scheduling.k8s.io."""
        api = self._api
        if api is None:  # another thread may refresh at any time, so the answer is what this one asked
            api = self._api = versions.choose(self._cluster.served_versions(versions.GROUP))
        return api

    def refresh(self) -> None:
        """Ask again at the next need what is served."""
        self._api = None

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The live object, or None when there is none of that name."""
        if not _versioned(resource):
            return self._cluster.get(resource, name, namespace)
        body = self._asking(resource, lambda served: self._cluster.get(served, name, namespace))
        return versions.from_served(body) if body else None

    def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Objects:
        """All objects of a kind that the selectors choose."""
        if not _versioned(resource):
            return self._cluster.list(resource, namespace, labels=labels, fields=fields)
        found = self._asking(
            resource, lambda served: self._cluster.list(served, namespace, labels=labels, fields=fields)
        )
        return [versions.from_served(body) for body in found]

    def create(self, resource: Resource, body: Object, *, manager: str) -> Object:
        """The stored object."""
        if not _versioned(resource):
            return self._cluster.create(resource, body, manager=manager)
        stored = self._asking(
            resource,
            lambda served: self._cluster.create(
                served, versions.to_served(self.scheduling(), body), manager=manager
            ),
        )
        return versions.from_served(stored)

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

        def send(served: Resource) -> Object:
            return self._cluster.patch(
                served, name, namespace, body, patch=patch, manager=manager, subresource=subresource
            )

        return versions.from_served(self._asking(resource, send)) if _versioned(resource) else send(resource)

    def replace(self, resource: Resource, body: Object, *, manager: str, subresource: str = "") -> Object:
        """The object after a PUT; kinds that differ between versions are patched, never replaced."""
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
        """Delete an object; one that is gone already is fine."""

        def send(served: Resource) -> None:
            self._cluster.delete(served, name, namespace, uid=uid, propagation=propagation)

        if _versioned(resource):
            self._asking(resource, send)
        else:
            send(resource)

    def served_versions(self, group: str) -> frozenset[str]:
        """The versions of an API group and what they serve."""
        return self._cluster.served_versions(group)

    def _served(self, resource: Resource) -> str:
        version = self.scheduling().version
        if not version:
            self.refresh()
            version = self.scheduling().version
        if not version:
            raise errors.ApiGone(f"{resource.plural}: {versions.HOW_TO_SWITCH_ON}", status=404)
        return version

    def _asking(self, resource: Resource, call: Callable[[Resource], _Answer]) -> _Answer:
        """Call with the served version; once more after a 404 of the whole API, which may have changed."""
        try:
            return call(replace(resource, version=self._served(resource)))
        except errors.ApiGone:
            self.refresh()
            return call(replace(resource, version=self._served(resource)))


def _versioned(resource: Resource) -> bool:
    return resource in {WORKLOADS, POD_GROUPS}
