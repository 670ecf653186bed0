"""A source that watches an API server and sends an event for each change, as ApiServerSource's adapter does.

It reads the same manifests and sends the same events as the adapter of knative.dev/eventing v0.47.0
(`pkg/adapter/apiserver`), and loses the same: objects that exist at the start are never sent, nor are the
changes missed by an expired watch. The functions recover from this with their sweeps.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from http import HTTPStatus
from time import monotonic
from typing import Any

from muster.cluster.errors import ClusterError, Expired
from muster.cluster.http.client import Client
from muster.objects.resources import NAMESPACES, Resource, guess_plural
from muster.simulator.clock import now
from muster.simulator.overlays import Manifest, UnsupportedManifestError, of_kind

Object = dict[str, Any]

Sink = Callable[[Mapping[str, str], bytes], int]
"""Receives headers and body of an event; returns the HTTP status, 0 if there was no response."""

RETRIED = frozenset({0, 404, 413, 425, 429, 502, 503, 504})
"""sdk-go's list (protocol/http), and 0 for no response; after a 500 the event is dropped at once."""

RETRY_DELAYS = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before each retry; after the last one the event is dropped."""

_log = logging.getLogger(__name__)


class Mode(StrEnum):
    """The data of an event: the object, or a reference to it (`spec.mode`)."""

    RESOURCE = "Resource"
    REFERENCE = "Reference"


class ChangeType(StrEnum):
    """The last part of an event's type."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


_TYPES = {Mode.RESOURCE: "dev.knative.apiserver.resource", Mode.REFERENCE: "dev.knative.apiserver.ref"}


def to_event(change: ChangeType, item: Object, mode: Mode, source: str) -> tuple[dict[str, str], bytes]:
    """Return the headers and body of an event in binary mode, without `Ce-Id` and `Ce-Time`."""
    api_version, kind = item["apiVersion"], item["kind"]
    name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "")
    headers = {
        "Ce-Specversion": "1.0",
        "Ce-Type": f"{_TYPES[mode]}.{change}",
        "Ce-Source": source,
        "Ce-Subject": f"/apis/{api_version}/namespaces/{namespace}/{guess_plural(kind)}/{name}",
        "Ce-Apiversion": api_version,
        "Ce-Kind": kind,
        "Ce-Name": name,
        "Ce-Namespace": namespace,
        "Content-Type": "application/json",
    }
    reference = {"kind": kind, **({"namespace": namespace} if namespace else {}), "name": name}
    data = item if mode is Mode.RESOURCE else {**reference, "apiVersion": api_version}
    return headers, json.dumps(data, separators=(",", ":")).encode()


class Sender:
    """Sends the events of one source, with headers of its own and the adapter's retries."""

    def __init__(self, sink: Sink, *, wait: Callable[[float], object], headers: Mapping[str, str]) -> None:
        self._sink = sink
        self._wait = wait
        self._headers = headers

    def send(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Send an event with a new id; return False if it was dropped, which is also logged."""
        sent = {**headers, **self._headers, "Ce-Id": str(uuid.uuid4()), "Ce-Time": now()}
        status = self._sink(sent, body)
        for seconds in RETRY_DELAYS:
            if status not in RETRIED:
                break
            self._wait(seconds)
            status = self._sink(sent, body)
        if status in range(200, 300):
            return True
        _log.error("failed to send %s of %s: %s", sent["Ce-Type"], sent["Ce-Subject"], status)
        return False


_KNOWN = {"mode", "namespaceSelector", "resources", "serviceAccountName", "sink", "ceOverrides"}


@dataclass(frozen=True)
class WatchedKind:
    """A kind that a source watches; `selector` is the labelSelector query parameter, "" for all."""

    resource: Resource
    selector: str = ""


@dataclass(frozen=True)
class SourceSpec:
    """The specification of an ApiServerSource."""

    name: str
    namespace: str
    mode: Mode
    kinds: tuple[WatchedKind, ...]
    namespaces: str | None = None  # label selector; "" means all, None its own namespace
    extensions: Mapping[str, str] = field(default_factory=dict)  # attributes of every event

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> SourceSpec:
        """Parse the manifest of an ApiServerSource."""
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        if unknown := sorted(set(spec) - _KNOWN):
            raise UnsupportedManifestError(
                f"ApiServerSource {name}: {', '.join(unknown)} is not understood by the local source"
            )
        mode, namespaces = spec.get("mode", Mode.REFERENCE), spec.get("namespaceSelector")
        if mode not in set(Mode):
            raise UnsupportedManifestError(
                f"ApiServerSource {name}: mode {mode!r} is not {' or '.join(Mode)}"
            )
        return cls(
            name=name,
            namespace=manifest["metadata"]["namespace"],
            mode=Mode(mode),
            kinds=tuple(map(_watched, spec["resources"])),
            namespaces=None if namespaces is None else selector_text(namespaces),
            extensions=(spec.get("ceOverrides") or {}).get("extensions") or {},
        )


def selector_text(selector: Mapping[str, Any]) -> str:
    """Return a LabelSelector as the query parameter labelSelector; empty selects everything."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    parts += map(_expression, selector.get("matchExpressions") or [])
    return ",".join(parts)


def _watched(entry: Mapping[str, Any]) -> WatchedKind:
    """Return a watched kind, with its plural guessed as the controller of ApiServerSource does."""
    group, _, version = entry["apiVersion"].rpartition("/")
    resource = Resource(group, version, guess_plural(entry["kind"]), entry["kind"])
    return WatchedKind(resource, selector_text(entry.get("selector") or {}))


def _expression(requirement: Mapping[str, Any]) -> str:
    key, operator = requirement["key"], requirement["operator"]
    values = ",".join(requirement.get("values", []))
    texts: dict[str, str] = {
        "Exists": key,
        "DoesNotExist": f"!{key}",
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
    }
    if operator not in texts:
        raise UnsupportedManifestError(f"selector: operator {operator!r} is not one of {', '.join(texts)}")
    return texts[operator]


RETRY_SECONDS = 1.0
"""Delay between requests while the API server is unavailable or the API is not served."""

_CHANGES = {"ADDED": ChangeType.ADD, "MODIFIED": ChangeType.UPDATE, "DELETED": ChangeType.DELETE}
_BOOKMARK = "BOOKMARK"


class Source:
    """An ApiServerSource with one thread per kind and namespace; each sends one event at a time."""

    def __init__(
        self,
        spec: SourceSpec,
        cluster: Client,
        sink: Sink,
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
        cls, manifests: Iterable[Manifest], cluster: Client, sink: Sink, *, api_server: str
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


def start_all(sources: Iterable[Source]) -> None:
    """Start sources in parallel, and wait ten seconds at most until all their watches are ready."""
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda source: source.start(10), sources))


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
                _, self._version = self._cluster.list_with_version(
                    self.kind.resource, self._namespace, labels=self.kind.selector
                )
            except ClusterError as error:
                _log.warning("list of %s: %s", self.kind.resource.plural, error)
                self._stopping.wait(RETRY_SECONDS)
            else:
                return

    def _wait_until_served(self) -> bool:
        """Wait for the group-version, as the adapter restarts until it is there; False to skip the kind."""
        resource = self.kind.resource
        while (served := self._served()) is None:
            if self._stopping.wait(RETRY_SECONDS):
                return False
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
