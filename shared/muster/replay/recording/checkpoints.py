"""Record the objects of a cluster at checkpoints, in the format of the recordings in tests/replays."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import monotonic

from muster.cluster.client import Client
from muster.cluster.errors import ClusterError, Expired, Gone
from muster.cluster.interface import POLICY_NAMESPACE
from muster.cluster.read import each
from muster.objects.resources import CONFIGMAPS, NAMESPACES, TRAINJOBS, Resource, by_kind
from muster.policy.group_labels import GATED, GROUP
from muster.policy.sources.source import CONFIG_MAP, CONFIG_MAP_KEY, LOCKED_KEY
from muster.replay.files import AppendedFile
from muster.replay.recording.checkpoint_items import CheckpointItems, as_yaml
from muster.replay.recording.redaction import redact_runtime_snapshot
from muster.replay.snapshots import Object
from muster.simulator.controllers.trainer.controller import SNAPSHOT_SUFFIX
from muster.simulator.source import SourceSpec, WatchedKind, namespaces_of

SHOWN_SECONDS = 1.0
"""How often the number of objects is shown."""

Show = Callable[[str], object]
"""Shows the present step."""

_log = logging.getLogger(__name__)


class CheckpointWriter:
    """Writes the objects that the sources watch, and those that the functions read besides, as checkpoints.

    A checkpoint is not atomic: the kinds are listed one after the other.

    Args:
        file: the file.
        client: of the cluster.
        specs: the sources whose kinds are listed.
        every: seconds between two checkpoints.
        shown: entered for each checkpoint; what it yields is called with the kind and number of the objects.

    Attributes:
        names: of the checkpoints written so far.
        left_out: the most objects that were left out of one checkpoint, by reason.
    """

    def __init__(
        self,
        file: AppendedFile,
        client: Client,
        specs: Sequence[SourceSpec],
        every: float,
        shown: Callable[[], AbstractContextManager[Show]] = lambda: nullcontext(lambda _step: None),
    ) -> None:
        self._file = file
        self._client = client
        self._specs = specs
        self._every = every
        self._shown = shown
        self._began = self._last = monotonic()
        self._events_at_last = 0
        self.names: list[str] = []
        self.left_out: Counter[str] = Counter()

    def write(self, name: str = "") -> None:
        """Write a checkpoint; without a name it is named after the seconds since the first, `12 s`.

        Raises:
            ClusterError: the API server refused or did not answer; nothing was written.
            OSError: it could not be written.
        """
        seconds = monotonic() - self._began
        checkpoint = name or f"{seconds:.0f} s"
        head = {"apiVersion": "v1", "kind": "List", "moment": checkpoint, "time": round(seconds, 3)}
        items = CheckpointItems()
        with self._shown() as show:
            texts = self._texts(items, show)
        start = "".join(["---\n", as_yaml(head), "items:\n" if texts else "items: []\n"])
        self._file.append(b"".join([start.encode(), *texts]))
        self.left_out |= items.left_out
        self.names.append(checkpoint)

    def try_write(self, name: str = "") -> None:
        """Write a checkpoint; log a warning if the API server refuses, since recording goes on."""
        try:
            self.write(name)
        except ClusterError as error:
            _log.warning("no moment was written: %s", error)

    def write_if_due(self, events: int) -> None:
        """Write a checkpoint if the interval has passed and more events were recorded since the last."""
        if events != self._events_at_last and monotonic() >= self._last + self._every:
            self.try_write()
            self._last, self._events_at_last = monotonic(), events

    def _texts(self, items: CheckpointItems, show: Show) -> list[bytes]:
        """Return the YAML of the objects; only one page of them is parsed at a time."""
        seen: set[str] = set()
        namespaces: dict[str, None] = {}
        trainjobs: list[tuple[str, str]] = []
        texts: list[bytes] = []
        for body in self._watched(show):
            metadata = body["metadata"]
            if metadata["uid"] in seen:
                continue
            seen.add(metadata["uid"])
            namespace = metadata.get("namespace", "")
            namespaces[namespace] = None
            if body["kind"] == TRAINJOBS.kind:
                trainjobs.append((namespace, metadata["name"]))
            texts += items.yaml_of(body)
        show("what belongs to them")
        related = [text for body in self._related(namespaces, trainjobs) for text in items.yaml_of(body)]
        return [*related, *texts]

    def _watched(self, show: Show) -> Iterator[Object]:
        for spec in self._specs:
            for kind in spec.kinds:
                show(kind.resource.kind)
                shown = monotonic()
                objects = self._of_kind(kind, namespaces_of(spec, self._client))
                for number, body in enumerate(objects, start=1):
                    yield body
                    if monotonic() >= shown + SHOWN_SECONDS:
                        show(f"{kind.resource.kind} {number}")
                        shown = monotonic()

    def _of_kind(self, kind: WatchedKind, namespaces: Iterable[str]) -> Iterator[Object]:
        resource = _with_scope(kind.resource)
        # Events of pods end with their gate; the functions list pods by the group label.
        labels = GROUP if kind.selector == GATED else kind.selector
        for namespace in namespaces if resource.namespaced else [""]:
            try:
                yield from self._each(resource, namespace, labels)
            except Gone:  # the API is not served
                return

    def _each(self, resource: Resource, namespace: str, labels: str) -> Iterator[Object]:
        """Yield all objects of a kind; some of them twice if the list expires before its last page."""
        try:
            yield from each(self._client, resource, namespace, labels=labels)
        except Expired:
            yield from each(self._client, resource, namespace, labels=labels)

    def _related(self, namespaces: Iterable[str], trainjobs: Iterable[tuple[str, str]]) -> Iterator[Object]:
        """Yield namespaces, the ConfigMaps that may hold their policies, and the runtimes of TrainJobs."""
        for name in filter(None, namespaces):
            yield from self._get(NAMESPACES, name)
            if name != POLICY_NAMESPACE:
                yield from self._policies(name)
        yield from self._policies(POLICY_NAMESPACE)
        for namespace, name in trainjobs:
            for config_map in self._get(CONFIGMAPS, f"{name}{SNAPSHOT_SUFFIX}", namespace):
                text = (config_map.get("data") or {}).get("runtime", "")
                yield _with_data(config_map, {"runtime": redact_runtime_snapshot(text)})

    def _policies(self, namespace: str) -> Iterator[Object]:
        """Yield the ConfigMap with the policy of a namespace, or with that of the administrator."""
        for config_map in self._get(CONFIGMAPS, CONFIG_MAP, namespace):
            data = config_map.get("data") or {}
            texts = {key: data[key] for key in (CONFIG_MAP_KEY, LOCKED_KEY) if key in data}
            yield _with_data(config_map, texts)

    def _get(self, resource: Resource, name: str, namespace: str = "") -> Iterator[Object]:
        body = self._client.get(resource, name, namespace)
        if body is not None:
            yield body


def _with_scope(resource: Resource) -> Resource:
    """Add the scope to a resource if Muster knows the kind; the YAML of a source does not have it."""
    try:
        known = by_kind(resource.api_version, resource.kind)
    except LookupError:
        return resource
    return Resource(resource.group, resource.version, known.plural, known.kind, namespaced=known.namespaced)


def _with_data(config_map: Object, data: dict[str, str]) -> Object:
    """Return a ConfigMap with other data."""
    fields = {name: value for name, value in config_map.items() if name != "binaryData"}
    return {**fields, "data": data}
