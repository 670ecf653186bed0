"""`muster record` beside Knative's real adapter: both its ways record the events that the adapter sends."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from muster.replay.recorded_requests import read_events
from muster.simulator.overlays import built, load, of_kind
from muster.testing.cases import envelope
from tests.cluster.cluster import RealCluster
from tests.contract.commands.test_real_source import VERBS, _listener, _live
from tests.support.processes import running, url_in

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

NAMESPACE = "recorded"
OF_EACH_SENDING = {"id", "time"}


def test_both_ways_of_recording_record_the_same_events(bare_137: RealCluster, tmp_path: Path) -> None:
    """One watches the API server as the sources' own account, the other is the adapters' sink.

    Each kind's events are the same lines in the same order, cleaned of the same fields.
    """
    api, watched, sunk = bare_137.api, tmp_path / "watched.jsonl", tmp_path / "sunk.jsonl.gz"
    api.must("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    manifests = [
        source
        for source in of_kind(load(built("cluster")), "ApiServerSource")
        if source["metadata"]["name"] in {"jobs-and-pods", "trainjobs"}
    ]
    sources, listener = tmp_path / "sources.yaml", _listener(bare_137)
    sources.write_text(yaml.safe_dump_all(manifests))
    options = ["--kubeconfig", str(listener), "--sources", str(sources)]
    with (
        running("record", str(sunk), "--listen", "127.0.0.1:0", "--count", "12") as sink,
        running("record", str(watched), *options, "--count", "12") as watcher,
    ):
        url = url_in(sink.line("http://"))
        watcher.line("recording ")
        adapters = [bare_137.add_adapter(manifest, listener, url) for manifest in manifests]
        _live(api, NAMESPACE)
        ended = [sink.wait(), watcher.wait()]
        for adapter in adapters:
            bare_137.stop_process(adapter)
    assert ended == [0, 0]
    for kind, verbs in VERBS.items():
        sent = of_kind_in(sunk, kind)
        assert [str(one["type"]).rpartition(".")[2] for one in sent] == verbs
        assert of_kind_in(watched, kind) == sent


def of_kind_in(path: Path, kind: str) -> list[dict[str, object]]:
    """The recorded events about one kind, in order, without what each sending has of its own."""
    return [
        {name: value for name, value in event.items() if name not in OF_EACH_SENDING}
        for event in map(envelope, read_events(path))
        if event["kind"] == kind
    ]
