"""A cluster that translates Workloads and PodGroups to the version that the API server serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from muster.cluster import errors
from muster.cluster.interface import POLICY_NAMESPACE, Object, Objects, RawCluster
from muster.objects import versions
from muster.objects.resources import POD_GROUPS, WORKLOADS, Resource, SchedulingApi, by_kind
from muster.policy.model import Action

_Answer = TypeVar("_Answer")


class Versioned:
    """A `Cluster` with v1beta1 objects on the outside and the served version in its requests.

    The served versions are discovered at the first need, again after a 404 of the API and after `refresh`,
    and at every need while PodGroups are not served: an API that is switched on later is used without a
    restart.
    """

    expects_new = False

    def __init__(self, cluster: RawCluster, policy_namespace: str = POLICY_NAMESPACE) -> None:
        self._cluster = cluster
        self.policy_namespace = policy_namespace
        self._api: SchedulingApi | None = None

    def scheduling(self) -> SchedulingApi:
        """Return the versions of scheduling.k8s.io that the API server serves."""
        api = self._api
        if api is None:
            api = versions.choose(self._cluster.served_versions(versions.GROUP))
            # "Not served" is not cached: until the next sweep pods would lose their gates without a group.
            # The local variable is returned, because another thread may refresh at any time.
            self._api = api if api.served else None
        return api

    def refresh(self) -> None:
        """Discover the served versions again at the next need."""
        self._api = None

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the live object, or None if there is none of that name."""
        body = self._with_served_version(resource, lambda served: self._cluster.get(served, name, namespace))
        return versions.from_served(body) if body else None

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind that match the selectors."""
        bodies = self._with_served_version(
            resource,
            lambda served: self._cluster.list(served, namespace, labels=labels, fields=fields, as_of=as_of),
        )
        return [versions.from_served(body) for body in bodies]

    def write(self, action: Action, manager: str) -> Object:
        """Carry out one action; kinds that differ between versions are patched, never replaced."""
        target = action.target
        resource = by_kind(target.api_version, target.kind)

        def send(served: Resource) -> Object:
            versioned = replace(target, api_version=served.api_version)
            body = action.body
            if body is not None and served.group == versions.GROUP:
                body = versions.to_served(SchedulingApi(served.version), body)
            return self._cluster.write(replace(action, target=versioned, body=body), manager)

        return versions.from_served(self._with_served_version(resource, send))

    def served_versions(self, group: str) -> frozenset[str]:
        """Return the served versions of an API group with their resources."""
        return self._cluster.served_versions(group)

    def _served(self, resource: Resource) -> Resource:
        if resource not in (WORKLOADS, POD_GROUPS):
            return resource
        version = self.scheduling().version
        if not version:
            raise errors.ApiGone(f"{resource.plural}: {versions.HOW_TO_SWITCH_ON}", status=404)
        return replace(resource, version=version)

    def _with_served_version(self, resource: Resource, call: Callable[[Resource], _Answer]) -> _Answer:
        try:
            return call(self._served(resource))
        except errors.ApiGone:
            if resource.group != versions.GROUP:
                raise
            self.refresh()
            return call(self._served(resource))
