"""A step as func's Python middleware runs it: an instance with `handle`, `alive`, `ready` and `stop`.

func-python 0.8.1 (the middleware of `invoke: http`) serves ASGI from one event loop. It calls `alive`,
`ready` and `stop` on that loop without awaiting them, and ignores a failing `start`; hence no `start` here.
"""

from __future__ import annotations

from threading import Event
from typing import Any

from a2wsgi import WSGIMiddleware
from a2wsgi.asgi_typing import Receive, Scope, Send
from a2wsgi.wsgi_typing import Environ, IterableChunks, StartResponse, WSGIApp

from muster.cluster.interface import Cluster, RawCluster
from muster.runtime import config, dead_letter, logs
from muster.runtime.app import app_of, wall_clock
from muster.runtime.config import Settings
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.handle import Handler
from muster.runtime.readiness import Readiness, State
from muster.runtime.receiver import Receiver
from muster.runtime.step import Step

CHUNK = 1 << 16
LARGEST_REFUSED = 64
"""Up to so many times the limit a refused body is still read."""


class Function:
    """What takes events in, served by func's middleware; the Flask app behind it works in threads."""

    def __init__(self, handler: Receiver, cluster: RawCluster) -> None:
        settings = handler.settings
        self._handler = handler
        self._connections_are_cut = Event()
        self._readiness = Readiness.of(handler, cluster)
        self._asgi = WSGIMiddleware(
            _reading_whole_bodies(
                app_of(self._handler, self._readiness),
                LARGEST_REFUSED * settings.body_limit_bytes,
                self._connections_are_cut,
            ),
            workers=settings.workers,
        )
        self._readiness.last_known()  # asks ahead of the first probe

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Every request but the two health probes."""
        await self._asgi(scope, receive, send)

    def alive(self) -> State:
        """The event loop runs, else nobody would have asked."""
        return True, "OK"

    def ready(self) -> State:
        """Whether the API server answers, and which gate, runtime-config and permissions are missing."""
        return self._readiness.last_known()

    def stop(self) -> None:
        """Wait for what is being written: the middleware has cut connections after 3 s, but not threads."""
        self._connections_are_cut.set()
        self._handler.in_flight.wait_until_none(self._handler.settings.deadline_seconds)


def serve_step(step: Step) -> Function:
    """The function of a step, set up from the environment.

    Raises:
        BadSettingError: the environment names no cluster, or has a value that cannot be used.
    """
    settings, cluster = _set_up(step.manager)
    return Function(Handler(step, cluster, settings, wall_clock), cluster)


def serve_dead_letters() -> Function:
    """The function that keeps dead letters, set up likewise.

    Raises:
        BadSettingError: as above.
    """
    settings, cluster = _set_up(dead_letter.MANAGER)
    return Function(DeadLetters(cluster, settings, wall_clock), cluster)


def _set_up(user_agent: str) -> tuple[Settings, Cluster]:
    settings = config.from_environment()
    logs.configure(settings.log_level)
    return settings, config.connect(settings, user_agent=user_agent)


def _reading_whole_bodies(app: WSGIApp, limit: int, connections_are_cut: Event) -> WSGIApp:
    """The app, but it reads bodies of unknown length, and those it refuses up to a limit.

    a2wsgi's input ends by itself, which Flask has to be told: it would take a body sent in chunks for an
    empty one. And hypercorn 0.17 never lets go of a connection whose request was left unread, so the rest of
    a refused body is thrown away, before the answer begins: a sender that has seen it may send nothing more.

    Once connections are cut the event loop is about to end: a thread that asked it for anything more could
    wait for ever, and the process with it.
    """

    def wrapped(environ: Environ, start_response: StartResponse) -> IterableChunks:
        begun: list[tuple[Any, ...]] = []
        answer = app({**environ, "wsgi.input_terminated": True}, lambda *begin: begun.append(begin))
        if connections_are_cut.is_set():
            raise ConnectionAbortedError("the function stopped before this answer could be sent")
        for _ in range(0, limit, CHUNK):
            if not environ["wsgi.input"].read(CHUNK):
                break
        start_response(*begun[0])
        return answer

    return wrapped
