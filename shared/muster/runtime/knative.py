"""Functions for func's Python middleware (func-python 0.8.1), which serves ASGI from one event loop."""

from __future__ import annotations

from typing import Any

from a2wsgi import WSGIMiddleware

from muster.runtime import config
from muster.runtime.http.app import State
from muster.runtime.serve import Functions
from muster.runtime.step import Step
from muster.runtime.telemetry import logs


class Function:
    """The ASGI function that func's middleware serves; its Flask app runs in threads."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

        def app(environ: Any, start: Any) -> Any:
            # Else Flask would take chunked bodies for empty ones.
            return functions.app({**environ, "wsgi.input_terminated": True}, start)

        self._asgi = WSGIMiddleware(app, workers=functions.settings.threads)

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; health probes are not among them."""
        await self._asgi(scope, receive, send)

    def alive(self) -> State:
        """Always alive: a blocked event loop would not get here."""
        return True, "OK"

    def ready(self) -> State:
        """Whether the API server answers, with missing APIs and permissions as text."""
        return self._functions.last_known()

    def stop(self) -> None:
        """Wait for events in work: the middleware closes connections after 3 s, but does not end threads."""
        self._functions.wait_until_idle()


def serve_step(step: Step | None) -> Function:
    """Return the function of a step, configured by the environment; None keeps dead letters."""
    settings = config.from_environment()
    logs.configure(settings.log_level)
    return Function(Functions.connected([step], settings))
