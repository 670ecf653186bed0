"""Read events from files: structured CloudEvents, batches of them, and recorded HTTP requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from muster.events.cloudevent import EventLimits
from muster.objects.memory import DataLimit, memory_of
from muster.objects.text import has_more_values, json_bytes
from muster.replay.files import (
    BadFileError,
    are_json_lines,
    decoded,
    format_suffix,
    json_lines,
    json_value,
    located,
    read_bytes,
    yaml_documents,
)
from muster.runtime.config import Settings

STRUCTURED = "application/cloudevents+json"
MOST_EVENTS = 200_000
"""The most events of a file: 256 MiB of `{}` would be eighty million."""
MOST_VALUES = Settings.body_limit_values
"""The most JSON values of an event: the functions refuse more, and 8 MiB of `{"a":[]}` take 500 MiB. A file
counts a body that is a string as one value."""
EVENT_LIMITS = EventLimits(MOST_VALUES, Settings.attribute_limit)
"""The limits of an event in a file: those of the functions."""
EVENT_BYTES = 500
"""Bytes of an event beside its body."""
EVENT_TEXT_BYTES = 64 * 1024 * 1024
"""The most bytes of an event, which is copied several times; an object of a cluster has 1.5 MiB."""
_REQUEST_FIELDS = {"headers", "body"}


@dataclass(frozen=True)
class RecordedRequest:
    """An HTTP request with an event, as a function or broker receives it.

    Attributes:
        headers: as sent; for a structured event in a file only its content type.
        body: as sent.
        location: file and line or document: `events.jsonl:3`.
    """

    headers: Mapping[str, str]
    body: bytes
    location: str

    @property
    def time(self) -> str:
        """The event's attribute `time` as sent; "" if it has none."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        if "ce-time" in headers:
            return headers["ce-time"]
        try:
            event = json.loads(self.body)
        except (ValueError, RecursionError):
            return ""
        time = event.get("time") if isinstance(event, dict) else None
        return time if isinstance(time, str) else ""


def read_events(path: Path, limit: DataLimit | None = None) -> list[RecordedRequest]:
    """Return the events of a file.

    The file holds one structured CloudEvent as JSON or YAML, or several as JSON Lines, as a YAML stream or as
    a JSON batch (an array). In place of each event it may have `{headers, body}`, a recorded request, whose
    body is a string, or any other JSON value that is the body.

    Args:
        path: of the file.
        limit: of the data of all files of a command, bodies among them; None for one of its own.

    Raises:
        BadFileError: the file cannot be read, has no event, has more than MOST_EVENTS, or has a value that is
            no event, or one of more than EVENT_TEXT_BYTES; or the events take more memory than the limit.
    """
    limit = limit or DataLimit()
    documents = _documents(path, read_bytes(path), limit)
    requests: list[RecordedRequest] = []
    with located(str(path)):
        for request in islice(_all_requests(documents), MOST_EVENTS + 1):
            if len(request.body) > EVENT_TEXT_BYTES:
                raise BadFileError(request.location, f"has more than {EVENT_TEXT_BYTES} bytes")
            limit.take(EVENT_BYTES + len(request.body) + memory_of(request.headers))
            requests.append(request)
    if len(requests) > MOST_EVENTS:
        raise BadFileError(str(path), f"has more than {MOST_EVENTS} events")
    if not requests:
        raise BadFileError(str(path), "has no event")
    return requests


def _documents(path: Path, content: bytes, limit: DataLimit) -> Iterator[tuple[str, Any]]:
    if format_suffix(path) in {".jsonl", ".ndjson"}:
        yield from json_lines(path, content, limit, EVENT_TEXT_BYTES)
        return
    text = decoded(str(path), content)
    del content  # as large as the text
    try:
        yield str(path), json_value(text, limit)
    except (ValueError, RecursionError) as error:
        if are_json_lines(content := text.encode()):
            yield from json_lines(path, content, limit, EVENT_TEXT_BYTES)
        elif format_suffix(path) == ".json":
            raise BadFileError(str(path), f"is not JSON: {error}") from None
        else:
            left = limit.left
            documents = yaml_documents(path, text, limit)
            limit.left = left  # the bodies of the events count instead
            yield from _numbered(path, documents)


def _numbered(path: Path, documents: list[Any]) -> Iterator[tuple[str, Any]]:
    for number, document in enumerate(documents, start=1):
        yield str(path) if len(documents) == 1 else f"{path}: document {number}", document


def _all_requests(documents: Iterable[tuple[str, Any]]) -> Iterator[RecordedRequest]:
    for location, document in documents:
        yield from _requests(location, document)


def _requests(location: str, document: Any) -> Iterator[RecordedRequest]:
    if isinstance(document, list):
        for number, entry in enumerate(document):
            separator = ", " if ":" in location else ""
            yield _request(f"{location}{separator}[{number}]", entry)
    else:
        yield _request(location, document)


def _request(location: str, document: Any) -> RecordedRequest:
    if not isinstance(document, dict):
        raise BadFileError(location, "an event is a JSON object, a CloudEvent or {headers, body}")
    if "headers" not in document or "specversion" in document:
        return RecordedRequest({"content-type": STRUCTURED}, _to_json(location, document), location)
    if unknown := set(document) - _REQUEST_FIELDS:
        raise BadFileError(
            location, f"a captured request has headers and body, not {', '.join(map(str, unknown))}"
        )
    headers = _headers(location, document["headers"])
    return RecordedRequest(headers, _body(location, document.get("body")), location)


def _headers(location: str, headers: Any) -> dict[str, str]:
    if not isinstance(headers, dict):
        raise BadFileError(f"{location}: headers", "must be an object of names and values")
    strings: dict[str, str] = {}
    for name, value in headers.items():
        # Go's http.Header is a list of values for each name.
        single = value[0] if isinstance(value, list) and len(value) == 1 else value
        if not isinstance(single, str):
            raise BadFileError(f"{location}: headers.{name}", "must be a string")
        strings[str(name)] = single
    return strings


def _body(location: str, body: Any) -> bytes:
    if body is None:
        return b""
    if not isinstance(body, str):
        return _to_json(f"{location}: body", body)
    try:
        encoded = body.encode()
    except UnicodeEncodeError as error:
        raise BadFileError(f"{location}: body", f"has half a character: {error.reason}") from None
    if has_more_values(encoded, MOST_VALUES):
        raise BadFileError(f"{location}: body", f"has more than {MOST_VALUES} JSON values")
    return encoded


def _to_json(location: str, value: Any) -> bytes:
    try:
        return json_bytes(value)
    except (TypeError, ValueError) as error:
        raise BadFileError(location, f"cannot be JSON: {error}") from None


def time_of(request: RecordedRequest, default: datetime) -> datetime:
    """Return the time of an event in UTC, or the default if it has no valid time."""
    try:
        sent = datetime.fromisoformat(request.time)
        return sent.astimezone(UTC) if sent.tzinfo else sent.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # in UTC it may be in the year 0 or 10,000
        return default
