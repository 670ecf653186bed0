"""A cluster client that records every write, in a form in which two runs can be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muster.cluster.interface import Cluster, Object, Objects, PatchType
from muster.objects.resources import Resource, SchedulingApi, by_kind
from muster.policy.model import Action, Verb

Write = tuple[str, str, str, str]
"""Verb with subresource, plural, namespace/name, and body as JSON."""


class NotingCluster:
    """A client that forwards every call, and records the writes.

    Attributes:
        writes: the writes in order, including those that the API server refused.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.policy_namespace = cluster.policy_namespace
        self.writes: list[Write] = []

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Forward the call."""
        return self._cluster.get(resource, name, namespace)

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Forward the call."""
        return self._cluster.list(resource, namespace, labels=labels, fields=fields, as_of=as_of)

    def write(self, action: Action, manager: str) -> Object:
        """Record and forward the write."""
        target = action.target
        verb = f"{action.verb} {action.subresource}".strip()
        plural = by_kind(target.api_version, target.kind).plural
        body = json.dumps(_without_versions(_sent(action)), sort_keys=True)
        self.writes.append((verb, plural, f"{target.namespace}/{target.name}", body))
        return self._cluster.write(action, manager)

    def served_versions(self, group: str) -> frozenset[str]:
        """Forward the call."""
        return self._cluster.served_versions(group)

    def scheduling(self) -> SchedulingApi:
        """Forward the call."""
        return self._cluster.scheduling()

    def refresh(self) -> None:
        """Forward the call."""
        self._cluster.refresh()


def _sent(action: Action) -> Any:
    """Return the body of the request: the object, the patch or its operations, or the UID to delete."""
    if action.verb is Verb.DELETE:
        return {"uid": action.target.uid}
    return action.operations if action.patch is PatchType.JSON else action.body


def _without_versions(body: Any) -> Any:
    """Return a body without resourceVersions, which depend on earlier writes."""
    if isinstance(body, list | tuple):
        return [_without_versions(entry) for entry in body]
    if isinstance(body, Mapping):
        return {name: _without_versions(value) for name, value in body.items() if name != "resourceVersion"}
    return body
