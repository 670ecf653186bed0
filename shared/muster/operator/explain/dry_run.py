"""A cluster of objects from files, to which the creations of plans can be applied."""

from __future__ import annotations

import copy

from muster.cluster.errors import ApiGone
from muster.cluster.interface import Cluster
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.resources import Resource, SchedulingApi
from muster.policy.model import Plan, Verb
from muster.replay.snapshots import Object, Objects

UID = "xxxxxxxx-0000-4000-8000-000000000000"
"""Placeholder for the UIDs that the API server will assign; names of groups end in its first 8 characters."""


class DryRunCluster(Snapshot):
    """A cluster of objects from files to which the creations of a plan can be applied.

    Args:
        objects: of the files.
        below: the cluster into which they would be applied; its objects count where the files have none of
            their name. None for an empty one.
    """

    def __init__(self, objects: Objects, below: Cluster | None = None) -> None:
        super().__init__(objects)
        self._below = below
        self._created: Objects = []
        self._later = Snapshot([])

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the object of that name, or None."""
        stored = self._later.get(resource, name, namespace) or super().get(resource, name, namespace)
        if stored is not None or self._below is None:
            return stored
        try:
            return self._below.get(resource, name, namespace)
        except ApiGone:
            return None

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind that match the selectors."""
        own = super().list(resource, namespace, labels=labels, fields=fields, as_of=as_of)
        own += self._later.list(resource, namespace, labels=labels, fields=fields, as_of=as_of)
        return own + self._list_below(resource, namespace, labels=labels, fields=fields)

    def scheduling(self) -> SchedulingApi:
        """Return the versions that the cluster below serves; without one, those of Kubernetes 1.37."""
        return super().scheduling() if self._below is None else self._below.scheduling()

    def after(self, plan: Plan) -> DryRunCluster:
        """Return the cluster with the objects that a plan creates; both share the objects of the files."""
        created = [
            {**action.body, "metadata": {**action.body["metadata"], "uid": UID, "resourceVersion": "1"}}
            for action in plan.actions
            if action.verb == Verb.CREATE and action.body is not None
        ]
        after = copy.copy(self)
        after._created = [*self._created, *created]  # noqa: SLF001 - of its own class
        after._later = Snapshot(after._created)  # noqa: SLF001 - likewise
        return after

    def _list_below(self, resource: Resource, namespace: str, *, labels: str, fields: str) -> Objects:
        """Return the objects of the cluster below that the files do not replace."""
        if self._below is None:
            return []
        try:
            listed = self._below.list(resource, namespace, labels=labels, fields=fields)
        except ApiGone:
            return []
        return [body for body in listed if not self._replaces(resource, body["metadata"])]

    def _replaces(self, resource: Resource, metadata: Object) -> bool:
        """Whether the files have an object of this name."""
        return super().get(resource, metadata["name"], metadata.get("namespace", "")) is not None
