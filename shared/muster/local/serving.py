"""A WSGI app on this machine: waitress in a thread of its own."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

from waitress import create_server
from waitress.server import BaseWSGIServer, MultiSocketServer

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class Served:
    """An app that serves from the beginning until `stop`.

    Args:
        app: what to serve.
        name: of its thread.
        host: where to listen; this machine only where none is named.
        port: 0 takes any free one.
        options: waitress's own.

    Attributes:
        port: the one it listens on.

    Raises:
        OSError: the port is taken, or the host is none of this machine.
    """

    def __init__(
        self, app: WSGIApplication, name: str, host: str = "127.0.0.1", port: int = 0, **options: Any
    ) -> None:
        # Waitress warns of every event that waits for a thread.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        # Bound here: waitress leaves the socket open where it cannot bind it.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        door = socket.create_server((host, port), family=family)
        self._server: BaseWSGIServer | MultiSocketServer = create_server(
            app, sockets=[door], ident="muster", **options
        )
        self._stopping = threading.Event()
        self.port: int = door.getsockname()[1]
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def stop(self) -> None:
        """Listen no more."""
        self._stopping.set()
        self._server.close()

    def _serve(self) -> None:
        try:
            self._server.run()
        except OSError:
            # Waitress has no way to stop but to close the socket that its loop waits for.
            if not self._stopping.is_set():
                raise
