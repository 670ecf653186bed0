"""Functions for func's Python middleware: an instance with `handle`, `alive`, `ready` and `stop`.

func-python 0.8.1 (the middleware of `invoke: http`) serves ASGI from one event loop. It calls `alive`,
`ready` and `stop` on that loop without awaiting them, and ignores a failing `start`; hence no `start` here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from threading import Event
from typing import Any, cast

from a2wsgi import WSGIMiddleware
from a2wsgi.asgi_typing import Receive, Scope, Send
from a2wsgi.wsgi_typing import Environ, IterableChunks, StartResponse, WSGIApp

from muster.runtime import config
from muster.runtime.http import func_server
from muster.runtime.http.bodies import REFUSAL, BodyMemory, BodyRefusal, BodySize
from muster.runtime.http.readiness import State
from muster.runtime.served import ServedFunctions, prepare_process
from muster.runtime.step import Step
from muster.runtime.telemetry import logs


class Function:
    """The ASGI function that func's middleware serves; its Flask apps run in threads."""

    def __init__(self, served: ServedFunctions) -> None:
        settings = served.settings
        self._served = served
        self._connections_are_cut = Event()
        self._bodies = BodyMemory(settings.bodies_limit_bytes)
        self._asgi = WSGIMiddleware(
            _answering(cast(WSGIApp, served.app), self._connections_are_cut), workers=settings.threads
        )
        self._threads = asyncio.Semaphore(settings.threads)
        self._waiting = 0
        self._served.last_known()  # begins the check before the first probe

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; health probes are not among them."""
        with self._served.loop.request():
            await self._handle(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        settings = self._served.settings
        size = BodySize(settings.body_limit_bytes, self._bodies)
        try:
            body = await _body(receive, size, settings.body_seconds)
            if body is None:
                return
            if self._threads.locked() and self._waiting >= settings.queue_limit:
                body = None
                size.release()
                await self._refuse(scope, send)
                return
            chunks = deque([b""] if isinstance(body, BodyRefusal) else body)
            refusal = {REFUSAL: body} if isinstance(body, BodyRefusal) else {}
            body = None  # the chunks are freed as they are read

            async def read() -> Any:
                chunk = chunks.popleft()
                return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

            if await self._thread(receive):
                try:
                    await self._asgi(cast(Scope, {**scope, **refusal}), read, send)
                finally:
                    self._threads.release()
        finally:
            size.release()

    async def _refuse(self, scope: Scope, send: Send) -> None:
        """Answer, without a thread, a request that finds too many waiting for one."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        answer = self._served.refuse(
            scope["method"],
            scope["path"],
            headers,
            BodyRefusal.NO_THREAD,
            headers.get("content-length"),
        )
        sent = {**answer.headers, "Content-Length": str(len(answer.body))}
        encoded = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": answer.body})

    async def _thread(self, receive: Receive) -> bool:
        """Wait for a thread and take it; False, without one, if the client closes the connection before.

        Clients that close connections without an answer can send more requests than the threads handle.
        """
        if not self._threads.locked():
            return await self._threads.acquire()
        turn, closed = asyncio.ensure_future(self._threads.acquire()), asyncio.ensure_future(receive())
        taken = False
        self._waiting += 1
        try:
            await asyncio.wait({turn, closed}, return_when=asyncio.FIRST_COMPLETED)
            taken = not closed.done()
            return taken
        finally:
            self._waiting -= 1
            closed.cancel()
            if not taken and not turn.cancel():
                self._threads.release()

    def alive(self) -> State:
        """Always alive: a blocked event loop would not get here."""
        return True, "OK"

    def ready(self) -> State:
        """Whether the API server answers, with missing APIs and permissions as text."""
        return self._served.last_known()

    def stop(self) -> None:
        """Wait for events in work: the middleware closes connections after 3 s, but does not end threads."""
        self._connections_are_cut.set()
        self._served.loop.end()  # it waits here, and events would wait for it
        self._served.wait_until_idle()


def serve_step(step: Step) -> Function:
    """Return the function of a step; see `serve`."""
    return serve([step])


def serve_dead_letters() -> Function:
    """Return the function that keeps dead letters; see `serve`."""
    return serve([], dead_letters=True)


def serve(steps: Sequence[Step], *, dead_letters: bool = False) -> Function:
    """Return the functions of one process, configured by the environment.

    Raises:
        BadSettingError: the environment names no cluster, or has a value that cannot be used.
    """
    settings = config.from_environment()
    logs.configure(settings.log_level)
    func_server.set_limits(settings)
    served = ServedFunctions.connected(steps, settings, dead_letters=dead_letters)
    prepare_process()
    return Function(served)


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
    """Return the app, extended to read chunked bodies and to see why a body was refused.

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
