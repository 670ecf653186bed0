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
from muster.replay.files import AppendedFile
from muster.replay.recording.redaction import is_secret, redact_attribute, without_secrets
from muster.simulator.broker import CloudEvent, NotAnEventError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

SECRET, CONFIG_MAP, NOT_JSON = "about a Secret", "about a ConfigMap", "with data that is not JSON"
"""Why an event is not recorded; data that is not JSON cannot be redacted."""


class EventRecorder:
    """Writes events to a file until a limit is reached or it is stopped; thread-safe.

    Args:
        file: the file.
        limit: how many events are recorded; 0 means any number.
        full: called when no more events can be recorded.

    Attributes:
        recorded: the number of events by kind and verb, `("Job", "add")`; if an event is not from an
            ApiServerSource, its type stands in place of the kind.
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
        return self.take(CloudEvent.from_http(headers, body))

    def take(self, event: CloudEvent) -> bool:
        """Record an event, or count it as left out; return False if recording has ended."""
        line = _line(event)
        with self._lock:
            if self._stopped:
                return False
            if isinstance(line, bytes):
                return self._write(line, event)
            self.left_out[line] += 1
            return True

    def stop(self) -> None:
        """Record no further events."""
        with self._lock:
            self._stopped = True

    def _write(self, line: bytes, event: CloudEvent) -> bool:
        try:
            self._file.append(line)
        except OSError as error:
            self.error = error
        else:
            self.recorded[_kind_and_verb(event)] += 1
            self.last = describe(event)
        self._stopped = self.error is not None or self.recorded.total() == self._limit
        if self._stopped:
            self._full()
        return self.error is None


def describe(event: CloudEvent) -> str:
    """Return kind, verb and name of an event, `Job update team-a/llama`; else its type and subject."""
    kind, verb = _kind_and_verb(event)
    name = f"{event['namespace']}/{event['name']}".strip("/") or event["subject"]
    return " ".join(part for part in (kind, verb, name) if part)


def sink_app(receive: Callable[[Mapping[str, str], bytes], bool]) -> WSGIApplication:
    """Return a WSGI app that receives events.

    It answers 202 to a request that `receive` accepts, 503 to one that it does not, and 400 to one that is no
    event.
    """

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        status, text = _answer(environ, receive)
        body = f"{text}\n".encode() if text else b""
        start_response(f"{status.value} {status.phrase}", [("Content-Length", str(len(body)))])
        return [body]

    return answer


def _answer(
    environ: WSGIEnvironment, receive: Callable[[Mapping[str, str], bytes], bool]
) -> tuple[HTTPStatus, str]:
    if environ["REQUEST_METHOD"] != "POST":
        return HTTPStatus.METHOD_NOT_ALLOWED, "send events by POST"
    names = {name: name[5:].replace("_", "-") for name in environ if name.startswith("HTTP_")}
    headers = {header: environ[name] for name, header in names.items()}
    headers["content-type"] = environ.get("CONTENT_TYPE", "")
    try:
        accepted = receive(headers, environ["wsgi.input"].read())
    except NotAnEventError as error:
        return HTTPStatus.BAD_REQUEST, str(error)
    if accepted:
        return HTTPStatus.ACCEPTED, ""
    return HTTPStatus.SERVICE_UNAVAILABLE, "recording has ended"


def _kind_and_verb(event: CloudEvent) -> tuple[str, str]:
    if event["kind"] and event["type"].startswith("dev.knative.apiserver."):
        return event["kind"], event["type"].rpartition(".")[2]
    return event["type"], ""


def _line(event: CloudEvent) -> bytes | str:
    """Return the line to record for an event, or the reason not to record it as str."""
    if is_secret({"kind": event["kind"], "apiVersion": event["apiversion"] or "v1"}):
        return SECRET
    if event["kind"] == "ConfigMap":
        return CONFIG_MAP
    try:
        envelope = event.structured()
    except ValueError:
        return NOT_JSON
    data = envelope.get("data")
    if "data_base64" in envelope:
        return NOT_JSON
    if isinstance(data, dict) and is_secret(data):
        return SECRET
    recorded: dict[str, Any] = {
        name: without_secrets(value) if name == "data" else redact_attribute(value)
        for name, value in envelope.items()
        if name not in BROKER_EXTENSIONS
    }
    # ASCII only: some readers take U+2028 for the end of a line.
    return json.dumps(recorded, separators=(",", ":")).encode() + b"\n"
