"""Watches an API server and sends what changes, as ApiServerSource's adapter does.

Changes are lost on purpose where the adapter loses them: what exists at the start is never sent, and when a
watch has fallen too far behind, what happened in between is not made up for. The functions live with that
(sweeps); a source that hid it would show a machine nobody has.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any, Protocol

from muster.cluster.errors import ClusterError, Expired
from muster.manifests import Manifest, of_kind
from muster.objects.resources import NAMESPACES, Resource
from muster.simulator.source.events import Object, Verb, to_event
from muster.simulator.source.sending import Sender, Sink
from muster.simulator.source.wiring import SourceSpec, WatchedKind

AGAIN_SECONDS = 1.0
"""Between attempts at an API server that is away, or an API that is not served."""

_VERBS = {"ADDED": Verb.ADD, "MODIFIED": Verb.UPDATE, "DELETED": Verb.DELETE}
_BOOKMARK = "BOOKMARK"
_log = logging.getLogger(__name__)


class Watchable(Protocol):
    """What a source needs of an API server: `muster.cluster.client.Client` has it."""

    def list_with_version(
        self, resource: Resource, namespace: str = "", *, labels: str = ""
    ) -> tuple[list[Object], str]:
        """The objects, and the resourceVersion from which a watch goes on."""
        ...

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        resource_version: str = "",
        timeout_seconds: int = 300,
    ) -> Iterator[tuple[str, Object]]:
        """The changes after a resourceVersion."""
        ...

    def raw(self, method: str, path: str) -> tuple[int, Any]:
        """Any request."""
        ...


class Source:
    """One ApiServerSource: a thread for each kind and namespace, each with one event in flight."""

    def __init__(
        self,
        spec: SourceSpec,
        cluster: Watchable,
        sink: Sink | str,
        *,
        api_server: str,
        watch_seconds: int = 30,
    ) -> None:
        """Prepare.

        Args:
            spec: what to watch.
            cluster: a client of the API server; shared between threads.
            sink: URL of the broker, or something that takes headers and body and returns a status.
            api_server: URL that the events name as their source.
            watch_seconds: how long one watch request lasts, and so how long a thread may outlive `stop`.
        """
        self._spec = spec
        self._api_server = api_server
        self.cluster = cluster
        self.watch_seconds = watch_seconds
        self.stopping = threading.Event()
        extensions = {f"Ce-{name.capitalize()}": value for name, value in spec.extensions.items()}
        headers = {"Kn-Namespace": spec.namespace, **extensions}
        self._sender = Sender(sink, wait=self.stopping.wait, headers=headers)

    @classmethod
    def all_of(
        cls, manifests: Iterable[Manifest], cluster: Watchable, sink: Sink | str, *, api_server: str
    ) -> list[Source]:
        """One source for each ApiServerSource among the manifests."""
        specs = map(SourceSpec.from_manifest, of_kind(manifests, "ApiServerSource"))
        return [cls(spec, cluster, sink, api_server=api_server) for spec in specs]

    def start(self, *, ready_within: float = 0.0) -> bool:
        """Begin to watch.

        Args:
            ready_within: seconds to wait until every watch knows where it begins. Changes after that are
                sent.

        Returns:
            Whether all watches had begun; an API that is not served keeps its own from it.
        """
        namespaces = namespaces_of(self._spec, self.cluster)
        streams = [
            _Stream(kind, namespace, self, leads=namespace == namespaces[0])
            for kind in self._spec.kinds
            for namespace in namespaces
        ]
        for stream in streams:
            name = f"{self._spec.name}-{stream.kind.resource.plural}"
            threading.Thread(target=stream.run, name=name, daemon=True).start()
        deadline = monotonic() + ready_within
        return all(stream.begun.wait(max(0.0, deadline - monotonic())) for stream in streams)

    def stop(self) -> None:
        """Send nothing more; the threads end when their watch requests do."""
        self.stopping.set()

    def send(self, verb: Verb, found: Object) -> None:
        """Send the event about a change; it may be dropped."""
        self._sender.send(*to_event(verb, found, self._spec.mode, self._api_server))


def start_all(sources: Iterable[Source], within: float) -> None:
    """Start sources at once, and wait until all watches have begun, for so many seconds at most.

    What is older than its watch is never sent.
    """
    threads = [
        threading.Thread(target=source.start, kwargs={"ready_within": within}, daemon=True)
        for source in sources
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def namespaces_of(spec: SourceSpec, cluster: Watchable) -> list[str]:
    """The namespaces that a source watches: "" stands for all. A selector is looked up once, at its start."""
    if spec.namespaces is None:
        return [spec.namespace]
    if not spec.namespaces:
        return [""]
    chosen, _ = cluster.list_with_version(NAMESPACES, labels=spec.namespaces)
    return [found["metadata"]["name"] for found in chosen]


class _Stream:
    """The changes of one kind in one namespace (or in all, ""), sent one after the other.

    Attributes:
        begun: set when the stream knows where it begins, or that it is left out.
    """

    def __init__(self, kind: WatchedKind, namespace: str, source: Source, *, leads: bool) -> None:
        """Prepare; of the streams of a kind without namespaces only the one that leads is followed."""
        self.kind = kind
        self.begun = threading.Event()
        self._namespace = namespace
        self._source = source
        self._cluster = source.cluster
        self._stopping = source.stopping
        self._leads = leads
        self._version = ""

    def run(self) -> None:
        """Follow the kind until the source stops."""
        if not self._until_served():
            return
        self._begin_at_newest()
        self.begun.set()
        while not self._stopping.is_set():
            started = monotonic()
            try:
                self._watch()
            except Expired:
                _log.warning("the watch of %s fell behind: changes are lost", self.kind.resource.plural)
                self._begin_at_newest()
            except ClusterError as error:
                _log.warning("watch of %s: %s", self.kind.resource.plural, error)
            if monotonic() - started < AGAIN_SECONDS:
                self._stopping.wait(AGAIN_SECONDS)

    def _watch(self) -> None:
        """Send what one watch request brings."""
        changes = self._cluster.watch(
            self.kind.resource,
            self._namespace,
            labels=self.kind.selector,
            resource_version=self._version,
            timeout_seconds=self._source.watch_seconds,
        )
        for change, found in changes:
            if self._stopping.is_set():
                return
            self._version = found["metadata"]["resourceVersion"]
            if change != _BOOKMARK:
                self._source.send(_VERBS[change], found)

    def _begin_at_newest(self) -> None:
        """Learn where a watch begins; what the list holds is not sent."""
        while not self._stopping.is_set():
            try:
                _, self._version = self._cluster.list_with_version(
                    self.kind.resource, self._namespace, labels=self.kind.selector
                )
            except ClusterError as error:
                _log.warning("list of %s: %s", self.kind.resource.plural, error)
                self._stopping.wait(AGAIN_SECONDS)
            else:
                return

    def _until_served(self) -> bool:
        """Wait for the API of the kind; False when it is left out, or the source stops first.

        The adapter ends where a group-version is not served, and Kubernetes starts it again until it is. A
        kind missing in a group-version that is served is logged and left out, until somebody restarts the
        adapter.
        """
        resource = self.kind.resource
        told = False
        while not self._stopping.is_set():
            served = self._served()
            if served is not None:
                return self._is_followed(served)
            if not told:
                _log.warning("%s is not served: waiting for it", resource.api_version)
                told = True
            self._stopping.wait(AGAIN_SECONDS)
        return False

    def _is_followed(self, served: Mapping[str, bool]) -> bool:
        resource = self.kind.resource
        if resource.plural not in served:
            _log.error("%s is not in %s: skipped", resource.plural, resource.api_version)
        namespaced = served.get(resource.plural, True)
        self.kind = replace(self.kind, resource=replace(resource, namespaced=namespaced))
        followed = resource.plural in served and (namespaced or self._leads)
        if not followed:
            self.begun.set()
        return followed

    def _served(self) -> dict[str, bool] | None:
        """What the kind's group-version serves, and whether in namespaces; None when it does not answer."""
        resource = self.kind.resource
        root = "/apis" if resource.group else "/api"
        try:
            status, answer = self._cluster.raw("GET", f"{root}/{resource.api_version}")
        except ClusterError:
            return None
        if status not in range(200, 300):
            return None
        return {entry["name"]: entry["namespaced"] for entry in answer["resources"]}
