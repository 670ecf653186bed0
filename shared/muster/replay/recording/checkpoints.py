"""Record the objects of a cluster at checkpoints, in the format of the recordings in tests/replays."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import monotonic

from muster.cluster.errors import ClusterError, Expired, Gone
from muster.cluster.http.client import Client
from muster.cluster.interface import POLICY_NAMESPACE
from muster.cluster.read import each
from muster.objects.resources import CONFIGMAPS, NAMESPACES, TRAINJOBS, Resource, by_kind
from muster.policy.group_labels import GATED, GROUP
from muster.policy.sources.source import CONFIG_MAP, CONFIG_MAP_KEY, LOCKED_KEY
from muster.replay.files import AppendedFile
from muster.replay.recording.checkpoint_items import CheckpointItems, as_yaml, with_data
from muster.replay.snapshots import Object
from muster.simulator.controllers.trainer.controller import SNAPSHOT_SUFFIX
from muster.simulator.source import SourceSpec, WatchedKind, namespaces_of

SHOWN_SECONDS = 1.0
"""How often the number of objects is shown."""

STOPPED = "moment that was being read when the recording was stopped"
"""Why a whole checkpoint is left out."""

Show = Callable[[str], object]
"""Shows the present step."""

_log = logging.getLogger(__name__)


class _StoppedError(Exception):
    """The recording was stopped while a checkpoint was read."""


class _Steps:
    """Shows what is read of a checkpoint, and ends the reading if the recording is stopped.

    Args:
        show: shows the present step.
        stop: ends the reading once it is set.
    """

    def __init__(self, show: Show, stop: threading.Event) -> None:
        self._show = show
        self._stop = stop
        self._text = ""
        self._number = 0
        self._shown = 0.0

    def begin(self, text: str) -> None:
        """Show what is read from now on, and count it from the beginning.

        Raises:
            _StoppedError: the recording was stopped.
        """
        self.check()
        self._text, self._number = text, 0
        self._show(text)
        self._shown = monotonic()

    def next(self) -> None:
        """Count an object; the number is shown each second.

        Raises:
            _StoppedError: the recording was stopped.
        """
        self.check()
        self._number += 1
        if monotonic() >= self._shown + SHOWN_SECONDS:
            self._show(f"{self._text} {self._number}")
            self._shown = monotonic()

    def check(self) -> None:
        """Go on unless the recording was stopped.

        Raises:
            _StoppedError: it was.
        """
        if self._stop.is_set():
            raise _StoppedError


class CheckpointWriter:
    """Writes the objects that the sources watch, and those that the functions read besides, as checkpoints.

    A checkpoint is not atomic: the kinds are listed one after the other. One that is being read when the
    recording is stopped is left out as a whole.

    Args:
        file: the file.
        client: of the cluster.
        specs: the sources whose kinds are listed.
        every: seconds between two checkpoints.
        shown: entered for each checkpoint; what it yields is called with the kind and number of the objects.
        stop: ends the reading of a checkpoint before the next object once it is set; None for never.

    Attributes:
        names: of the checkpoints written so far.
        left_out: the most objects that were left out of one checkpoint, by reason; STOPPED counts a
            checkpoint.
    """

    def __init__(
        self,
        file: AppendedFile,
        client: Client,
        specs: Sequence[SourceSpec],
        every: float,
        shown: Callable[[], AbstractContextManager[Show]] = lambda: nullcontext(lambda _step: None),
        stop: threading.Event | None = None,
    ) -> None:
        self._file = file
        self._client = client
        self._specs = specs
        self._every = every
        self._shown = shown
        self._stop = stop or threading.Event()
        self._began = self._last = monotonic()
        self._events_at_last = 0
        self.names: list[str] = []
        self.left_out: Counter[str] = Counter()

    @property
    def stopped(self) -> bool:
        """Whether the recording was stopped while a checkpoint was read."""
        return STOPPED in self.left_out

    def write(self, name: str = "") -> None:
        """Write a checkpoint; without a name it is named after the seconds since the first, `12 s`.

        Nothing is written if the recording is stopped meanwhile.

        Raises:
            ClusterError: the API server refused or did not answer; nothing was written.
            OSError: it could not be written.
        """
        seconds = monotonic() - self._began
        checkpoint = name or f"{seconds:.0f} s"
        head = {"apiVersion": "v1", "kind": "List", "moment": checkpoint, "time": round(seconds, 3)}
        items = CheckpointItems()
        try:
            with self._shown() as show:
                texts = self._texts(items, _Steps(show, self._stop))
        except _StoppedError:
            self.left_out[STOPPED] = 1
            return
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

    def _texts(self, items: CheckpointItems, steps: _Steps) -> list[bytes]:
        """Return the YAML of the objects; only one page of them is parsed at a time."""
        seen: set[str] = set()
        namespaces: dict[str, None] = {}
        trainjobs: list[tuple[str, str]] = []
        texts: list[bytes] = []
        for body in self._watched(steps):
            metadata = body["metadata"]
            if metadata["uid"] in seen:
                continue
            seen.add(metadata["uid"])
            namespace = metadata.get("namespace", "")
            namespaces[namespace] = None
            if body["kind"] == TRAINJOBS.kind:
                trainjobs.append((namespace, metadata["name"]))
            texts += items.yaml_of(body)
        steps.begin("what belongs to them")
        return [*self._related(items, steps, namespaces, trainjobs), *texts]

    def _watched(self, steps: _Steps) -> Iterator[Object]:
        for spec in self._specs:
            for kind in spec.kinds:
                if kind.is_of(CONFIGMAPS.group, CONFIGMAPS.plural):
                    continue  # only those with policies and copies of runtimes are written
                steps.begin(kind.resource.kind)
                for body in self._of_kind(kind, namespaces_of(spec, self._client), steps):
                    steps.next()
                    yield body

    def _of_kind(self, kind: WatchedKind, namespaces: Iterable[str], steps: _Steps) -> Iterator[Object]:
        resource = _with_scope(kind.resource)
        # Events of pods end with their gate; the functions list pods by the group label.
        labels = GROUP if kind.selector == GATED else kind.selector
        for namespace in namespaces if resource.namespaced else [""]:
            steps.check()
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

    def _related(
        self,
        items: CheckpointItems,
        steps: _Steps,
        namespaces: Iterable[str],
        trainjobs: Iterable[tuple[str, str]],
    ) -> Iterator[bytes]:
        """Yield namespaces, the ConfigMaps that may hold their policies, and the runtimes of TrainJobs."""
        for name in filter(None, namespaces):
            for body in self._get(steps, NAMESPACES, name):
                yield from items.yaml_of(body)
            if name != POLICY_NAMESPACE:
                yield from self._policies(items, steps, name)
        yield from self._policies(items, steps, POLICY_NAMESPACE)
        for namespace, name in trainjobs:
            for config_map in self._get(steps, CONFIGMAPS, f"{name}{SNAPSHOT_SUFFIX}", namespace):
                yield from items.yaml_of_snapshot(config_map)

    def _policies(self, items: CheckpointItems, steps: _Steps, namespace: str) -> Iterator[bytes]:
        """Yield the ConfigMap with the policy of a namespace, or with that of the administrator."""
        for config_map in self._get(steps, CONFIGMAPS, CONFIG_MAP, namespace):
            data = config_map.get("data") or {}
            texts = {key: data[key] for key in (CONFIG_MAP_KEY, LOCKED_KEY) if key in data}
            yield from items.yaml_of(with_data(config_map, texts))

    def _get(self, steps: _Steps, resource: Resource, name: str, namespace: str = "") -> Iterator[Object]:
        steps.next()
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
