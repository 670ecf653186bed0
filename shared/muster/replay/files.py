"""Read JSON, YAML and structured CloudEvents from files, with the location of each error."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from muster.events.parse import STRUCTURED, UnreadableEvent, receive
from muster.objects import yaml_files


class BadFileError(Exception):
    """A file or a value in it is invalid; the message is one line that begins with the location."""

    def __init__(self, location: str, message: str) -> None:
        super().__init__(f"{location}: {' '.join(message.split())}")


def read_text(path: Path) -> str:
    """Return the text of a file, unpacked if its name ends in `.gz`."""
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BadFileError(str(path), getattr(error, "strerror", None) or str(error)) from None


def format_suffix(path: Path) -> str:
    """Return the suffix of a path without `.gz`: `.jsonl` of `events.jsonl.gz`."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def yaml_documents(path: Path, text: str) -> list[Any]:
    """Return the documents of a YAML or JSON stream, without empty documents."""
    try:
        return yaml_files.load_all(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        location = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise BadFileError(location, f"is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFileError(str(path), f"is not YAML: {error}") from None


def json_lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the location, `events.jsonl:3`, and the value of each line of JSON Lines that is not blank."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{path}:{number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadFileError(f"{path}:{number}", f"is not JSON: {error}") from None


@dataclass(frozen=True)
class RecordedRequest:
    """An HTTP request with an event, as a function or broker receives it.

    Of a structured event in a file the only header is the content type; its location is `events.jsonl:3`.
    """

    headers: Mapping[str, str]
    body: bytes
    location: str


def read_events(path: Path) -> list[RecordedRequest]:
    """Return the events of a file: structured CloudEvents as JSON Lines, a YAML stream, a list, or one.

    Raises:
        BadFileError: the file cannot be read, has no event, or has a value that is no event.
    """
    requests = [_request(location, document) for location, document in _documents(path)]
    if not requests:
        raise BadFileError(str(path), "has no event")
    return requests


def _documents(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the location and content of each event."""
    if format_suffix(path) in {".jsonl", ".ndjson"}:
        yield from json_lines(path, read_text(path))
        return
    documents = yaml_documents(path, read_text(path))
    for number, document in enumerate(documents, start=1):
        location = str(path) if len(documents) == 1 else f"{path}: document {number}"
        if isinstance(document, list):
            yield from ((f"{location}[{place}]", entry) for place, entry in enumerate(document))
        else:
            yield location, document


def _request(location: str, document: Any) -> RecordedRequest:
    if not isinstance(document, dict):
        raise BadFileError(location, "an event is a CloudEvent as a JSON object")
    if "apiVersion" in document and "specversion" not in document:
        found = f"is a Kubernetes object, {document.get('kind')}, and not a CloudEvent"
        raise BadFileError(location, f"{found}; `--objects` takes objects")
    body = json.dumps(document, separators=(",", ":")).encode()
    return RecordedRequest({"content-type": STRUCTURED}, body, location)


def time_of(request: RecordedRequest) -> datetime:
    """Return the time of an event in UTC; 1970 if it has none, or is no event."""
    try:
        sent = receive(request.headers, request.body).get_time()
    except UnreadableEvent:
        sent = None
    return datetime.fromtimestamp(0, UTC) if sent is None else sent.astimezone(UTC)
