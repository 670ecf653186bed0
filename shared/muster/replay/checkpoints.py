"""The objects of a cluster at several moments, in the form of the recordings in tests/replays."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic

import yaml

from muster.cluster.client import Client
from muster.cluster.errors import ClusterError, Gone
from muster.objects.resources import CONFIGMAPS, NAMESPACES, TRAINJOBS, Resource, by_kind
from muster.policy.homes import CONFIG_MAP, CONFIG_MAP_KEY
from muster.replay.appending import Pieces
from muster.replay.redaction import of_runtime_snapshot, without_secrets
from muster.replay.snapshots import Object, Objects
from muster.simulator.controllers.trainer.controller import SNAPSHOT_SUFFIX
from muster.simulator.source import SourceSpec, WatchedKind, namespaces_of
from muster.yaml_files import SafeDumper

_log = logging.getLogger(__name__)


class Moments:
    """Writes what the sources watch, and what the functions read beside it, each time it is asked to.

    The kinds are listed one after the other, so a moment of a busy cluster lasts as long as the lists do.

    Args:
        pieces: the file.
        client: of the cluster.
        specs: whose kinds are listed.
        every: seconds between two moments that nobody asks for by name.

    Attributes:
        names: of the moments written so far.
    """

    def __init__(self, pieces: Pieces, client: Client, specs: Sequence[SourceSpec], every: float) -> None:
        self._pieces = pieces
        self._client = client
        self._specs = specs
        self._every = every
        self._began = self._last = monotonic()
        self._known = 0
        self.names: list[str] = []

    def take(self, name: str = "") -> None:
        """Write the moment that it is now; without a name it is called by the seconds since the first one.

        Raises:
            ClusterError: the API server refused or did not answer, and nothing was written.
            OSError: it could not be written.
        """
        seconds = monotonic() - self._began
        moment = name or f"{seconds:.0f} s"
        document = {
            "apiVersion": "v1",
            "kind": "List",
            "moment": moment,
            "time": round(seconds, 3),
            "items": [without_secrets(found) for found in self._objects()],
        }
        text = yaml.dump(document, Dumper=SafeDumper, sort_keys=False, explicit_start=True, width=110)
        self._pieces.append(text.encode())
        self.names.append(moment)

    def try_take(self, name: str = "") -> None:
        """As `take`; that the API server refuses it does not end a recording."""
        try:
            self.take(name)
        except ClusterError as error:
            _log.warning("no moment was taken: %s", error)

    def take_if_due(self, events: int) -> None:
        """As `try_take`, where the time has come and more events than at the last one."""
        if events != self._known and monotonic() >= self._last + self._every:
            self.try_take()
            self._last, self._known = monotonic(), events

    def _objects(self) -> Objects:
        found = list({one["metadata"]["uid"]: one for one in self._watched()}.values())
        return [*self._beside(found), *found]

    def _watched(self) -> Iterator[Object]:
        for spec in self._specs:
            for kind in spec.kinds:
                yield from self._of_kind(kind, namespaces_of(spec, self._client))

    def _of_kind(self, kind: WatchedKind, namespaces: Iterable[str]) -> Iterator[Object]:
        resource = _known(kind.resource)
        for namespace in namespaces if resource.namespaced else [""]:
            try:
                yield from self._client.list(resource, namespace, labels=kind.selector)
            except Gone:  # the API is not served
                return

    def _beside(self, found: Objects) -> Iterator[Object]:
        """The namespaces of the objects, and the ConfigMaps in which their policies may be."""
        namespaces = dict.fromkeys(one["metadata"].get("namespace", "") for one in found)
        for name in filter(None, namespaces):
            yield from self._get(NAMESPACES, name)
            for one in self._get(CONFIGMAPS, CONFIG_MAP, name):
                yield _with_data(one, CONFIG_MAP_KEY, (one.get("data") or {}).get(CONFIG_MAP_KEY, ""))
        for owner in found:
            if owner["kind"] == TRAINJOBS.kind:
                metadata = owner["metadata"]
                name = f"{metadata['name']}{SNAPSHOT_SUFFIX}"
                for one in self._get(CONFIGMAPS, name, metadata["namespace"]):
                    text = (one.get("data") or {}).get("runtime", "")
                    yield _with_data(one, "runtime", of_runtime_snapshot(text))

    def _get(self, resource: Resource, name: str, namespace: str = "") -> Iterator[Object]:
        found = self._client.get(resource, name, namespace)
        if found is not None:
            yield found


def _known(resource: Resource) -> Resource:
    """With what Muster knows of it: a source's YAML does not say whether a kind has namespaces."""
    try:
        known = by_kind(resource.api_version, resource.kind)
    except LookupError:
        return resource
    return Resource(resource.group, resource.version, known.plural, known.kind, namespaced=known.namespaced)


def _with_data(found: Object, key: str, text: str) -> Object:
    """A ConfigMap with one key of its data alone."""
    kept = {name: value for name, value in found.items() if name != "binaryData"}
    return {**kept, "data": {key: text}}
