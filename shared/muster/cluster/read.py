"""Reads of any kind of object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from muster.cluster import errors
from muster.cluster.interface import Cluster, Object, Objects, RawCluster
from muster.cluster.paging import again_if_expired, pages
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.resources import Resource

_View = TypeVar("_View", bound=KubernetesObject)
_Item = TypeVar("_Item")


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


def each(
    cluster: RawCluster, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = ""
) -> Iterator[Object]:
    """Yield all objects of a kind; only one page of them is parsed at a time.

    Raises:
        ApiGone: the cluster does not serve the kind.
        Unavailable: the list never ends.
    """
    for page in pages(
        lambda token: cluster.page(resource, namespace, labels=labels, fields=fields, token=token)
    ):
        yield from page.objects


def collect(
    cluster: RawCluster,
    resource: Resource,
    view: Callable[[Iterable[Object]], Iterable[_Item]],
    namespace: str = "",
    *,
    labels: str = "",
    fields: str = "",
) -> list[_Item]:
    """Return everything that `view` yields from the objects of a kind, with one page in memory at a time.

    A list that expires before its last page is read once more from the beginning.

    Raises:
        ApiGone: the cluster does not serve the kind.
    """
    return again_if_expired(
        lambda: list(view(each(cluster, resource, namespace, labels=labels, fields=fields)))
    )


def each_if_served(cluster: Cluster, resource: Resource, *, labels: str = "") -> Iterator[Object]:
    """Yield as `each`; nothing if the cluster does not serve the kind, for example without the Trainer."""
    with suppress(errors.ApiGone):
        yield from each(cluster, resource, labels=labels)
