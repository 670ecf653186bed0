"""The Flask app of a process: events, probes and metrics over HTTP. The only module that uses Flask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from muster.runtime.dead_letter import DeadLetters
from muster.runtime.handle import Handler
from muster.runtime.http.readiness import State
from muster.runtime.http.responses import BODY_LIMIT, HttpAnswer
from muster.runtime.telemetry.metrics import CONTENT_TYPE, exposition_of

Receiver = Handler | DeadLetters
"""What answers the events of one function."""


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
    app = Flask("muster", static_folder=None)
    app.url_map.strict_slashes = False  # Flask would redirect an empty path, which no broker follows
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT
    by_path = {f"/{path_of(function.name)}": function for function in functions}
    if len(functions) == 1:
        by_path["/"] = functions[0]
    accepted = ", ".join(by_path)

    def receive() -> Response:
        function = by_path[request.url_rule.rule if request.url_rule else "/"]
        try:
            body = request.get_data(cache=False)
        except RequestEntityTooLarge:
            return _response(function.refuse(dict(request.headers)))
        return _response(function.handle(dict(request.headers), body))

    for path in by_path:
        app.add_url_rule(path, path, receive, methods=["POST"])
    _add_probes(app, functions, ready)

    @app.get("/")
    def explain() -> Response:
        return _text(200, f"Muster: POST one CloudEvent to {accepted}.")

    @app.errorhandler(HTTPException)
    def refuse(error: HTTPException) -> Response:
        refusal = _text(error.code or 500, f"{error.name}: events are accepted by POST {accepted} only.")
        allowed = error.get_response().headers.get("Allow")
        if allowed:
            refusal.headers["Allow"] = allowed
        return refusal

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


def _response(answer: HttpAnswer) -> Response:
    response = Response(answer.body, answer.status, headers=dict(answer.headers))
    if not answer.body:
        # Flask adds a content type, by which a broker would look for a CloudEvent in an empty answer.
        del response.headers["Content-Type"]
    return response


def _text(status: int, text: str) -> Response:
    return Response(f"{text}\n", status, content_type="text/plain; charset=utf-8")
