"""A recording contains complete lines of complete events, and ends when it is full."""

from __future__ import annotations

import base64
import errno
import gzip
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.replay.files import AppendedFile
from muster.replay.recorded_requests import MOST_VALUES, read_events
from muster.replay.recording.events import (
    CONFIG_MAP,
    DEEP,
    DENSE,
    LONG,
    MOST_CHARACTERS,
    MOST_COUNTS,
    NOT_JSON,
    OTHERS,
    SECRET,
    EventRecorder,
)
from muster.replay.recording.redaction import without_secrets
from muster.replay.snapshots import Object
from muster.simulator.broker import CloudEvent

JOB: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "team", "name": "sweep"}}
ATTRIBUTES = {
    "specversion": "1.0",
    "id": "1",
    "source": "https://kubernetes",
    "type": "dev.knative.apiserver.resource.update",
    "apiversion": "batch/v1",
    "kind": "Job",
    "name": "sweep",
    "namespace": "team",
    "datacontenttype": "application/json",
}


def an_event(data: Any = JOB, **attributes: str) -> CloudEvent:
    """What ApiServerSource sends about a Job; bytes as data are sent as they are."""
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return CloudEvent({**ATTRIBUTES, **attributes}, body)


@pytest.fixture
def pieces(tmp_path: Path) -> Iterator[AppendedFile]:
    """A file that is not packed."""
    made = AppendedFile(tmp_path / "events.jsonl")
    yield made
    made.close()


def lines(path: Path) -> list[dict[str, Any]]:
    """The events of a file."""
    return [json.loads(capture.body) for capture in read_events(path)]


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_an_event_is_a_line_as_it_was_sent(tmp_path: Path, name: str) -> None:
    """Attributes and data, in order of arrival, as `muster replay` and the recordings in tests have them."""
    pieces = AppendedFile(tmp_path / name)
    recording = EventRecorder(pieces)
    assert recording.take(an_event())
    assert recording.take(an_event(id="2", type="dev.muster.sweep", kind="", name="", namespace=""))
    pieces.close()
    first, second = lines(tmp_path / name)
    assert first == {**ATTRIBUTES, "data": JOB}
    assert second["id"] == "2"
    assert dict(recording.recorded) == {("Job", "update"): 1, ("dev.muster.sweep", ""): 1}


def test_a_broker_s_own_attributes_are_left_out(pieces: AppendedFile) -> None:
    """Sent again, the event gets them anew; with an old count of hops it might be dropped."""
    EventRecorder(pieces).take(an_event(knativebrokerttl="254", knativearrivaltime="2026-11-21T08:17:25Z"))
    assert lines(pieces.path) == [{**ATTRIBUTES, "data": JOB}]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        pytest.param(
            an_event({"data": {}}, kind="Secret", apiversion="v1"), SECRET, id="a Secret by its kind"
        ),
        pytest.param(an_event({"data": {}}, kind="ConfigMap", apiversion="v1"), CONFIG_MAP, id="a ConfigMap"),
        pytest.param(
            an_event({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA=="}}, kind="", apiversion=""),
            SECRET,
            id="a Secret in an event that does not say so",
        ),
        pytest.param(an_event(b"{", id="2"), NOT_JSON, id="data that is broken JSON"),
        pytest.param(an_event(b"\x00", datacontenttype="image/png"), NOT_JSON, id="data of another type"),
    ],
)
def test_secret_and_unreadable_events_are_accepted_and_left_out(
    pieces: AppendedFile, event: CloudEvent, why: str
) -> None:
    """The sender did nothing wrong, and a broker would store what is refused as a dead letter."""
    recording = EventRecorder(pieces)
    assert recording.take(event)
    assert dict(recording.left_out) == {why: 1}
    assert pieces.path.read_bytes() == b""


def structured(**members: Any) -> tuple[dict[str, str], bytes]:
    """Headers and body of an event in structured mode."""
    body = json.dumps({"specversion": "1.0", "id": "1", "source": "s", "type": "t", **members})
    return {"content-type": "application/cloudevents+json"}, body.encode()


DENSE_DATA: list[Any] = [{}] * (MOST_VALUES + 1)
BINARY = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t"}


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param(*structured(data=DENSE_DATA), id="structured"),
        pytest.param(BINARY, json.dumps(DENSE_DATA).encode(), id="binary"),
        pytest.param(
            *structured(data_base64=base64.b64encode(json.dumps(DENSE_DATA).encode()).decode()), id="base64"
        ),
    ],
)
def test_an_event_of_too_many_values_is_left_out_before_it_is_parsed(
    pieces: AppendedFile, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], body: bytes
) -> None:
    """8 MiB of `{"a":[]}` take 500 MiB, and a line of them cannot be replayed."""
    monkeypatch.setattr(CloudEvent, "structured", None)
    recording = EventRecorder(pieces)
    assert recording.receive(headers, body)
    assert dict(recording.left_out) == {DENSE: 1}
    assert pieces.path.read_bytes() == b""


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_an_event_that_is_nested_too_deeply_is_left_out(pieces: AppendedFile, mode: str) -> None:
    """It is no fault of the recorder, so that a broker sends it once."""
    deep = b"[" * 50_000 + b"]" * 50_000
    headers, body = structured(data=0)
    request = (headers, body.replace(b"0}", deep + b"}")) if mode == "structured" else (BINARY, deep)
    recording = EventRecorder(pieces)
    assert recording.receive(*request)
    assert dict(recording.left_out) == {DEEP: 1}


def test_an_event_with_a_long_attribute_is_left_out(pieces: AppendedFile) -> None:
    """The functions refuse it, and the recorder would keep and print a type of 8 MiB."""
    recording = EventRecorder(pieces)
    assert recording.receive(*structured(type="t" * MOST_CHARACTERS))
    assert recording.receive(*structured(type="t" * (MOST_CHARACTERS + 1)))
    assert recording.receive(*structured(**{"t" * (MOST_CHARACTERS + 1): "a"}))
    assert (recording.recorded.total(), dict(recording.left_out)) == (1, {LONG: 2})


def test_kinds_and_types_are_counted_by_short_names(pieces: AppendedFile) -> None:
    """The recorder keeps them until its end, and prints them."""
    recording = EventRecorder(pieces)
    for end in ("a", "b"):
        recording.take(an_event(type="t" * 64 + end, kind=""))
        recording.take(an_event(kind="K" * 64 + end, type="dev.knative.apiserver.resource." + "v" * 64 + end))
    assert dict(recording.recorded) == {("t" * 64, ""): 2, ("K" * 64, "v" * 64): 2}


def test_kinds_and_types_beyond_the_first_are_counted_together(pieces: AppendedFile) -> None:
    """Those that are known keep their own count."""
    recording = EventRecorder(pieces)
    for number in [*range(MOST_COUNTS + 10), 0]:
        recording.take(an_event(type=f"t{number}", kind=""))
    assert len(recording.recorded) == MOST_COUNTS + 1
    assert recording.recorded[OTHERS, ""] == 10
    assert recording.recorded["t0", ""] == 2


def test_one_event_is_in_work_at_a_time(pieces: AppendedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed and copied it takes some thirty times its bytes, and the sink has four threads."""
    in_work = threading.Lock()
    from_http = CloudEvent.from_http
    alone: list[bool] = []

    def during(call: Callable[..., Any], *arguments: Any) -> Any:
        alone.append(in_work.acquire(blocking=False))
        time.sleep(0.001)
        result = call(*arguments)
        if alone[-1]:
            in_work.release()
        return result

    monkeypatch.setattr(CloudEvent, "from_http", lambda *request: during(from_http, *request))
    monkeypatch.setattr(
        "muster.replay.recording.events.without_secrets", lambda value: during(without_secrets, value)
    )
    recording = EventRecorder(pieces)
    threads = [threading.Thread(target=recording.receive, args=structured(data={})) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recording.recorded.total() == 8
    assert all(alone)


def test_objects_are_cleaned(pieces: AppendedFile) -> None:
    """As tests/unit/replay/test_redaction.py shows in full."""
    job: Object = {
        **JOB,
        "metadata": {**JOB["metadata"], "managedFields": [{}]},
        "env": [{"name": "A", "value": "x"}],
    }
    EventRecorder(pieces).take(an_event(job))
    (line,) = lines(pieces.path)
    assert line["data"] == {**JOB, "env": [{"name": "A", "value": "<left out>"}]}


def test_logins_in_attributes_are_removed(pieces: AppendedFile) -> None:
    """What is left is an event: its source and its schema are URIs."""
    url = "https://me:hunter2@example.com/a?token=hunter2"
    EventRecorder(pieces).take(an_event(source=url, subject=url, dataschema=url, mine=url))
    (line,) = lines(pieces.path)
    cleaned = "https://%3Cleft%20out%3E@example.com/a?%3Cleft%20out%3E"
    assert {line[name] for name in ("source", "subject", "dataschema", "mine")} == {cleaned}
    assert CloudEvent.from_structured(line)["source"] == cleaned


def test_a_string_may_contain_unicode_line_ends(pieces: AppendedFile) -> None:
    """One event stays one line."""
    EventRecorder(pieces).take(an_event({**JOB, "said": "a\u2028b\u0085c"}))
    (line,) = lines(pieces.path)
    assert line["data"]["said"] == "a\u2028b\u0085c"


def test_a_full_recording_takes_nothing_more_and_says_so_once(pieces: AppendedFile) -> None:
    """Events that are left out do not count."""
    messages: list[str] = []
    recording = EventRecorder(pieces, limit=2, full=lambda: messages.append("full"))
    secret = an_event(kind="Secret", apiversion="v1")
    taken = [recording.take(event) for event in (an_event(), secret, secret, an_event(), an_event(), secret)]
    assert taken == [True, True, True, True, False, False]
    assert len(lines(pieces.path)) == 2
    assert messages == ["full"]


def test_events_of_several_threads_do_not_run_into_each_other(tmp_path: Path) -> None:
    """Every watched kind has a thread of its own."""
    packed = AppendedFile(tmp_path / "events.jsonl.gz")
    recording = EventRecorder(packed)

    def send(name: str) -> None:
        for number in range(50):
            recording.take(an_event(id=f"{name}-{number}"))

    threads = [threading.Thread(target=send, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    packed.close()
    assert recording.recorded.total() == 200
    assert len({line["id"] for line in lines(packed.path)}) == 200


class _FullDisk:
    """A file of which every write stops in the middle, once the disk is full."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.full = False

    def write(self, content: Any) -> int:
        if not self.full:
            return int(self._file.write(content))
        if len(content) < 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(self._file.write(content[: len(content) // 2]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_line_that_does_not_fit_on_the_disk_is_not_begun(
    pieces: AppendedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording ends with the last whole line, and with what the disk said."""
    disk = _FullDisk(pieces._file)
    monkeypatch.setattr(pieces, "_file", disk)
    messages: list[str] = []
    recording = EventRecorder(pieces, full=lambda: messages.append("full"))
    assert recording.take(an_event())
    disk.full = True
    assert not recording.take(an_event(id="2"))
    assert not recording.take(an_event(id="3"))
    assert [line["id"] for line in lines(pieces.path)] == ["1"]
    assert recording.error is not None
    assert recording.error.errno == errno.ENOSPC
    assert messages == ["full"]


def test_a_packed_file_can_be_read_after_every_piece(tmp_path: Path) -> None:
    """Also where the recorder was killed and never wrote the end."""
    pieces = AppendedFile(tmp_path / "text.gz")
    for piece in (b"one\n", b"two\n"):
        pieces.append(piece)
    assert zlib.decompressobj(wbits=31).decompress((tmp_path / "text.gz").read_bytes()) == b"one\ntwo\n"
    pieces.close()
    assert gzip.decompress((tmp_path / "text.gz").read_bytes()) == b"one\ntwo\n"


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    """Unless that is asked for."""
    path = tmp_path / "events.jsonl"
    path.write_text("kept\n")
    with pytest.raises(FileExistsError):
        AppendedFile(path)
    assert path.read_text() == "kept\n"
    AppendedFile(path, overwrite=True).close()
    assert path.read_text() == ""
