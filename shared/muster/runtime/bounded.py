"""A cluster for the length of one event: so many calls, and none after the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

from muster.cluster import deadline
from muster.cluster.errors import ClusterError, Unavailable
from muster.cluster.paging import Page, whole
from muster.cluster.port import SINGLE_READS, Cluster, Object, Objects, PatchType
from muster.objects.resources import Resource
from muster.objects.versions import SchedulingApi
from muster.runtime.tracing import Spans, no_spans

T = TypeVar("T")

Told = Callable[[str, str, str], None]
"""Hears of each call: verb, resource (`jobs/status`), and `ok`, the HTTP status of a refusal, or `none`."""


class DeadlineExceeded(Unavailable):
    """The time for one event was over before this call, which was not made, or before its answer came."""


class BoundedCluster:
    """Passes calls on, counts them, and refuses them once the time is over.

    A call that is under way waits for its answer no longer than that either: the broker, which gives up on
    the event soon after, would have it worked on a second time beside the first.

    Args:
        cluster: the cluster itself.
        seconds: how long calls are passed on, from now.
        told: hears of every call that was passed on.
        spans: makes a span of each.

    Attributes:
        calls: the number of calls that were passed on.
    """

    single_reads = SINGLE_READS

    def __init__(
        self,
        cluster: Cluster,
        seconds: float,
        told: Told = lambda _verb, _resource, _status: None,
        spans: Spans = no_spans,
    ) -> None:
        self._cluster = cluster
        self._spans = spans
        self._told = told
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._counting = Lock()
        self.calls = 0

    @property
    def time_is_over(self) -> bool:
        """Whether the next call would be refused."""
        return time.monotonic() >= self._end

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """As the cluster's."""
        return self._pass_on("get", resource.plural, lambda: self._cluster.get(resource, name, namespace))

    def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Objects:
        """As the cluster's; each page is a call."""
        return whole(
            lambda token: self.page(resource, namespace, labels=labels, fields=fields, token=token)
        ).objects

    def page(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", token: str = ""
    ) -> Page:
        """As the cluster's."""
        return self._pass_on(
            "list",
            resource.plural,
            lambda: self._cluster.page(resource, namespace, labels=labels, fields=fields, token=token),
        )

    def create(self, resource: Resource, body: Object, *, manager: str) -> Object:
        """As the cluster's."""
        return self._pass_on(
            "create", resource.plural, lambda: self._cluster.create(resource, body, manager=manager)
        )

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
        """As the cluster's."""
        return self._pass_on(
            "patch",
            _path(resource, subresource),
            lambda: self._cluster.patch(
                resource, name, namespace, body, patch=patch, manager=manager, subresource=subresource
            ),
        )

    def replace(self, resource: Resource, body: Object, *, manager: str, subresource: str = "") -> Object:
        """As the cluster's."""
        return self._pass_on(
            "update",
            _path(resource, subresource),
            lambda: self._cluster.replace(resource, body, manager=manager, subresource=subresource),
        )

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        propagation: str = "Background",
    ) -> None:
        """As the cluster's."""
        self._pass_on(
            "delete",
            resource.plural,
            lambda: self._cluster.delete(resource, name, namespace, uid=uid, propagation=propagation),
        )

    def served_versions(self, group: str) -> frozenset[str]:
        """As the cluster's."""
        return self._pass_on("discover", group, lambda: self._cluster.served_versions(group))

    def scheduling(self) -> SchedulingApi:
        """As the cluster's; known already, as a rule, and then no call."""
        with deadline.until(self._end):
            return self._cluster.scheduling()

    def refresh(self) -> None:
        """As the cluster's."""
        self._cluster.refresh()

    def _pass_on(self, verb: str, resource: str, call: Callable[[], T]) -> T:
        if self.time_is_over:
            raise DeadlineExceeded(f"the {self._seconds:g} s for one event are over after {self.calls} calls")
        with self._counting:
            self.calls += 1
        try:
            with self._spans(f"{verb} {resource}"), deadline.until(self._end):
                answer = call()
        except ClusterError as error:
            self._told(verb, resource, str(error.status or "none"))
            if isinstance(error, Unavailable) and not error.status and self.time_is_over:
                raise DeadlineExceeded(f"the {self._seconds:g} s for one event are over: {error}") from error
            raise
        self._told(verb, resource, "404" if answer is None and verb == "get" else "ok")
        return answer


def _path(resource: Resource, subresource: str) -> str:
    return f"{resource.plural}/{subresource}" if subresource else resource.plural
