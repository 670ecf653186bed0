"""Record the objects of a cluster at moments, in the format of the recordings in tests/replays."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic
from typing import Any

import yaml

from muster.cluster.errors import ClusterError, Gone
from muster.cluster.http.client import Client
from muster.cluster.interface import POLICY_NAMESPACE
from muster.objects.resources import CONFIGMAPS, NAMESPACES, TRAINJOBS, Resource, by_kind
from muster.policy.group_labels import GATED, GROUP
from muster.policy.sources.source import CONFIG_MAP, CONFIG_MAP_KEY, LOCKED_KEY
from muster.replay.files import AppendedFile
from muster.replay.recording.redaction import is_secret, redact_runtime_snapshot, without_secrets
from muster.replay.snapshots import Object
from muster.simulator.controllers.trainer.controller import SNAPSHOT_SUFFIX
from muster.simulator.source import SourceSpec, WatchedKind, namespaces_of

_log = logging.getLogger(__name__)


class CheckpointWriter:
    """Writes the objects that the sources watch, and those that the functions read besides, as moments.

    A moment is not atomic: the kinds are listed one after the other.

    Args:
        file: the file.
        client: of the cluster.
        specs: the sources whose kinds are listed.
        every: seconds between two moments.
        show: called with the kind that is being read.

    Attributes:
        names: of the moments written so far.
    """

    def __init__(
        self,
        file: AppendedFile,
        client: Client,
        specs: Sequence[SourceSpec],
        every: float,
        show: Callable[[str], object] = lambda _kind: None,
    ) -> None:
        self._file = file
        self._client = client
        self._specs = specs
        self._every = every
        self._show = show
        self._began = self._last = monotonic()
        self._events_at_last = 0
        self.names: list[str] = []

    def write(self, name: str = "") -> None:
        """Write a moment; without a name it is named after the seconds since the first, `12 s`.

        Raises:
            ClusterError: the API server refused or did not answer; nothing was written.
            OSError: it could not be written.
        """
        seconds = monotonic() - self._began
        moment = name or f"{seconds:.0f} s"
        items = [without_secrets(body) for body in self._objects() if not is_secret(body)]
        document = {"apiVersion": "v1", "kind": "List", "moment": moment, "time": round(seconds, 3)}
        self._file.append(f"---\n{as_yaml(document | {'items': items})}".encode())
        self.names.append(moment)

    def try_write(self, name: str = "") -> None:
        """Write a moment; log a warning if the API server refuses, since recording goes on."""
        try:
            self.write(name)
        except ClusterError as error:
            _log.warning("no moment was written: %s", error)

    def write_if_due(self, events: int) -> None:
        """Write a moment if the interval has passed and more events were recorded since the last."""
        if events != self._events_at_last and monotonic() >= self._last + self._every:
            self.try_write()
            self._last, self._events_at_last = monotonic(), events

    def _objects(self) -> Iterator[Object]:
        """Yield what belongs to the watched objects, then these."""
        watched = list({body["metadata"]["uid"]: body for body in self._watched()}.values())
        self._show("what belongs to them")
        yield from self._related(watched)
        yield from watched

    def _watched(self) -> Iterator[Object]:
        for spec in self._specs:
            for kind in spec.kinds:
                if kind.is_of(CONFIGMAPS.group, CONFIGMAPS.plural):
                    continue  # only those with policies and copies of runtimes are written
                self._show(kind.resource.kind)
                yield from self._of_kind(kind, namespaces_of(spec, self._client))

    def _of_kind(self, kind: WatchedKind, namespaces: Iterable[str]) -> Iterator[Object]:
        resource = _with_scope(kind.resource)
        # Events of pods end with their gate; the functions list pods by the group label.
        labels = GROUP if kind.selector == GATED else kind.selector
        for namespace in namespaces if resource.namespaced else [""]:
            try:
                yield from self._client.list(resource, namespace, labels=labels)
            except Gone:  # the API is not served
                return

    def _related(self, watched: Sequence[Object]) -> Iterator[Object]:
        """Yield namespaces, the ConfigMaps that may hold their policies, and the runtimes of TrainJobs."""
        namespaces = dict.fromkeys(body["metadata"].get("namespace", "") for body in watched)
        for name in filter(None, namespaces):
            yield from self._get(NAMESPACES, name)
            if name != POLICY_NAMESPACE:
                yield from self._policies(name)
        yield from self._policies(POLICY_NAMESPACE)
        for body in watched:
            if body["kind"] == TRAINJOBS.kind:
                metadata = body["metadata"]
                name, namespace = f"{metadata['name']}{SNAPSHOT_SUFFIX}", metadata["namespace"]
                for config_map in self._get(CONFIGMAPS, name, namespace):
                    text = (config_map.get("data") or {}).get("runtime", "")
                    yield _with_data(config_map, {"runtime": redact_runtime_snapshot(text)})

    def _policies(self, namespace: str) -> Iterator[Object]:
        """Yield the ConfigMap with the policy of a namespace, or with that of the administrator."""
        for config_map in self._get(CONFIGMAPS, CONFIG_MAP, namespace):
            data = config_map.get("data") or {}
            yield _with_data(
                config_map, {key: data[key] for key in (CONFIG_MAP_KEY, LOCKED_KEY) if key in data}
            )

    def _get(self, resource: Resource, name: str, namespace: str = "") -> Iterator[Object]:
        body = self._client.get(resource, name, namespace)
        if body is not None:
            yield body


def as_yaml(value: Any) -> str:
    """Return the YAML of JSON data."""
    text: str = yaml.dump(
        value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, width=110
    )
    return text


def _with_data(config_map: Object, data: dict[str, str]) -> Object:
    """Return a ConfigMap with other data."""
    return {name: value for name, value in config_map.items() if name != "binaryData"} | {"data": data}


def _with_scope(resource: Resource) -> Resource:
    """Add the scope to a resource if Muster knows the kind; the YAML of a source does not have it."""
    try:
        known = by_kind(resource.api_version, resource.kind)
    except LookupError:
        return resource
    return Resource(resource.group, resource.version, known.plural, known.kind, namespaced=known.namespaced)
