"""A source that watches an API server and sends an event for each change, as ApiServerSource's adapter does.

Events are lost where the adapter loses them: objects that exist at the start are never sent, nor are the
changes missed by an expired watch. The functions recover from this with their sweeps.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http import HTTPStatus
from time import monotonic

from muster.cluster.errors import ClusterError, Expired
from muster.cluster.http.client import Client
from muster.objects.resources import NAMESPACES
from muster.simulator.overlays import Manifest, of_kind
from muster.simulator.source.events import ChangeType, Object, Sender, Sink, to_event
from muster.simulator.source.wiring import SourceSpec, WatchedKind

RETRY_SECONDS = 1.0
"""Delay between requests while the API server is unavailable or the API is not served."""

_CHANGES = {"ADDED": ChangeType.ADD, "MODIFIED": ChangeType.UPDATE, "DELETED": ChangeType.DELETE}
_BOOKMARK = "BOOKMARK"
_log = logging.getLogger(__name__)


class Source:
    """An ApiServerSource with one thread per kind and namespace; each sends one event at a time."""

    def __init__(
        self,
        spec: SourceSpec,
        cluster: Client,
        sink: Sink | str,
        *,
        api_server: str,
        watch_seconds: int = 30,
    ) -> None:
        self.spec = spec
        self._api_server = api_server
        self.cluster = cluster
        self.watch_seconds = watch_seconds
        self.interrupted: Counter[str] = Counter()
        self.stopping = threading.Event()
        extensions = {f"Ce-{name.capitalize()}": value for name, value in spec.extensions.items()}
        headers = {"Kn-Namespace": spec.namespace, **extensions}
        self._sender = Sender(sink, wait=self.stopping.wait, headers=headers)

    @classmethod
    def all_of(
        cls, manifests: Iterable[Manifest], cluster: Client, sink: Sink | str, *, api_server: str
    ) -> list[Source]:
        """Return a source for each ApiServerSource among the manifests."""
        specs = map(SourceSpec.from_manifest, of_kind(manifests, "ApiServerSource"))
        return [cls(spec, cluster, sink, api_server=api_server) for spec in specs]

    def start(self, within: float = 0.0) -> None:
        """Start watching; wait at most so many seconds until every watch has its resourceVersion."""
        namespaces = namespaces_of(self.spec, self.cluster)
        streams = [
            _Stream(kind, namespace, self, is_first=namespace == namespaces[0])
            for kind in self.spec.kinds
            for namespace in namespaces
        ]
        for stream in streams:
            name = f"{self.spec.name}-{stream.kind.resource.plural}"
            threading.Thread(target=stream.run, name=name, daemon=True).start()
        deadline = monotonic() + within
        for stream in streams:
            stream.ready.wait(max(0.0, deadline - monotonic()))

    def stop(self) -> None:
        """Stop sending; each thread ends with its watch request."""
        self.stopping.set()

    def send(self, change: ChangeType, item: Object) -> None:
        """Send the event about a change; it may be dropped."""
        self._sender.send(*to_event(change, item, self.spec.mode, self._api_server))


def start_all(sources: Iterable[Source], within: float) -> None:
    """Start sources in parallel and wait at most so many seconds until all their watches are ready."""
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda source: source.start(within), sources))


def namespaces_of(spec: SourceSpec, cluster: Client) -> list[str]:
    """Return the namespaces that a source watches; "" is all. The selector is evaluated at the start only."""
    if spec.namespaces is None:
        return [spec.namespace]
    if not spec.namespaces:
        return [""]
    return [body["metadata"]["name"] for body in cluster.list(NAMESPACES, labels=spec.namespaces)]


class _Stream:
    """The watch of one kind in one namespace ("" for all), whose changes are sent in order."""

    def __init__(self, kind: WatchedKind, namespace: str, source: Source, *, is_first: bool) -> None:
        """Create a stream; a cluster-scoped kind is watched only by its first stream."""
        self.kind = kind
        self.ready = threading.Event()
        self._namespace = namespace
        self._source = source
        self._cluster = source.cluster
        self._stopping = source.stopping
        self._is_first = is_first
        self._version = ""

    def run(self) -> None:
        """Watch the kind until the source stops."""
        if not self._wait_until_served():
            return
        self._read_version()
        self.ready.set()
        while not self._stopping.is_set():
            started = monotonic()
            try:
                self._watch()
            except ClusterError as error:
                plural = self.kind.resource.plural
                self._source.interrupted[plural] += 1
                _log.warning("watch of %s: %s", plural, error)
                if isinstance(error, Expired):  # changes are lost
                    self._read_version()
            if monotonic() - started < RETRY_SECONDS:
                self._stopping.wait(RETRY_SECONDS)

    def _watch(self) -> None:
        """Send an event for each change of one watch request."""
        changes = self._cluster.watch(
            self.kind.resource,
            self._namespace,
            labels=self.kind.selector,
            resource_version=self._version,
            timeout_seconds=self._source.watch_seconds,
        )
        for change, item in changes:
            if self._stopping.is_set():
                return
            self._version = item["metadata"]["resourceVersion"]
            if change != _BOOKMARK:
                self._source.send(_CHANGES[change], item)

    def _read_version(self) -> None:
        """Set the resourceVersion from a list, whose objects are not sent."""
        while not self._stopping.is_set():
            try:
                self._version = self._cluster.list_version(
                    self.kind.resource, self._namespace, labels=self.kind.selector
                )
            except ClusterError as error:
                _log.warning("list of %s: %s", self.kind.resource.plural, error)
                self._stopping.wait(RETRY_SECONDS)
            else:
                return

    def _wait_until_served(self) -> bool:
        """Wait for the group-version, as the adapter restarts until it is there; False to skip the kind."""
        resource, logged = self.kind.resource, False
        while (served := self._served()) is None:
            if not logged:
                _log.warning("%s is not served: waiting for it", resource.api_version)
                logged = True
            if self._stopping.wait(RETRY_SECONDS):
                return False
        if resource.plural not in served:
            _log.error("%s is not in %s: skipped", resource.plural, resource.api_version)
        namespaced = served.get(resource.plural, True)
        self.kind = replace(self.kind, resource=replace(resource, namespaced=namespaced))
        watched = resource.plural in served and (namespaced or self._is_first)
        if not watched:
            self.ready.set()
        return watched

    def _served(self) -> dict[str, bool] | None:
        """Whether each resource of the group-version is namespaced, by plural; None if it is not served."""
        root = "/apis" if self.kind.resource.group else "/api"
        try:
            status, body = self._cluster.raw("GET", f"{root}/{self.kind.resource.api_version}")
        except ClusterError:
            return None
        return (
            {one["name"]: one["namespaced"] for one in body["resources"]} if status == HTTPStatus.OK else None
        )
