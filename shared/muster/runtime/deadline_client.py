"""A cluster with a deadline: for one event, calls are counted, and refused after the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TypeVar

from muster.cluster.errors import ClusterError, Unavailable
from muster.cluster.http import deadline
from muster.cluster.interface import FROM_CACHE, Cluster, Object, Objects
from muster.objects.resources import Resource, SchedulingApi, by_kind
from muster.policy.model import Action
from muster.runtime.memory import KINDS, Memory
from muster.runtime.telemetry.tracing import Spans

T = TypeVar("T")

CallListener = Callable[[str, str, str], None]
"""Takes verb, resource (`jobs/status`) and result of a call: `ok`, the HTTP status of an error, or `none`."""


class DeadlineExceeded(Unavailable):
    """The deadline of the event passed before the call was made, or before its answer came."""


class DeadlineClient:
    """Forwards calls, counts them, and refuses them after the deadline."""

    def __init__(
        self,
        cluster: Cluster,
        seconds: float,
        on_call: CallListener,
        spans: Spans,
        memory: Memory,
    ) -> None:
        self._cluster = cluster
        self.policy_namespace = cluster.policy_namespace
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._on_call, self._spans, self._memory = on_call, spans, memory
        self._lock = Lock()
        self.calls = 0
        self.newest = False
        self.expects_new = False

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; not above 0 once it has passed."""
        return self._end - time.monotonic()

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """See `Cluster`."""
        call = partial(self._cluster.get, resource, name, namespace)
        forward = partial(self._forward, "get", resource.plural, call)
        remembered = resource in KINDS and not self.newest
        return self._memory.answer((resource, name, namespace), forward) if remembered else forward()

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """See `Cluster`."""
        at = "" if self.newest and as_of != FROM_CACHE else as_of
        call = partial(self._cluster.list, resource, namespace, labels=labels, fields=fields, as_of=at)
        return self._forward("list", resource.plural, call)

    def write(self, action: Action, manager: str) -> Object:
        """See `Cluster`."""
        resource = by_kind(action.target.api_version, action.target.kind)
        path = f"{resource.plural}/{action.subresource}" if action.subresource else resource.plural
        try:
            return self._forward(str(action.verb), path, lambda: self._cluster.write(action, manager))
        except ClusterError:
            self.expects_new = False
            raise

    def served_versions(self, group: str) -> frozenset[str]:
        """See `Cluster`."""
        return self._forward("discover", group, lambda: self._cluster.served_versions(group))

    def scheduling(self) -> SchedulingApi:
        """See `Cluster`; usually cached, so it counts as no call."""
        with deadline.until(self._end):
            return self._cluster.scheduling()

    def refresh(self) -> None:
        """See `Cluster`."""
        self._cluster.refresh()

    def _forward(self, verb: str, resource: str, call: Callable[[], T]) -> T:
        if self.seconds_left <= 0:
            raise DeadlineExceeded(f"the {self._seconds:g} s for one event ended after {self.calls} calls")
        with self._lock:
            self.calls += 1
        try:
            with self._spans(f"{verb} {resource}"), deadline.until(self._end):
                answer = call()
        except ClusterError as error:
            self._on_call(verb, resource, str(error.status or "none"))
            if isinstance(error, Unavailable) and not error.status and self.seconds_left <= 0:
                raise DeadlineExceeded(f"the {self._seconds:g} s for one event ended: {error}") from error
            raise
        self._on_call(verb, resource, "404" if answer is None and verb == "get" else "ok")
        return answer
