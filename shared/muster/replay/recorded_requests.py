"""Events in files: structured CloudEvents, batches of them, and raw captures of requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from muster.replay.files import BadFileError, json_lines, kind_of, read_text, yaml_documents

STRUCTURED = "application/cloudevents+json"
_CAPTURE = {"headers", "body"}


@dataclass(frozen=True)
class Capture:
    """One request as a function or broker gets it.

    Attributes:
        headers: as sent; for a structured event in a file only its content type.
        body: as sent.
        place: where it stands: `events.jsonl:3`.
    """

    headers: Mapping[str, str]
    body: bytes
    place: str

    @property
    def time(self) -> str:
        """The event's attribute `time` as it was sent, "" where there is none."""
        named = {name.lower(): value for name, value in self.headers.items()}
        if "ce-time" in named:
            return named["ce-time"]
        try:
            event = json.loads(self.body)
        except ValueError:
            return ""
        time = event.get("time") if isinstance(event, dict) else None
        return time if isinstance(time, str) else ""


def read_events(path: Path) -> list[Capture]:
    """The events of a file.

    Known are: one structured CloudEvent as JSON or YAML; several as JSON Lines, as a YAML stream or as a JSON
    batch (an array); and in place of each event `{headers, body}`, a request as it was captured, whose body
    is text or, if it is JSON, may stand there as such.

    Raises:
        BadFileError: the file cannot be read, has no event, or something in it can be neither.
    """
    text = read_text(path)
    found = [capture for place, document in _documents(path, text) for capture in _captures(place, document)]
    if not found:
        raise BadFileError(str(path), "has no event in it")
    return found


def _documents(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    if kind_of(path) in {".jsonl", ".ndjson"}:
        yield from json_lines(path, text)
        return
    try:
        yield str(path), json.loads(text)
    except (ValueError, RecursionError) as whole:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) > 1 and all(line.startswith("{") for line in lines):
            yield from json_lines(path, text)
        elif kind_of(path) == ".json":
            raise BadFileError(str(path), f"is not JSON: {whole}") from None
        else:
            yield from _numbered(path, yaml_documents(path, text))


def _numbered(path: Path, documents: list[Any]) -> Iterator[tuple[str, Any]]:
    for number, document in enumerate(documents, start=1):
        yield str(path) if len(documents) == 1 else f"{path}: document {number}", document


def _captures(place: str, document: Any) -> Iterator[Capture]:
    if isinstance(document, list):
        for number, entry in enumerate(document):
            yield _capture(f"{place}[{number}]" if ":" not in place else f"{place}, [{number}]", entry)
    else:
        yield _capture(place, document)


def _capture(place: str, document: Any) -> Capture:
    if not isinstance(document, dict):
        raise BadFileError(place, "an event is a JSON object, a CloudEvent or {headers, body}")
    if "headers" not in document or "specversion" in document:
        return Capture({"content-type": STRUCTURED}, _json(place, document), place)
    if unknown := set(document) - _CAPTURE:
        raise BadFileError(
            place, f"a captured request has headers and body, not {', '.join(map(str, unknown))}"
        )
    return Capture(_headers(place, document["headers"]), _body(place, document.get("body")), place)


def _headers(place: str, headers: Any) -> dict[str, str]:
    if not isinstance(headers, dict):
        raise BadFileError(f"{place}: headers", "must be an object of names and values")
    read: dict[str, str] = {}
    for name, value in headers.items():
        # Servers written in Go capture a list for each name.
        only = value[0] if isinstance(value, list) and len(value) == 1 else value
        if not isinstance(only, str):
            raise BadFileError(f"{place}: headers.{name}", "must be a string")
        read[str(name)] = only
    return read


def _body(place: str, body: Any) -> bytes:
    if body is None:
        return b""
    return body.encode() if isinstance(body, str) else _json(f"{place}: body", body)


def _json(place: str, value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise BadFileError(place, f"cannot be JSON: {error}") from None


def time_of(capture: Capture, otherwise: datetime) -> datetime:
    """When an event was sent, in UTC; `otherwise` where it does not say or says nothing that can be read."""
    try:
        sent = datetime.fromisoformat(capture.time)
    except ValueError:
        return otherwise
    return sent.astimezone(UTC) if sent.tzinfo else sent.replace(tzinfo=UTC)
