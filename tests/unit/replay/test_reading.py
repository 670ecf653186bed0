"""Events and objects are read from files in several forms; what cannot be read is named by its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from muster.events.parse import STRUCTURED
from muster.objects.meta import ObjectRef
from muster.replay.files import BadFileError, RecordedRequest, read_events
from muster.replay.snapshots import (
    RecordedObjects,
    choose,
    choose_for,
    objects_of_events,
    read_snapshots,
)

EVENT = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t", "data": {"a": 1}}


def a_file(folder: Path, name: str, text: str) -> Path:
    """A file with a text."""
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("e.jsonl", f"{json.dumps(EVENT)}\n\n{json.dumps(EVENT)}\n", ["e.jsonl:1", "e.jsonl:3"]),
        ("e.jsonl.gz", json.dumps(EVENT), ["e.jsonl.gz:1"]),
        ("e.json", json.dumps([EVENT, EVENT]), ["e.json[0]", "e.json[1]"]),
        (
            "e.yaml",
            "specversion: '1.0'\n---\nspecversion: '1.0'\n",
            ["e.yaml: document 1", "e.yaml: document 2"],
        ),
    ],
)
def test_events_are_read(tmp_path: Path, name: str, text: str, places: list[str]) -> None:
    """As JSON Lines, a batch or a YAML stream."""
    events = read_events(a_file(tmp_path, name, text))
    assert [event.location.removeprefix(f"{tmp_path}/") for event in events] == places


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.jsonl", "{", "e.jsonl:1: is not JSON"),
        ("e.json", "[1]", r"e.json\[0\]: an event is a CloudEvent"),
        ("e.json", "[]", "has no event"),
        ("job.yaml", "{apiVersion: batch/v1, kind: Job}", "job.yaml: is a Kubernetes object, Job, and not a"),
        ("e.yaml", "a: [", r"e.yaml:\d:\d: is not YAML"),
        ("e.jsonl.gz.txt", "{", "is not YAML"),
    ],
)
def test_what_is_no_event_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    """With file, and line or place."""
    with pytest.raises(BadFileError, match=message):
        read_events(a_file(tmp_path, name, text))
    with pytest.raises(BadFileError, match="No such file"):
        read_events(tmp_path / "gone.json")


MOMENTS = """
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: null}
---
{apiVersion: v1, kind: List, moment: start, items: [{apiVersion: batch/v1, kind: Job, metadata: {name: a}}]}
---
apiVersion: v1
kind: List
moment: all bound
items:
- {apiVersion: batch/v1, kind: Job, metadata: {name: a, uid: old}}
- {apiVersion: v1, kind: Pod, metadata: {name: a-0}}
---
apiVersion: v1
kind: List
moment: made again
items:
- {apiVersion: batch/v1, kind: Job, metadata: {name: a, uid: new}}
- {apiVersion: v1, kind: Pod, metadata: {name: a-0}}
"""


def names(snapshot: RecordedObjects) -> list[str]:
    """The names of its objects."""
    return [body["metadata"]["name"] for body in snapshot.objects]


def test_moments_share_the_objects_outside_of_them(tmp_path: Path) -> None:
    """A moment is chosen by name, or by the objects of events: the first that has them and a pod.

    An object that was made again under its name is another one.
    """
    moments = read_snapshots([a_file(tmp_path, "o.yaml", MOMENTS)])
    assert [names(moment) for moment in moments] == [["node-1", "a"], *[["node-1", "a", "a-0"]] * 2]
    assert choose(moments, "start") is moments[0]
    assert choose_for([ObjectRef("batch/v1", "Job", "", "a", "old")], moments, "") is moments[1]
    assert choose_for([ObjectRef("batch/v1", "Job", "", "a", "new")], moments, "") is moments[2]
    assert choose_for([ObjectRef("batch/v1", "Job", "", "a", "")], moments, "") is moments[1]
    with pytest.raises(LookupError, match="'start', 'all bound'"):
        choose(moments, "end")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", r"o.yaml: document 1: \[0\]: is not a Kubernetes object"),
        ("{kind: Job, metadata: {name: a}}", "apiVersion: is missing"),
        ("{apiVersion: v1, kind: Job}", "metadata: is missing"),
        (
            "{kind: List, items: [{apiVersion: v1, kind: Job, metadata: {name: 1}}]}",
            r"items\[0\]: metadata.name: must",
        ),
    ],
)
def test_what_is_no_object_is_named(tmp_path: Path, text: str, message: str) -> None:
    """With file, document and field."""
    with pytest.raises(BadFileError, match=message):
        read_snapshots([a_file(tmp_path, "o.yaml", text)])


def test_objects_of_events_are_without_deleted_ones() -> None:
    """Jobs, JobSets and TrainJobs alone, as the functions may make the others."""

    def event(verb: str, name: str, uid: str = "1") -> RecordedRequest:
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "n", "uid": uid},
        }
        headers = {
            "ce-specversion": "1.0",
            "ce-id": "1",
            "ce-source": "/x",
            "ce-type": f"dev.knative.apiserver.resource.{verb}",
            "content-type": "application/json",
        }
        return RecordedRequest(headers, json.dumps(body).encode(), "e")

    stream = [event("add", "a"), event("update", "a"), event("add", "b"), event("delete", "b")]
    stream.append(event("add", "b", uid="2"))
    assert objects_of_events([*stream, RecordedRequest({"content-type": STRUCTURED}, b"{}", "e")]) == [
        ObjectRef("batch/v1", "Job", "n", "a", "1"),
        ObjectRef("batch/v1", "Job", "n", "b", "2"),
    ]
