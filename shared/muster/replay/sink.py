"""A door for events: whoever is told its URL as a sink may send there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING

from muster.simulator.broker import CloudEvent, NotAnEventError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

BODY_LIMIT = 8 * 1024 * 1024
"""Bytes; as the functions' own."""


def app(take: Callable[[CloudEvent], bool]) -> WSGIApplication:
    """A WSGI app that answers 202 to an event that is taken, 503 to one that is not, 400 to what is none."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        status, text = _answer(environ, take)
        body = f"{text}\n".encode() if text else b""
        headers = [("Content-Length", str(len(body)))]
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers.append(("Allow", "POST"))
        start_response(f"{status.value} {status.phrase}", headers)
        return [body]

    return answer


def _answer(environ: WSGIEnvironment, take: Callable[[CloudEvent], bool]) -> tuple[HTTPStatus, str]:
    if environ["REQUEST_METHOD"] != "POST":
        return HTTPStatus.METHOD_NOT_ALLOWED, "events are POSTed"
    try:
        event = CloudEvent.from_http(_headers(environ), environ["wsgi.input"].read())
    except NotAnEventError as error:
        return HTTPStatus.BAD_REQUEST, str(error)
    if take(event):
        return HTTPStatus.ACCEPTED, ""
    return HTTPStatus.SERVICE_UNAVAILABLE, "nothing is recorded any more"


def _headers(environ: WSGIEnvironment) -> dict[str, str]:
    named = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
    return {**named, "content-type": environ.get("CONTENT_TYPE", "")}
