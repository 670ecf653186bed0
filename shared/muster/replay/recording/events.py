"""Record events into JSON Lines of structured CloudEvents, in order of arrival.

An event is recorded as it was sent, without the attributes that a broker added and without what may be secret
(`muster.replay.recording.redaction`).
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from muster.events.dead_letters import BROKER_EXTENSIONS
from muster.objects.text import has_more_values
from muster.replay.files import AppendedFile
from muster.replay.recorded_requests import MOST_VALUES
from muster.replay.recording.redaction import is_secret, redact_attribute, without_secrets
from muster.runtime.config import Settings
from muster.runtime.http.bodies import REFUSAL, BodyRefusal
from muster.simulator.broker import CloudEvent, NotAnEventError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

SECRET, CONFIG_MAP, NOT_JSON = "about a Secret", "about a ConfigMap", "with data that is not JSON"
"""Why an event is not recorded; data that is not JSON cannot be redacted."""

SINK_LIMITS = Settings(body_limit_bytes=8 * 1024 * 1024, waiting=27)
"""The limits of the server of `sink_app`: bodies may have twice as many bytes as the functions take."""

_STATUSES = {
    BodyRefusal.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    BodyRefusal.TOO_SLOW: HTTPStatus.REQUEST_TIMEOUT,
}
"""The answers to bodies that are not kept; 503 to the others."""

MOST_CHARACTERS = Settings.attribute_limit
"""The most characters of an attribute: the functions refuse more."""

COUNTED_CHARACTERS = 64
"""The characters of a kind, type or verb by which events are counted and reported; kinds are shorter."""

MOST_COUNTS = 100
"""The most pairs of kind and verb that are counted by themselves; the sources of Muster send some thirty."""

OTHERS = "others"
"""Stands for the kinds and verbs of all further events."""

LONG = f"with an attribute of more than {MOST_CHARACTERS} characters"
DENSE, DEEP = f"with more than {MOST_VALUES} JSON values", "nested too deeply"
"""Why an event is not recorded, though its data may be JSON."""


class EventRecorder:
    """Writes events to a file until a limit is reached or it is stopped; thread-safe.

    Only one event is parsed at a time, since it takes some thirty times its bytes.

    Args:
        file: the file.
        limit: how many events are recorded; 0 means any number.
        full: called when no more events can be recorded.

    Attributes:
        recorded: the number of events by the beginnings of kind and verb, `("Job", "add")`; if an event is
            not from an ApiServerSource, its type stands in place of the kind. Those beyond MOST_COUNTS are
            `("others", "")`.
        left_out: the number of events that were not recorded, by reason.
        last: the kind, verb and name of the last event recorded.
        error: why recording ended early; None if it did not.
    """

    def __init__(
        self, file: AppendedFile, *, limit: int = 0, full: Callable[[], object] = lambda: None
    ) -> None:
        self._file = file
        self._limit = limit
        self._full = full
        self._lock = threading.Lock()
        self._stopped = False
        self.recorded: Counter[tuple[str, str]] = Counter()
        self.left_out: Counter[str] = Counter()
        self.last = ""
        self.error: OSError | None = None

    def receive(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Record the event of a request, or count it as left out; return False if recording has ended.

        Raises:
            NotAnEventError: the request is no event.
        """
        with self._lock:
            if has_more_values(body, MOST_VALUES):
                return self._leave_out(DENSE)
            try:
                event = CloudEvent.from_http(headers, body)
            except RecursionError:
                return self._leave_out(DEEP)
            return self._take(event)

    def take(self, event: CloudEvent) -> bool:
        """Record an event, or count it as left out; return False if recording has ended."""
        with self._lock:
            return self._take(event)

    def stop(self) -> None:
        """Record no further events."""
        with self._lock:
            self._stopped = True

    def _take(self, event: CloudEvent) -> bool:
        if self._stopped:
            return False
        try:
            line = _line(event)
        except RecursionError:
            line = DEEP
        return self._leave_out(line) if isinstance(line, str) else self._write(line, event)

    def _leave_out(self, reason: str) -> bool:
        if not self._stopped:
            self.left_out[reason] += 1
        return not self._stopped

    def _write(self, line: bytes, event: CloudEvent) -> bool:
        try:
            self._file.append(line)
        except OSError as error:
            self.error = error
        else:
            self._count(event)
            self.last = describe(event)
        self._stopped = self.error is not None or self.recorded.total() == self._limit
        if self._stopped:
            self._full()
        return self.error is None

    def _count(self, event: CloudEvent) -> None:
        kind, verb = (text[:COUNTED_CHARACTERS] for text in _kind_and_verb(event))
        known = (kind, verb) in self.recorded or len(self.recorded) < MOST_COUNTS
        self.recorded[(kind, verb) if known else (OTHERS, "")] += 1


def describe(event: CloudEvent) -> str:
    """Return kind, verb and name of an event, `Job update team-a/llama`; else its type and subject."""
    kind, verb = _kind_and_verb(event)
    name = f"{event['namespace']}/{event['name']}".strip("/") or event["subject"]
    return " ".join(part for part in (kind, verb, name) if part)


def sink_app(receive: Callable[[Mapping[str, str], bytes], bool]) -> WSGIApplication:
    """Return a WSGI app that receives events.

    It answers 202 to a request that `receive` accepts, 503 to one that it does not, and 400 to one that is no
    event; 413, 408 or 503 where the server refused the body.
    """

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        status, text = _answer(environ, receive)
        body = f"{text}\n".encode() if text else b""
        headers = [("Content-Length", str(len(body)))]
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append(("Allow", "POST"))
        start_response(f"{status.value} {status.phrase}", headers)
        return [body]

    return answer


def _answer(
    environ: WSGIEnvironment, receive: Callable[[Mapping[str, str], bytes], bool]
) -> tuple[HTTPStatus, str]:
    if environ["REQUEST_METHOD"] != "POST":
        return HTTPStatus.METHOD_NOT_ALLOWED, "send events by POST"
    refusal = environ.get(REFUSAL)
    if refusal is not None:
        return _STATUSES.get(refusal, HTTPStatus.SERVICE_UNAVAILABLE), f"the body was refused: {refusal}"
    try:
        accepted = receive(_headers(environ), environ["wsgi.input"].read())
    except NotAnEventError as error:
        return HTTPStatus.BAD_REQUEST, str(error)
    if accepted:
        return HTTPStatus.ACCEPTED, ""
    return HTTPStatus.SERVICE_UNAVAILABLE, "recording has ended"


def _headers(environ: WSGIEnvironment) -> dict[str, str]:
    headers = {
        name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")
    }
    return {**headers, "content-type": environ.get("CONTENT_TYPE", "")}


def _kind_and_verb(event: CloudEvent) -> tuple[str, str]:
    if event["kind"] and event["type"].startswith("dev.knative.apiserver."):
        return event["kind"], event["type"].rpartition(".")[2]
    return event["type"], ""


def _line(event: CloudEvent) -> bytes | str:
    """Return the line to record for an event, or the reason not to record it as str."""
    if any(max(len(name), len(text)) > MOST_CHARACTERS for name, text in event.attributes.items()):
        return LONG
    if is_secret({"kind": event["kind"], "apiVersion": event["apiversion"] or "v1"}):
        return SECRET
    if event["kind"] == "ConfigMap":
        return CONFIG_MAP
    if has_more_values(event.data, MOST_VALUES):  # of `data_base64`, which its request shows as one value
        return DENSE
    envelope = _structured(event)
    if envelope is None or "data_base64" in envelope:
        return NOT_JSON
    data = envelope.get("data")
    if isinstance(data, dict) and is_secret(data):
        return SECRET
    recorded: dict[str, Any] = {
        name: without_secrets(value) if name == "data" else redact_attribute(value)
        for name, value in envelope.items()
        if name not in BROKER_EXTENSIONS
    }
    # ASCII only: some readers take U+2028 for the end of a line.
    return json.dumps(recorded, separators=(",", ":")).encode() + b"\n"


def _structured(event: CloudEvent) -> dict[str, Any] | None:
    try:
        return event.structured()
    except ValueError:
        return None
