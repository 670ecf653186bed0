"""A step for func's Python middleware: an instance with `handle`, `alive`, `ready` and `stop`.

func-python 0.8.1 (the middleware of `invoke: http`) serves ASGI from one event loop. It calls `alive`,
`ready` and `stop` on that loop without awaiting them, and ignores a failing `start`; hence no `start` here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from threading import Event
from typing import Any, cast

from a2wsgi import WSGIMiddleware
from a2wsgi.asgi_typing import Receive, Scope, Send
from a2wsgi.wsgi_typing import Environ, IterableChunks, StartResponse, WSGIApp

from muster.cluster.interface import Cluster, RawCluster
from muster.runtime import config, dead_letter, func_server, logs
from muster.runtime.app import app_of, wall_clock
from muster.runtime.bodies import REFUSAL, BodyMemory, BodyRefusal, BodySize
from muster.runtime.config import Settings
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.handle import Handler
from muster.runtime.readiness import Readiness, State
from muster.runtime.receiver import Receiver
from muster.runtime.step import Step


class Function:
    """The ASGI function that func's middleware serves; its Flask app runs in threads."""

    def __init__(self, handler: Receiver, cluster: RawCluster) -> None:
        settings = handler.settings
        self._handler = handler
        self._connections_are_cut = Event()
        self._readiness = Readiness.of(handler, cluster)
        self._bodies = BodyMemory(settings.bodies_limit_bytes)
        self._asgi = WSGIMiddleware(
            _answering(app_of(self._handler, self._readiness), self._connections_are_cut),
            workers=settings.threads,
        )
        self._readiness.last_known()  # begins the check before the first probe

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; health probes are not among them."""
        size = BodySize(self._handler.settings.body_limit_bytes, self._bodies)
        try:
            body = await _body(receive, size, self._handler.settings.body_seconds)
            if body is None:
                return
            chunks = deque([b""] if isinstance(body, BodyRefusal) else body)
            refusal = {REFUSAL: body} if isinstance(body, BodyRefusal) else {}
            body = None  # the chunks are freed as they are read

            async def read() -> Any:
                chunk = chunks.popleft()
                return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

            await self._asgi(cast(Scope, {**scope, **refusal}), read, send)
        finally:
            size.release()

    def alive(self) -> State:
        """Always alive: a blocked event loop would not get here."""
        return True, "OK"

    def ready(self) -> State:
        """Whether the API server answers, with missing APIs and permissions as text."""
        return self._readiness.last_known()

    def stop(self) -> None:
        """Wait for events in work: the middleware closes connections after 3 s, but does not end threads."""
        self._connections_are_cut.set()
        self._handler.in_flight.wait_until_none(self._handler.settings.deadline_seconds)


def serve_step(step: Step) -> Function:
    """The function of a step, configured by the environment.

    Raises:
        BadSettingError: the environment names no cluster, or has a value that cannot be used.
    """
    settings, cluster = _set_up(step.manager)
    return Function(Handler(step, cluster, settings, wall_clock), cluster)


def serve_dead_letters() -> Function:
    """The function that keeps dead letters, configured by the environment.

    Raises:
        BadSettingError: the environment names no cluster, or has a value that cannot be used.
    """
    settings, cluster = _set_up(dead_letter.MANAGER)
    return Function(DeadLetters(cluster, settings, wall_clock), cluster)


def _set_up(user_agent: str) -> tuple[Settings, Cluster]:
    settings = config.from_environment()
    logs.configure(settings.log_level)
    func_server.set_limits(settings)
    return settings, config.connect(settings, user_agent=user_agent)


async def _body(receive: Receive, size: BodySize, seconds: float) -> list[bytes] | BodyRefusal | None:
    """The chunks of a body, why they are not kept, or None if the connection was closed.

    It is read on the event loop, so that a sender that stops in the middle takes no thread. What follows a
    refused body is read and discarded, because a sender may see no answer before it has sent everything.
    """
    chunks: list[bytes] = []
    refusal: BodyRefusal | None = None
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                chunk = message.get("body", b"")
                refusal = refusal or size.grow(len(chunk))
                if refusal:
                    chunks.clear()
                else:
                    chunks.append(chunk)
                if not message.get("more_body", False):
                    return refusal or chunks
    except TimeoutError:
        return refusal or BodyRefusal.TOO_SLOW


def _answering(app: WSGIApp, connections_are_cut: Event) -> WSGIApp:
    """The app, extended to read chunked bodies and to see why a body was refused.

    `wsgi.input_terminated` is set because Flask would otherwise take a chunked body for an empty one.

    After connections are closed the event loop ends: a thread that used it then could wait for ever, and the
    process with it.
    """

    def wrapped(environ: Environ, start_response: StartResponse) -> IterableChunks:
        response_start: list[tuple[Any, ...]] = []
        more = {"wsgi.input_terminated": True, REFUSAL: environ["asgi.scope"].get(REFUSAL)}
        answer = app({**environ, **more}, lambda *start: response_start.append(start))
        if connections_are_cut.is_set():
            raise ConnectionAbortedError("the function stopped before this answer could be sent")
        start_response(*response_start[0])
        return answer

    return wrapped
