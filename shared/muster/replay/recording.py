"""Record events and objects of a cluster into files, without what may be secret.

Events become JSON Lines of structured CloudEvents, in order of arrival. Objects become a YAML stream of
Lists, one for each moment, in the format of the recordings in tests/replays.
"""

from __future__ import annotations

import gzip
import json
import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from time import monotonic
from typing import IO

import yaml

from muster.cluster.errors import ClusterError, Gone
from muster.cluster.http.client import Client
from muster.cluster.interface import POLICY_NAMESPACE
from muster.objects.resources import CONFIGMAPS, NAMESPACES, TRAINJOBS, Resource, by_kind
from muster.objects.yaml_files import SafeDumper
from muster.policy.group_labels import GATED, GROUP
from muster.policy.sources.source import CONFIG_MAP, CONFIG_MAP_KEY, LOCKED_KEY
from muster.replay.redaction import redact_runtime_snapshot, without_secrets
from muster.replay.snapshots import Object
from muster.simulator.broker import CloudEvent
from muster.simulator.controllers.trainer import SNAPSHOT_SUFFIX
from muster.simulator.source import SourceSpec, WatchedKind, namespaces_of

OutputFile = IO[bytes] | gzip.GzipFile

_log = logging.getLogger(__name__)


class EventRecorder:
    """Writes the events of sources, but those about ConfigMaps, to a file until `ended` is set; thread-safe.

    Attributes:
        recorded: the number of events by kind and verb, `("Job", "add")`.
        error: why an event could not be written, which ends the recording; None if all could.
    """

    def __init__(self, file: OutputFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.recorded: Counter[tuple[str, str]] = Counter()
        self.ended = threading.Event()
        self.error: OSError | None = None

    def receive(self, headers: Mapping[str, str], body: bytes) -> int:
        """Record the event of a request; return the status of the answer."""
        event = CloudEvent.from_http(headers, body)
        if event["kind"] != CONFIGMAPS.kind:
            # ASCII only: some readers take U+2028 for the end of a line.
            line = json.dumps(without_secrets(event.structured()), separators=(",", ":")).encode() + b"\n"
            with self._lock:
                if not self.ended.is_set():
                    self._write(line, (event["kind"], event["type"].rpartition(".")[2]))
        return HTTPStatus.ACCEPTED

    def _write(self, line: bytes, counted: tuple[str, str]) -> None:
        try:
            self._file.write(line)
            self._file.flush()
            self.recorded[counted] += 1
        except OSError as error:
            self.error = error
            self.ended.set()


class MomentWriter:
    """Writes the objects that the sources watch, and those that the functions read besides, as moments.

    A moment is not atomic: the kinds are listed one after the other. `names` are those written so far.
    """

    def __init__(self, file: OutputFile, client: Client, specs: Sequence[SourceSpec]) -> None:
        self._file = file
        self._client = client
        self._specs = specs
        self._began = monotonic()
        self.names: list[str] = []

    def write(self, name: str = "") -> None:
        """Write a moment; without a name it is named after the seconds since the first, `12 s`.

        If the API server refuses, a warning is logged, since recording goes on.
        """
        seconds = monotonic() - self._began
        moment = name or f"{seconds:.0f} s"
        try:
            items = [without_secrets(body) for body in self._objects()]
        except ClusterError as error:
            _log.warning("no moment was written: %s", error)
            return
        document = {"apiVersion": "v1", "kind": "List", "moment": moment, "time": round(seconds, 3)}
        text: str = yaml.dump(document | {"items": items}, Dumper=SafeDumper, sort_keys=False, width=110)
        self._file.write(f"---\n{text}".encode())
        self._file.flush()
        self.names.append(moment)

    def _objects(self) -> Iterator[Object]:
        """Yield what belongs to the watched objects, then these."""
        watched = list({body["metadata"]["uid"]: body for body in self._watched()}.values())
        yield from self._related(watched)
        yield from watched

    def _watched(self) -> Iterator[Object]:
        for spec in self._specs:
            for kind in spec.kinds:
                # Of ConfigMaps only those with policies and copies of runtimes are written.
                if kind.resource.kind != CONFIGMAPS.kind:
                    yield from self._of_kind(kind, namespaces_of(spec, self._client))

    def _of_kind(self, kind: WatchedKind, namespaces: Sequence[str]) -> Iterator[Object]:
        resource = kind.resource  # as written in a source, which does not say the scope
        known = by_kind(resource.api_version, resource.kind)
        # Events of pods end with their gate; the functions list pods by the group label.
        labels = GROUP if kind.selector == GATED else kind.selector
        for namespace in namespaces if known.namespaced else [""]:
            try:
                yield from self._client.list(resource, namespace, labels=labels)
            except Gone:  # the API is not served
                return

    def _related(self, watched: Sequence[Object]) -> Iterator[Object]:
        """Yield namespaces, the ConfigMaps that may hold their policies, and the runtimes of TrainJobs."""
        names = [body["metadata"].get("namespace", "") for body in watched]
        for name in dict.fromkeys([*filter(None, names), POLICY_NAMESPACE]):
            if name in names:
                yield from self._get(NAMESPACES, name)
            for config_map in self._get(CONFIGMAPS, CONFIG_MAP, name):
                data = config_map.get("data") or {}
                policies = {key: data[key] for key in (CONFIG_MAP_KEY, LOCKED_KEY) if key in data}
                yield _with_data(config_map, policies)
        for body in watched:
            if body["kind"] == TRAINJOBS.kind:
                metadata = body["metadata"]
                name, namespace = f"{metadata['name']}{SNAPSHOT_SUFFIX}", metadata["namespace"]
                for config_map in self._get(CONFIGMAPS, name, namespace):
                    text = (config_map.get("data") or {}).get("runtime", "")
                    yield _with_data(config_map, {"runtime": redact_runtime_snapshot(text)})

    def _get(self, resource: Resource, name: str, namespace: str = "") -> list[Object]:
        body = self._client.get(resource, name, namespace)
        return [] if body is None else [body]


def _with_data(config_map: Object, data: dict[str, str]) -> Object:
    return {name: value for name, value in config_map.items() if name != "binaryData"} | {"data": data}
