"""A cluster whose Workloads and PodGroups are read and written in the version it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from muster.cluster import errors
from muster.cluster.interface import SINGLE_READS, Object, Objects, RawCluster
from muster.cluster.paging import Page
from muster.objects import versions
from muster.objects.resources import POD_GROUPS, WORKLOADS, Resource, SchedulingApi, by_kind
from muster.policy.model import Action

_Answer = TypeVar("_Answer")


class Versioned:
    """A `Cluster` that speaks v1beta1 to us and whatever is served to the API server.

    What is served is asked at the first need, again when the API answers 404 and after `refresh`, and always
    while there are no PodGroups at all: an API that is switched on later is used without a restart.
    """

    single_reads = SINGLE_READS

    def __init__(self, cluster: RawCluster) -> None:
        self._cluster = cluster
        self._api: SchedulingApi | None = None

    def scheduling(self) -> SchedulingApi:
        """What the API server serves of scheduling.k8s.io."""
        api = self._api
        if api is None:
            api = versions.choose(self._cluster.served_versions(versions.GROUP))
            # "Not served" is not remembered: until the next sweep pods would be let go without their group.
            # And another thread may refresh at any time, so the answer is what this one asked.
            self._api = api if api.served else None
        return api

    def refresh(self) -> None:
        """Ask again at the next need what is served."""
        self._api = None

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The live object, or None when there is none of that name."""
        body = self._asking(resource, lambda served: self._cluster.get(served, name, namespace))
        return versions.from_served(body) if body else None

    def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Objects:
        """All objects of a kind that the selectors choose."""
        found = self._asking(
            resource, lambda served: self._cluster.list(served, namespace, labels=labels, fields=fields)
        )
        return [versions.from_served(body) for body in found]

    def page(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", token: str = ""
    ) -> Page:
        """One page of the same."""
        page = self._asking(
            resource,
            lambda served: self._cluster.page(served, namespace, labels=labels, fields=fields, token=token),
        )
        return replace(page, objects=[versions.from_served(body) for body in page.objects])

    def write(self, action: Action, manager: str) -> Object:
        """Carry out one action; kinds that differ between versions are patched, never replaced."""
        target = action.target
        resource = by_kind(target.api_version, target.kind)

        def send(served: Resource) -> Object:
            versioned = replace(target, api_version=served.api_version)
            body = None if action.body is None else _to_served(served, action.body)
            return self._cluster.write(replace(action, target=versioned, body=body), manager)

        return versions.from_served(self._asking(resource, send))

    def served_versions(self, group: str) -> frozenset[str]:
        """The versions of an API group and what they serve."""
        return self._cluster.served_versions(group)

    def _served(self, resource: Resource) -> Resource:
        if resource not in (WORKLOADS, POD_GROUPS):
            return resource
        version = self.scheduling().version
        if not version:
            raise errors.ApiGone(f"{resource.plural}: {versions.HOW_TO_SWITCH_ON}", status=404)
        return replace(resource, version=version)

    def _asking(self, resource: Resource, call: Callable[[Resource], _Answer]) -> _Answer:
        """Call with the served version; once more after a 404 of the whole API, which may have changed."""
        try:
            return call(self._served(resource))
        except errors.ApiGone:
            if resource.group != versions.GROUP:
                raise
            self.refresh()
            return call(self._served(resource))


def _to_served(served: Resource, body: Any) -> Any:
    """A body or patch as this version wants it; a JSON patch is a list of paths that are the same in both."""
    is_object = served.group == versions.GROUP and isinstance(body, Mapping)
    return versions.to_served(SchedulingApi(served.version), body) if is_object else body
