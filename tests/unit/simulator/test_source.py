"""The local source sees and loses the same changes as the real adapter."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any, cast

import pytest

from muster.cluster.errors import Expired, Unavailable
from muster.cluster.http.client import Client
from muster.objects.resources import PODS, Resource
from muster.simulator import source as source_module
from muster.simulator.overlays import UnsupportedManifestError
from muster.simulator.source import Mode, Sender, Source, SourceSpec, WatchedKind

SECONDS = 5
Object = dict[str, Any]


class _Cluster:
    """A scripted API server: `changes` holds changes, errors to raise, and None for the end of a watch."""

    def __init__(self) -> None:
        self.versions = ["10", "90"]
        self.changes: queue.Queue[Any] = queue.Queue()
        self.watches: list[tuple[str, str, str]] = []

    def raw(self, _method: str, _path: str) -> tuple[int, Any]:
        """What every group-version serves."""
        return 200, {"resources": [{"name": name, "namespaced": True} for name in ("jobs", "pods")]}

    def list_with_version(self, *_: Any, **__: Any) -> tuple[list[Object], str]:
        """From where to watch; each list is newer than the one before."""
        return [], self.versions.pop(0)

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


def _pod(name: str, version: str) -> Object:
    metadata = {"name": name, "namespace": "muster-system", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def test_a_watch_goes_on_where_it_was_or_loses_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins at the last version seen, also in a bookmark; after Expired at that of a new list."""
    monkeypatch.setattr(source_module, "RETRY_SECONDS", 0.01)
    cluster, heard = _Cluster(), queue.Queue[str]()

    def broker(headers: Any, _body: bytes) -> int:
        heard.put(f"{headers['Ce-Type'].rpartition('.')[2]} {headers['Ce-Name']}")
        return 202

    kinds = (WatchedKind(PODS, "muster.dev/group"),)
    spec = SourceSpec("pods", "muster-system", Mode.RESOURCE, kinds, None)
    source = Source(spec, cast("Client", cluster), broker, api_server="https://10.96.0.1:443")
    source.start(within=SECONDS)
    for change in (
        ("ADDED", _pod("first", "11")),
        ("BOOKMARK", _pod("", "15")),
        None,
        Unavailable("refused"),
        ("ADDED", _pod("second", "16")),
        Expired("too old", status=410),
        ("ADDED", _pod("after", "91")),
    ):
        cluster.changes.put(change)
    assert [heard.get(timeout=SECONDS) for _ in range(3)] == ["add first", "add second", "add after"]
    path = "/api/v1/namespaces/muster-system/pods"
    assert cluster.watches == [(path, "muster.dev/group", version) for version in ("10", "15", "15", "90")]
    source.stop()
    cluster.changes.put(None)


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
