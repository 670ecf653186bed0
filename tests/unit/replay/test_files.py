"""Reading files that a person names."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from muster.objects.memory import DataLimit, memory_of
from muster.replay import files, recorded_requests, snapshots
from muster.replay.recorded_requests import STRUCTURED


def test_a_file_may_not_unpack_to_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may unpack to a thousand times its size; of two members, as `cat` makes them, both count."""
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress(b"x" * 600) + gzip.compress(b"x" * 400))
    assert files.read_text(path) == "x" * 1000
    path.write_bytes(gzip.compress(b"x" * 600) + gzip.compress(b"x" * 401))
    with pytest.raises(files.BadFileError, match="has more than 1000 bytes"):
        files.read_text(path)


def test_a_device_that_never_ends_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a file that is too large."""
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    with pytest.raises(files.BadFileError, match="has more than 1000 bytes"):
        files.read_text(Path("/dev/zero"))


def test_no_symbolic_link_is_overwritten(tmp_path: Path) -> None:
    """In a folder that others can write to it may lead to any file of the user."""
    victim, link = tmp_path / "victim", tmp_path / "out.jsonl"
    victim.write_text("mine")
    link.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        files.AppendedFile(link, overwrite=True)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("text", [b"[" + b"[]," * 11_000 + b"[]]", b"{" * 11_000])
def test_a_line_of_too_many_values_is_refused_before_it_is_parsed(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value takes up to 300 bytes of memory: a packed file of some kilobytes would take gigabytes."""
    monkeypatch.setattr(files, "MOST_VALUES", 10_000)
    with pytest.raises(files.BadFileError, match=r"^events.jsonl:1: is not JSON: it has more than 10000"):
        list(files.json_lines(Path("events.jsonl"), text))


@pytest.mark.parametrize("name", ["events.jsonl", "events.json"])
def test_an_event_of_a_file_has_a_limit(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is copied several times: one of 250 MB, which unpacks from one, took `muster replay` 1.1 GB."""
    monkeypatch.setattr(recorded_requests, "EVENT_TEXT_BYTES", 1000)
    event = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
    path = tmp_path / name
    path.write_text(json.dumps({**event, "data": "x" * 800}))
    assert len(recorded_requests.read_events(path)) == 1
    path.write_text(json.dumps({**event, "data": "x" * 1000}))
    with pytest.raises(files.BadFileError, match="has more than 1000 bytes"):
        recorded_requests.read_events(path)


def test_a_file_is_read_without_a_buffer_for_the_largest_one(tmp_path: Path) -> None:
    """Reserved memory counts in the limit of the process."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"x" * 3_000_000)
    tracemalloc.start()
    try:
        assert len(files.read_bytes(path)) == 3_000_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16_000_000


def test_characters_of_strings_are_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """An annotation may have a list of indexes."""
    monkeypatch.setattr(files, "MOST_VALUES", 10_000)
    text = b'{"annotations": "' + b"1,[{" * 30_000 + b'"}'
    ((_, value),) = files.json_lines(Path("events.jsonl"), text)
    assert value["annotations"].count("{") == 30_000


def test_lines_are_numbered_and_decoded_one_by_one() -> None:
    """One emoji does not make all other lines take four bytes a character; blank lines take no memory."""
    content = '{"a": "😀"}\n'.encode() + b" \n\n" * 300_000 + b'  {"b": "\xe2\x80\xa8"}\n' + b"\n" * 300_000
    path = Path("events.jsonl")
    tracemalloc.start()
    read = list(files.json_lines(path, content))
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    assert read == [(f"{path}:1", {"a": "😀"}), (f"{path}:600002", {"b": "\u2028"})]


@pytest.mark.parametrize(("content", "lines"), [
    pytest.param(b"{}\n \n{}", True, id="two objects"),
    pytest.param(b"\n{}\n", False, id="one"),
    pytest.param(b"{\n  a: 1\n}", False, id="an object of several lines"),
    pytest.param(b"{}\n---\n{}", False, id="documents of YAML"),
])  # fmt: skip
def test_lines_of_json_are_recognized(content: bytes, lines: bool) -> None:
    """In a file of another name."""
    assert files.are_json_lines(content) is lines


def test_a_text_counts_as_what_it_takes_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One emoji makes each character take four bytes, in several copies."""
    monkeypatch.setattr(files, "TEXT_BYTES", 10_000)
    path = tmp_path / "objects.yaml"
    path.write_text("a: " + "b" * 9_000)
    assert len(files.read_text(path)) == 9_003
    for widest in ("é", "語" * 4):
        path.write_text(f"a: {widest}" + "b" * 4_000)
        assert sys.getsizeof(files.read_text(path)) < 10_000
    path.write_text("a: 語" + "b" * 5_000)
    with pytest.raises(files.BadFileError):
        files.read_text(path)
    path.write_text("a: 😀" + "b" * 2_500)
    with pytest.raises(files.BadFileError, match="takes more than 10000 bytes of memory"):
        files.read_text(path)
    with pytest.raises(files.BadFileError, match=r"^events.jsonl:2: takes more than 10000"):
        list(files.json_lines(Path("events.jsonl"), b"{}\n" + path.read_bytes()))


def test_the_events_of_a_file_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of `{}` are three bytes each in a file and five hundred in memory."""
    monkeypatch.setattr(recorded_requests, "MOST_EVENTS", 1000)
    monkeypatch.setattr(files, "MOST_BYTES", 1_000_000)
    path = tmp_path / "events.jsonl"
    path.write_text("{}\n" * 1000)
    assert len(recorded_requests.read_events(path)) == 1000
    path.write_text("{}\n" * 100_000)
    tracemalloc.start()
    with pytest.raises(files.BadFileError, match="has more than 1000 events"):
        recorded_requests.read_events(path)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    "read", [lambda *limited: snapshots.read_snapshots([limited[0]], limited[1]), snapshots.read_located]
)
def test_each_object_counts_more_than_its_data(read: Any, tmp_path: Path) -> None:
    """Commands keep more of it: 285,000 of 60 bytes took `muster lint` a gigabyte."""
    objects = tmp_path / "o.json"
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}
    objects.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [job] * 100}))
    with pytest.raises(files.TooMuchReadError, match="more than 150000 bytes of memory"):
        list(read(objects, DataLimit(150_000)))


def test_headers_of_events_count_as_well(tmp_path: Path) -> None:
    """200,000 events of 150 headers each, 1.3 MB packed, took 2.8 GiB."""
    events = tmp_path / "e.jsonl"
    headers = {f"h{number}": "" for number in range(150)}
    events.write_text(f"{json.dumps({'headers': headers})}\n" * 100)
    with pytest.raises(files.BadFileError, match="more than 500000 bytes of memory"):
        recorded_requests.read_events(events, DataLimit(500_000))


def test_files_of_events_and_objects_share_one_limit(tmp_path: Path) -> None:
    """What a command keeps of them: bodies of events, and data of objects; of comments an eighth."""
    events, objects, comments = tmp_path / "e.jsonl", tmp_path / "o.yaml", tmp_path / "c.yaml"
    events.write_text('{"data":"aaaaaaaaa"}\n' * 10)
    objects.write_text("kind: A\napiVersion: v1\nmetadata: {name: a}\n")
    comments.write_text("#" * 16_000)
    limit = DataLimit(100_000)
    recorded_requests.read_events(events, limit)
    headers = memory_of({"content-type": STRUCTURED})
    assert limit.left == 100_000 - 10 * (500 + len('{"data":"aaaaaaaaa"}') + headers)
    before = limit.left
    snapshots.read_snapshots([comments], limit)
    assert limit.left == before - 2_000 - 100  # and of an empty list of documents
    snapshots.read_snapshots([objects], limit)
    assert before - 2_100 - limit.left > 1_700  # two mappings, keys and strings, and 1,000
    limit.take(limit.left - 500)
    for path, read in (
        (objects, lambda path: snapshots.read_snapshots([path], limit)),
        (events, lambda path: recorded_requests.read_events(path, limit)),
    ):
        with pytest.raises(files.TooMuchReadError, match=rf"{path.name}: the data .* than 100000 bytes"):
            read(path)


def test_each_file_that_is_read_is_a_step(tmp_path: Path) -> None:
    """Of objects, which may take seconds each."""
    path = tmp_path / "o.yaml"
    path.write_text("kind: A\napiVersion: v1\nmetadata: {name: a}\n")
    steps: list[str] = []
    snapshots.read_snapshots([path, path], reading=steps.append)
    assert steps == ["file 1", "file 2"]


@pytest.mark.parametrize(("name", "text"), [
    pytest.param("batch.json", "[" + ",".join(["{}"] * 15_000) + "]", id="JSON"),
    pytest.param("lines.jsonl", "[" + ",".join(["{}"] * 15_000) + "]", id="JSON Lines"),
    pytest.param("batch.yaml", "- a: b\n" * 15_000, id="YAML"),
])  # fmt: skip
def test_a_file_after_others_is_parsed_within_what_they_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    """What is parsed takes more memory than its events: several files near the limit took 1.2 GiB."""
    monkeypatch.setattr(files, "MOST_BYTES", 1_000_000)
    path = tmp_path / name
    path.write_text(text)
    limit = DataLimit(3_000_000)
    limit.take(2_000_000)
    tracemalloc.start()
    with pytest.raises(files.TooMuchReadError, match="more than 3000000 bytes"):
        recorded_requests.read_events(path, limit)
    assert tracemalloc.get_traced_memory()[1] < 1_500_000
    tracemalloc.stop()
