"""Serve a WSGI app with waitress in a thread."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from muster.runtime.serve import server_of

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class WsgiServer:
    """A server that listens from its creation until `stop`; port 0 takes any free port.

    Raises:
        OSError: the port is taken, or the host is not an address of this machine.
    """

    def __init__(
        self, app: WSGIApplication, name: str, host: str = "127.0.0.1", port: int = 0, threads: int = 8
    ) -> None:
        # The socket is bound here, since waitress does not close its socket if it cannot bind it.
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
        self._server = server_of(app, threads, sockets=[listener])
        self._stopping = threading.Event()
        self.port: int = listener.getsockname()[1]
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def stop(self) -> None:
        """Close the listening socket."""
        self._stopping.set()
        self._server.close()

    def _serve(self) -> None:
        try:
            self._server.run()
        except OSError:
            # `stop` closes the socket that waitress selects on, since waitress has no other way to stop.
            if not self._stopping.is_set():
                raise
