"""Reads of any kind of object."""

from __future__ import annotations

from typing import TypeVar

from muster.cluster import errors
from muster.cluster.interface import Cluster, Objects
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.resources import Resource

_View = TypeVar("_View", bound=KubernetesObject)


def get(cluster: Cluster, view: type[_View], resource: Resource, ref: ObjectRef) -> _View | None:
    """Return the view of an object; None if there is none of that name and UID."""
    body = cluster.get(resource, ref.name, ref.namespace)
    if body is None or (ref.uid and body["metadata"]["uid"] != ref.uid):
        return None
    return view.read(body)


def list_if_served(cluster: Cluster, resource: Resource, namespace: str = "", *, labels: str = "") -> Objects:
    """Return all objects of a kind; none if it is not served, for example without the Trainer."""
    try:
        return cluster.list(resource, namespace, labels=labels)
    except errors.ApiGone:
        return []
