"""The objects beside a recording: the kinds that sources watch and functions read, without secrets."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.cluster.errors import Expired
from muster.cluster.http.client import Client
from muster.cluster.paging import Page
from muster.kustomize import load, of_kind
from muster.objects import yaml_files
from muster.objects.resources import Resource
from muster.replay.files import AppendedFile
from muster.replay.recording.checkpoint_items import DENSE, SECRET
from muster.replay.recording.checkpoints import STOPPED, CheckpointWriter
from muster.replay.snapshots import Object, read_snapshots
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.source import SourceSpec, WatchedKind
from muster.simulator.source.events import guess_resource

SPECS = tuple(map(SourceSpec.from_manifest, of_kind(load(), "ApiServerSource")))
ENV = [{"name": "TOKEN", "value": "hunter2"}]


def an_object(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    """Any object."""
    metadata = {"name": name, "uid": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def a_pod(name: str, **labels: str) -> Object:
    """A pod with a token in its environment."""
    made = an_object("v1", "Pod", name, "team", spec={"containers": [{"name": "main", "env": ENV}]})
    made["metadata"]["labels"] = labels
    return made


CLUSTER = [
    an_object("v1", "Namespace", "team"),
    an_object("v1", "Namespace", "elsewhere"),
    an_object("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "torch"),
    an_object("trainer.kubeflow.org/v1alpha1", "TrainJob", "llama", "team", spec={"trainer": {"env": ENV}}),
    a_pod("labelled", **{"muster.dev/group": "trainer"}),
    a_pod("unlabelled"),
    an_object("v1", "ConfigMap", "muster-policy", "team", data={"policy": "workload: {}", "more": "hunter2"}),
    an_object("v1", "Namespace", "muster-system"),
    an_object("v1", "ConfigMap", "muster-policy", "muster-system", data={"locked": "{}", "more": "hunter2"}),
    an_object(
        "v1", "ConfigMap", "llama-runtime-snapshot", "team", data={"runtime": yaml.safe_dump({"env": ENV})}
    ),
    an_object("v1", "ConfigMap", "other", "team", data={"password": "hunter2"}),
]


@pytest.fixture
def moments(tmp_path: Path) -> Iterator[CheckpointWriter]:
    """Of the cluster above."""
    with ApiServer() as server:
        server.load(resource_definitions())
        server.load(CLUSTER)
        pieces = AppendedFile(tmp_path / "objects.yaml")
        yield CheckpointWriter(pieces, Client.for_server(server.url), SPECS, every=0.0)
        pieces.close()


def names(objects: list[Object]) -> set[str]:
    """`Pod labelled`."""
    return {f"{obj['kind']} {obj['metadata']['name']}" for obj in objects}


def test_a_moment_has_the_objects_that_sources_watch_and_functions_read(
    moments: CheckpointWriter, tmp_path: Path
) -> None:
    """The selectors hold; of namespaces and ConfigMaps only those that an owner has to do with."""
    moments.write("start")
    moments.write("end")
    start, end = read_snapshots([tmp_path / "objects.yaml"])
    assert (start.checkpoint, end.checkpoint) == ("start", "end")
    assert (
        names(start.objects)
        == names(end.objects)
        == {
            "Namespace team",
            "ClusterTrainingRuntime torch",
            "TrainJob llama",
            "Pod labelled",
            "ConfigMap muster-policy",
            "ConfigMap llama-runtime-snapshot",
        }
    )


def test_a_moment_is_one_document_of_yaml(moments: CheckpointWriter, tmp_path: Path) -> None:
    """As if it had been written at once, also a moment without objects."""
    moments.write("start")
    text = (tmp_path / "objects.yaml").read_text()
    (document,) = yaml_files.load_all(text)
    assert list(document) == ["apiVersion", "kind", "moment", "time", "items"]
    assert text == yaml.dump(
        document, Dumper=yaml_files.SafeDumper, sort_keys=False, explicit_start=True, width=110
    )


def written(pods: list[Object], path: Path) -> tuple[int, int]:
    """Write a moment with pods; return the peak of memory meanwhile, and the bytes of the file."""
    with ApiServer() as server:
        server.load([*resource_definitions(), an_object("v1", "Namespace", "team"), *pods])
        file = AppendedFile(path)
        tracemalloc.start()
        CheckpointWriter(file, Client.for_server(server.url), SPECS, every=0.0).write("start")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        file.close()
    return peak, path.stat().st_size


@pytest.mark.thorough
def test_objects_become_yaml_one_by_one(tmp_path: Path) -> None:
    """Their YAML takes up to two hundred times the memory of their JSON while it is made."""
    pods = [a_pod(f"pod-{number}", **{"muster.dev/group": "a"}) for number in range(4)]
    for pod in pods:
        pod["spec"]["containers"][0]["env"] = [{"name": "", "valueFrom": {}}] * 1_000
    (first, _), (peak, size) = (written(pods[:count], tmp_path / f"{count}.yaml") for count in (1, 4))
    assert peak - first < 15 * size


@pytest.mark.thorough
def test_one_page_of_objects_is_kept_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed, they take ten times the memory of their YAML and more."""
    monkeypatch.setattr("muster.cluster.http.client.PAGE", 1)
    pods = [a_pod(f"pod-{number}", **{"muster.dev/group": "a"}) for number in range(4)]
    for pod in pods:
        pod["spec"]["containers"][0]["env"] = [{"name": ""}] * 4_000
    (first, _), (peak, size) = (written(pods[:count], tmp_path / f"{count}.yaml") for count in (1, 4))
    assert peak - first < 5 * size


def test_a_list_that_expires_is_read_again(
    moments: CheckpointWriter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its objects are written once."""
    page = Client.page
    expired: list[str] = []

    def expiring(client: Client, resource: Resource, *arguments: Any, **options: Any) -> Page:
        if options.get("token"):
            expired.append(resource.kind)
            raise Expired("too old", status=410)
        found = page(client, resource, *arguments, **options)
        more = resource.kind == "TrainJob" and not expired
        return replace(found, token="next") if more else found  # noqa: S106 - of a page

    monkeypatch.setattr(Client, "page", expiring)
    moments.write("start")
    (start,) = read_snapshots([tmp_path / "objects.yaml"])
    assert expired == ["TrainJob"]
    assert [body["kind"] for body in start.own].count("TrainJob") == 1


def test_the_kinds_are_shown_while_they_are_read(
    moments: CheckpointWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the number of their objects each second, then that of requests for what belongs to them."""
    monkeypatch.setattr("muster.replay.recording.checkpoints.SHOWN_SECONDS", 0.0)
    steps: list[str] = []
    monkeypatch.setattr(moments, "_shown", lambda: nullcontext(steps.append))
    moments.write("start")
    kinds = {kind.resource.kind for spec in SPECS for kind in spec.kinds}
    related = ["what belongs to them", *(f"what belongs to them {number}" for number in range(1, 5))]
    assert set(steps) == {*kinds, "Pod 1", "TrainJob 1", "ClusterTrainingRuntime 1", *related}


@pytest.mark.parametrize("last", ["Pod", "TrainJob 1", "what belongs to them", "what belongs to them 3"])
def test_a_moment_ends_where_the_recording_is_stopped(
    moments: CheckpointWriter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, last: str
) -> None:
    """After one more request at most; nothing of it is written, and the moments before it stay."""
    monkeypatch.setattr("muster.replay.recording.checkpoints.SHOWN_SECONDS", 0.0)
    moments.write("start")
    before = (tmp_path / "objects.yaml").read_bytes()
    later: list[str] = []
    receive = Client.receive

    def counted(client: Client, method: str, path: str, *arguments: Any, **options: Any) -> Any:
        if moments._stop.is_set():
            later.append(path)
        return receive(client, method, path, *arguments, **options)

    def show(step: str) -> None:
        if step == last:
            moments._stop.set()

    monkeypatch.setattr(Client, "receive", counted)
    monkeypatch.setattr(moments, "_shown", lambda: nullcontext(show))
    assert not moments.stopped
    moments.write("end")
    assert moments.stopped
    assert (moments.names, dict(moments.left_out)) == (["start"], {STOPPED: 1})
    assert (tmp_path / "objects.yaml").read_bytes() == before
    assert len(later) <= 1


def test_left_out_objects_are_counted_in_each_moment_anew(
    moments: CheckpointWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same object is not counted twice."""
    monkeypatch.setattr("muster.replay.recording.checkpoint_items.MOST_VALUES", 3)
    moments.write("start")
    moments.write("end")
    assert dict(moments.left_out) == {DENSE: 7}


def test_nothing_secret_is_in_a_moment(moments: CheckpointWriter, tmp_path: Path) -> None:
    """Not in the Trainer's copy of a runtime either, nor in keys of a ConfigMap that are not Muster's."""
    moments.write("start")
    text = (tmp_path / "objects.yaml").read_text()
    assert "hunter2" not in text
    assert text.count("<left out>") == 3
    (world,) = read_snapshots([tmp_path / "objects.yaml"])
    policies = {
        obj["metadata"]["namespace"]: obj["data"]
        for obj in world.objects
        if obj["metadata"]["name"] == "muster-policy"
    }
    assert policies == {"team": {"policy": "workload: {}"}, "muster-system": {"locked": "{}"}}


def test_watched_secrets_and_config_maps_are_in_no_moment(moments: CheckpointWriter, tmp_path: Path) -> None:
    """However a source spells them; of ConfigMaps there are only those with a policy, or of a TrainJob."""
    moments._client.create(
        guess_resource("v1", "Secret"),
        an_object("v1", "Secret", "login", "team", stringData={"password": "hunter2"}),
        manager="test",
    )
    kinds = [WatchedKind(guess_resource("v1", kind)) for kind in ("SECRET", "configMAP")]
    moments._specs = (*SPECS, replace(SPECS[0], kinds=tuple(kinds)))
    moments.write("start")
    assert dict(moments.left_out) == {SECRET: 1}
    text = (tmp_path / "objects.yaml").read_text()
    assert "hunter2" not in text
    assert "name: login" not in text
    assert "name: other" not in text


def test_a_moment_is_taken_only_where_an_event_came(moments: CheckpointWriter) -> None:
    """A quiet cluster is not listed again and again."""
    for events in (0, 1, 1, 2):
        moments.write_if_due(events)
    assert len(moments.names) == 2


def test_an_api_server_that_goes_away_does_not_end_the_recording(
    moments: CheckpointWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment is left out; at the beginning it is an error."""
    monkeypatch.setattr(moments, "_client", Client.for_server("http://127.0.0.1:1"))
    moments.try_write("end")
    assert moments.names == []
