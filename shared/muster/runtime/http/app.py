"""The app of a process: events straight from WSGI, probes and metrics from Flask, which nothing else uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from flask import Flask, Response
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.http import HTTP_STATUS_CODES
from werkzeug.wsgi import get_input_stream

from muster.runtime.dead_letter import DeadLetters
from muster.runtime.handle import Handler
from muster.runtime.http.responses import BODY_LIMIT
from muster.runtime.telemetry.metrics import CONTENT_TYPE, exposition_of

Receiver = Handler | DeadLetters
"""What answers the events of one function."""

State = tuple[bool, str]
"""Whether functions are ready, and a message."""


def wall_clock() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the one clock, which is passed to everything else


def path_of(name: str) -> str:
    """Return the first part of the path of a function: `create-workload`."""
    return name.replace("_", "-")


def app_of(functions: Sequence[Receiver], ready: Callable[[], State]) -> Flask:
    """Return the app of the functions of a process: each at a path of its own, a single one also at `/`.

    `POST` takes one CloudEvent, in binary or structured mode, and answers

    - 202 without a body: done, or nothing to do
    - 200 with one CloudEvent: done; the event describes the writes
    - 400, 413: the event cannot be read, and goes to the dead letter sink
    - 409, 429, 503 with Retry-After: deliver it again
    - 500: a bug, with its trace in the log

    All but 2xx have the body `{"reason": ..., "message": ...}`.
    """
    by_path = {f"/{path_of(function.name)}": function for function in functions}
    if len(functions) == 1:
        by_path[""] = functions[0]
    accepted = ", ".join(path or "/" for path in by_path)
    app = Flask("muster", static_folder=None)
    app.wsgi_app = _EventsFirst(by_path, app.wsgi_app)  # type: ignore[method-assign]
    _add_probes(app, functions, ready)

    @app.get("/")
    def explain() -> Response:
        return _text(200, f"Muster: POST one CloudEvent to {accepted}.")

    @app.errorhandler(HTTPException)
    def refuse(error: HTTPException) -> Response:
        return _text(error.code or 500, f"{error.name}: events are accepted by POST {accepted} only.")

    return app


def _add_probes(app: Flask, functions: Sequence[Receiver], ready: Callable[[], State]) -> None:
    @app.get("/health/liveness")
    def liveness() -> Response:
        return _text(200, "OK")

    @app.get("/health/readiness")
    def readiness() -> Response:
        is_ready, message = ready()
        return _text(200 if is_ready else 503, message)

    @app.get("/metrics")
    def metrics() -> Response:
        exposition = exposition_of([function.metrics for function in functions])
        return Response(exposition, content_type=CONTENT_TYPE)


class _EventsFirst:
    """WSGI middleware that answers events itself: Flask takes longer for a request than most events need."""

    def __init__(self, by_path: Mapping[str, Receiver], others: Any) -> None:
        self._by_path = by_path
        self._others = others

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        function = self._by_path.get(environ.get("PATH_INFO", "").rstrip("/"))
        if function is None or environ["REQUEST_METHOD"] != "POST":
            answered: Iterable[bytes] = self._others(environ, start_response)
            return answered
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_") or name == "CONTENT_TYPE"
        }
        try:
            body = get_input_stream(environ, max_content_length=BODY_LIMIT).read()
            answer = function.handle(headers, body)
        except RequestEntityTooLarge:
            answer = function.refuse(headers)
        status = f"{answer.status} {HTTP_STATUS_CODES[answer.status]}"
        start_response(status, [*answer.headers.items(), ("Content-Length", str(len(answer.body)))])
        return [answer.body]


def _text(status: int, text: str) -> Response:
    return Response(f"{text}\n", status, content_type="text/plain; charset=utf-8")
