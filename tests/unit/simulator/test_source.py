"""The local source sees and loses the same changes as the real adapter."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from muster.cluster.errors import Expired, Unavailable
from muster.cluster.http.client import Client
from muster.objects.resources import JOBS, PODS, Resource
from muster.simulator.overlays import UnsupportedManifestError
from muster.simulator.source import Mode, Sender, Source, SourceSpec, WatchedKind
from muster.simulator.source import source as source_module
from muster.simulator.source.wiring import guess_resource

SECONDS = 5
Object = dict[str, Any]


@dataclass
class _Cluster:
    """A scripted API server: `changes` holds changes, errors to raise, and None for the end of a watch."""

    versions: list[str] = field(default_factory=lambda: ["10"])
    changes: queue.Queue[Any] = field(default_factory=queue.Queue)
    watches: list[tuple[str, str, str]] = field(default_factory=list)

    def raw(self, _method: str, _path: str) -> tuple[int, Any]:
        """What every group-version serves."""
        return 200, {"resources": [{"name": name, "namespaced": True} for name in ("jobs", "pods")]}

    def list_version(self, *_: Any, **__: Any) -> str:
        """From where to watch; each list is newer than the one before."""
        return self.versions.pop(0) if len(self.versions) > 1 else self.versions[0]

    def watch(
        self, resource: Resource, namespace: str = "", *, labels: str, resource_version: str, **_: Any
    ) -> Iterator[tuple[str, Object]]:
        """The scripted changes."""
        self.watches.append((resource.path(namespace=namespace), labels, resource_version))
        while True:
            change = self.changes.get(timeout=SECONDS)
            if change is None:
                return
            if isinstance(change, Exception):
                raise change
            yield change


class _Broker:
    """A sink that keeps what it takes."""

    def __init__(self) -> None:
        self.events: queue.Queue[dict[str, str]] = queue.Queue()

    def __call__(self, headers: Any, _body: bytes) -> int:
        self.events.put(dict(headers))
        return 202

    def next(self) -> tuple[str, str]:
        """Verb and name of the next event."""
        event = self.events.get(timeout=SECONDS)
        return event["Ce-Type"].rpartition(".")[2], event["Ce-Name"]


def _job(name: str, version: str) -> Object:
    metadata = {"name": name, "namespace": "team-a", "resourceVersion": version}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}


def _spec(resource: Resource = JOBS, *, selector: str = "", namespaces: str | None = "") -> SourceSpec:
    kinds = (WatchedKind(guess_resource(resource.api_version, resource.kind), selector),)
    return SourceSpec("jobs", "muster-system", Mode.RESOURCE, kinds, namespaces)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Source, _Broker]]]:
    """Start sources, with pauses too short to matter, and stop them afterwards."""
    monkeypatch.setattr(source_module, "RETRY_SECONDS", 0.01)
    running: list[tuple[Source, _Cluster]] = []

    def start(cluster: _Cluster, spec: SourceSpec | None = None) -> tuple[Source, _Broker]:
        broker = _Broker()
        source = Source(spec or _spec(), cast("Client", cluster), broker, api_server="https://10.96.0.1:443")
        running.append((source, cluster))
        source.start(within=SECONDS)
        return source, broker

    yield start
    for source, cluster in running:
        source.stop()
        cluster.changes.put(None)


Start = Callable[..., tuple[Source, _Broker]]


def test_a_watch_that_ends_goes_on_where_it_was(started: Start) -> None:
    """The next watch begins at the last version seen, also in a bookmark, or before a connection was lost."""
    cluster = _Cluster()
    _, broker = started(cluster, _spec(PODS, selector="muster.dev/group", namespaces=None))
    cluster.changes.put(("ADDED", _job("first", "11")))
    cluster.changes.put(("BOOKMARK", _job("", "15")))
    cluster.changes.put(None)
    cluster.changes.put(Unavailable("refused"))
    cluster.changes.put(("ADDED", _job("second", "16")))
    assert [broker.next(), broker.next()] == [("add", "first"), ("add", "second")]
    path = "/api/v1/namespaces/muster-system/pods"
    assert cluster.watches == [(path, "muster.dev/group", version) for version in ("10", "15", "15")]


def test_a_watch_that_cannot_go_on_loses_the_changes_in_between(started: Start) -> None:
    """A new list says where to go on, and its objects are not sent."""
    cluster = _Cluster(versions=["10", "90"])
    _, broker = started(cluster)
    cluster.changes.put(Expired("too old", status=410))
    cluster.changes.put(("ADDED", _job("after", "91")))
    assert broker.next() == ("add", "after")
    assert [version for _, _, version in cluster.watches] == ["10", "90"]


@pytest.mark.parametrize(
    ("statuses", "sent", "waits"),
    [
        ([202], True, []),
        ([503, 0, 202], True, [0.1, 0.2]),
        ([503] * 6, False, [0.1, 0.2, 0.4, 0.8, 1.6]),
        ([500], False, []),
    ],
)
def test_an_event_is_dropped_after_six_attempts(statuses: list[int], sent: bool, waits: list[float]) -> None:
    """Or at once, if the broker answers with 500; all attempts have one id."""
    answers, ids, waited = list(statuses), set[str](), list[float]()

    def sink(headers: Any, _body: bytes) -> int:
        ids.add(headers["Ce-Id"])
        return answers.pop(0)

    sender = Sender(sink, wait=waited.append, headers={"Kn-Namespace": "n"})
    assert sender.send({"Ce-Type": "t", "Ce-Subject": "s"}, b"") == sent
    assert (answers, waited, len(ids)) == ([], waits, 1)


@pytest.mark.parametrize("change", [{"owner": {}}, {"filters": []}, {"mode": "Everything"}])
def test_a_source_that_is_not_simulated_is_refused(change: dict[str, Any]) -> None:
    """Its name is in the error."""
    manifest = {"metadata": {"name": "mine", "namespace": "n"}, "spec": {"resources": [], **change}}
    with pytest.raises(UnsupportedManifestError, match="ApiServerSource mine"):
        SourceSpec.from_manifest(manifest)
