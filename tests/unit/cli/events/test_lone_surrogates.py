"""`muster replay` of events with halves of characters, which JSON can have and UTF-8 cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.replay.files import AppendedFile
from muster.replay.recorded_requests import read_events
from muster.replay.recording.events import EventRecorder
from muster.replay.replay import event_of
from tests.unit.cli.conftest import Filed, Muster
from tests.unit.cli.events.test_dense_events import HOW
from tests.unit.cli.sample import a_capture, a_job, an_event

HALF = "a\ud800"
STRUCTURED = {"content-type": "application/cloudevents+json"}
NAMES = ("id", "source", "type", "subject", "dataschema", "extra", "datacontenttype")
DATA = an_event()["data"] | {"half": HALF}


def broken(name: str) -> dict[str, Any]:
    """An event with half a character in an attribute and in its data."""
    value = {"dataschema": f"http://example.com/{HALF}", "datacontenttype": f'application/json;a="{HALF}"'}
    return an_event() | {name: value.get(name, HALF), "data": DATA}


@pytest.mark.thorough
@pytest.mark.parametrize("options", HOW.values(), ids=HOW)
@pytest.mark.parametrize("name", NAMES)
def test_they_are_no_bug(muster: Muster, filed: Filed, name: str, options: list[str]) -> None:
    """In a header, in a body that is a string, and in a file of CloudEvents, whose data need not be JSON."""
    body = json.dumps(broken(name))
    events = [
        a_capture(broken(name)) | {"body": DATA},
        {"headers": STRUCTURED, "body": body},
        broken(name),
        broken(name) | {"datacontenttype": "text/plain", "data": HALF},
        {"headers": STRUCTURED, "body": json.dumps(an_event() | {"datacontenttype": "a/b", "data": HALF})},
    ]
    for event in events:
        result = muster("replay", filed("e.json", event), *options)
        assert result.exit_code in {0, 1}, (event, result.stderr)
        assert "bug" not in result.stderr


@pytest.mark.parametrize("name", NAMES)
def test_attributes_are_those_that_knative_would_read(filed: Filed, name: str) -> None:
    """Go's JSON has U+FFFD in place of half a character; data stay as they were sent."""
    (request,) = read_events(Path(filed("e.json", broken(name))))
    event = event_of(request)
    assert "\ufffd" in event[name] or "%EF%BF%BD" in event[name]
    assert json.loads(event.data)["half"] == HALF


@pytest.mark.parametrize("name", NAMES)
def test_what_is_recorded_can_be_replayed(tmp_path: Path, name: str) -> None:
    """One such event made the whole file unreadable."""
    path = tmp_path / "events.jsonl"
    file = AppendedFile(path)
    recorder = EventRecorder(file)
    assert recorder.receive(STRUCTURED, json.dumps(broken(name)).encode())
    file.close()
    assert recorder.recorded.total() == 1
    (request,) = read_events(path)
    assert json.loads(event_of(request).data)["half"] == HALF


def test_a_job_named_with_half_a_character_is_refused_in_a_line(muster: Muster, filed: Filed) -> None:
    """No API server stores it."""
    job = a_job()
    job["metadata"]["name"] = HALF
    result = muster("replay", filed("e.json", broken("id")), "--objects", filed("o.json", job))
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "bug" not in result.stderr
