"""The Flask app of a function: events, probes and metrics over HTTP. The only module that uses Flask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from muster.cluster.interface import Cluster
from muster.runtime.config import Settings
from muster.runtime.handle import Clock, Handler
from muster.runtime.http.bodies import REFUSAL, BodyRefusal
from muster.runtime.http.readiness import Readiness, State
from muster.runtime.http.receiver import Receiver
from muster.runtime.http.responses import HttpAnswer
from muster.runtime.step import Step
from muster.runtime.telemetry.metrics import CONTENT_TYPE, Exposition, Metrics, exposition_of

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def wall_clock() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the one clock, which is passed to everything else


def create_app(step: Step, cluster: Cluster, settings: Settings, clock: Clock = wall_clock) -> Flask:
    """Return the app of a step.

    `POST /` takes one CloudEvent, in binary or structured mode, and answers

    - 202 without a body: done, or nothing to do
    - 200 with one CloudEvent: done; the event describes the writes
    - 400, 413: the event cannot be read, and goes to the dead letter sink
    - 408, 409, 429, 503 with Retry-After: deliver it again
    - 500: a bug, with its trace in the log

    All but 2xx have the body `{"reason": ..., "message": ...}`.
    """
    handler = Handler(step, cluster, settings, clock)
    return app_of(handler, Readiness.of(handler, cluster))


def app_of(handler: Receiver, readiness: Readiness) -> Flask:
    """Return the app of a receiver."""
    app = _without_redirects(handler.name)
    limit = handler.settings.body_limit_bytes
    # Werkzeug silently cuts a body of unknown length at its maximum; one byte above the limit shows that.
    app.config["MAX_CONTENT_LENGTH"] = limit + 1

    @app.post("/")
    def receive() -> Response:
        headers = dict(request.headers)
        body = _body(limit)
        if isinstance(body, BodyRefusal):
            return _response(handler.refuse(headers, body, request.content_length))
        return _response(handler.handle(headers, body))

    _add_probes(app, readiness.recent, [handler.metrics])
    _explain(app, f"Muster's step {handler.name}: POST one CloudEvent here.", "events are accepted by POST /")
    return app


def app_of_all(paths: Sequence[str], recent: Callable[[], State], metrics: Sequence[Metrics]) -> Flask:
    """Return the app of a process with several functions: probes and metrics of all of them, and no events.

    Args:
        paths: the paths of the functions, `create-workload`, which the answer to an event names.
        recent: returns the readiness of all functions.
        metrics: the metrics of all functions.
    """
    app = _without_redirects("muster")
    named = ", ".join(f"/{path}" for path in paths)
    _add_probes(app, recent, metrics)
    _explain(
        app, f"Muster's functions: POST one CloudEvent to {named}.", f"events are accepted by POST {named}"
    )
    return app


def by_path(apps: Mapping[str, WSGIApplication], others: WSGIApplication) -> WSGIApplication:
    """Return the app that gives a request to the app of the first part of its path, else to `others`."""

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        first, _, rest = environ["PATH_INFO"].removeprefix("/").partition("/")
        if first not in apps:
            return others(environ, start_response)
        below = {"SCRIPT_NAME": f"{environ.get('SCRIPT_NAME', '')}/{first}", "PATH_INFO": f"/{rest}"}
        return apps[first]({**environ, **below}, start_response)

    return app


def _without_redirects(name: str) -> Flask:
    """Return an app that takes an empty path as `/`; Flask would redirect, which no broker follows."""
    app = Flask(name, static_folder=None)
    app.url_map.strict_slashes = False
    return app


def _add_probes(app: Flask, recent: Callable[[], State], metrics: Sequence[Metrics]) -> None:
    @app.get("/health/liveness")
    def liveness() -> Response:
        return _text(200, "OK")

    @app.get("/health/readiness")
    def readiness_now() -> Response:
        ready, message = recent()
        return _text(200 if ready else 503, message)

    exposition = Exposition(lambda: exposition_of(metrics))

    @app.get("/metrics")
    def metrics_now() -> Response:
        return Response(exposition.text(), content_type=CONTENT_TYPE)


def _explain(app: Flask, greeting: str, accepted: str) -> None:
    """Add the answers to what is no event."""

    @app.get("/")
    def explain() -> Response:
        return _text(200, greeting)

    @app.errorhandler(HTTPException)
    def refuse(error: HTTPException) -> Response:
        refusal = _text(error.code or 500, f"{error.name}: {accepted} only.")
        allowed = error.get_response().headers.get("Allow")
        if allowed:
            refusal.headers["Allow"] = allowed
        return refusal


def _body(limit: int) -> bytes | BodyRefusal:
    """Return the body of the request, or why it is not read; the server may have decided that already."""
    refusal: BodyRefusal | None = request.environ.get(REFUSAL)
    if refusal is not None:
        return refusal
    try:
        body = request.get_data(cache=False)
    except RequestEntityTooLarge:
        return BodyRefusal.TOO_LARGE
    return body if len(body) <= limit else BodyRefusal.TOO_LARGE


def _response(answer: HttpAnswer) -> Response:
    response = Response(answer.body, answer.status, headers=dict(answer.headers))
    if not answer.body:
        # Flask adds a content type, by which a broker would look for a CloudEvent in an empty answer.
        del response.headers["Content-Type"]
    return response


def _text(status: int, text: str) -> Response:
    return Response(f"{text}\n", status, content_type="text/plain; charset=utf-8")
