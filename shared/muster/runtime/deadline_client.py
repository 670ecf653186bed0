"""A cluster for the length of one event: calls are counted, and refused after the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

from muster.cluster import deadline
from muster.cluster.errors import ClusterError, Unavailable
from muster.cluster.interface import SINGLE_READS, Cluster, Object, Objects
from muster.cluster.paging import Page, whole
from muster.objects.resources import Resource, SchedulingApi, by_kind
from muster.policy.model import Action
from muster.runtime.tracing import Spans, no_spans

T = TypeVar("T")

CallListener = Callable[[str, str, str], None]
"""Called for each call with verb, resource (`jobs/status`) and `ok`, the refusal's HTTP status, or `none`."""


class DeadlineExceeded(Unavailable):
    """The time for one event was over before this call was made, or before its answer came."""


class DeadlineClient:
    """Passes calls on, counts them, and refuses them once the time is over.

    A call that is under way waits for its answer no longer than that either: the broker, which gives up on
    the event soon after, would have it worked on a second time beside the first.

    Args:
        cluster: the cluster itself.
        seconds: how long calls are passed on, from now.
        on_call: called after every call that was passed on.
        spans: makes a span of each.

    Attributes:
        calls: the number of calls that were passed on.
    """

    single_reads = SINGLE_READS

    def __init__(
        self,
        cluster: Cluster,
        seconds: float,
        on_call: CallListener = lambda _verb, _resource, _status: None,
        spans: Spans = no_spans,
    ) -> None:
        self._cluster = cluster
        self._spans = spans
        self._on_call = on_call
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

    def write(self, action: Action, manager: str) -> Object:
        """As the cluster's."""
        resource = by_kind(action.target.api_version, action.target.kind)
        path = f"{resource.plural}/{action.subresource}" if action.subresource else resource.plural
        return self._pass_on(str(action.verb), path, lambda: self._cluster.write(action, manager))

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
            self._on_call(verb, resource, str(error.status or "none"))
            if isinstance(error, Unavailable) and not error.status and self.time_is_over:
                raise DeadlineExceeded(f"the {self._seconds:g} s for one event are over: {error}") from error
            raise
        self._on_call(verb, resource, "404" if answer is None and verb == "get" else "ok")
        return answer
