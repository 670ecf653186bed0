"""Read structured CloudEvents from files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from muster.replay.files import BadFileError, format_suffix, json_lines, read_text, yaml_documents

STRUCTURED = "application/cloudevents+json"


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
        for name, value in self.headers.items():
            if name.lower() == "ce-time":
                return value
        try:
            time = json.loads(self.body)["time"]
        except (ValueError, RecursionError, LookupError, TypeError):
            return ""
        return time if isinstance(time, str) else ""


def read_events(path: Path) -> list[RecordedRequest]:
    """Return the events of a file.

    The file holds one structured CloudEvent as JSON or YAML, or several as JSON Lines, as a YAML stream or as
    a list.

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
    try:
        body = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise BadFileError(location, f"cannot be JSON: {error}") from None
    return RecordedRequest({"content-type": STRUCTURED}, body, location)


def time_of(request: RecordedRequest, default: datetime) -> datetime:
    """Return the time of an event in UTC, or the default if it has no valid time."""
    try:
        sent = datetime.fromisoformat(request.time)
        return sent.astimezone(UTC) if sent.tzinfo else sent.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # in UTC it may be in the year 0 or 10,000
        return default
