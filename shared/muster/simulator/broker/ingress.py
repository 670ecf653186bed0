"""The HTTP ingress of the broker, without authentication, on loopback only.

The responses are those of `pkg/broker/ingress/ingress_handler.go` of knative.dev/eventing v0.47.0. A POST to
`/<namespace>/<broker>` returns 202 if the event is accepted, 400 if it is invalid and 404 for another broker;
other methods return 405.
"""

from __future__ import annotations

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from muster.simulator.broker.broker import Broker, RefusedError
from muster.simulator.broker.events import CloudEvent, NotAnEventError


class Ingress:
    """An HTTP server for one broker, on 127.0.0.1."""

    def __init__(self, broker: Broker, *, port: int = 0) -> None:
        """Bind the port; 0 selects a free port."""
        path = f"/{broker.wiring.namespace}/{broker.wiring.name}"
        handler = type("Handler", (_Handler,), {"broker": broker, "broker_path": path})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}{path}"

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and close the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    broker: ClassVar[Broker]
    broker_path: ClassVar[str]
    protocol_version = "HTTP/1.1"
    timeout = 60
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Publish the event of the request."""
        length = self.headers.get("Content-Length")
        if length is None or not length.isdecimal():
            self.close_connection = True
            self._respond(411, "an event needs a Content-Length")
            return
        body = self.rfile.read(int(length))
        if self.path.rstrip("/") != self.broker_path:
            self._respond(404, f"the broker is at {self.broker_path}")
            return
        try:
            self.broker.publish(CloudEvent.from_http(dict(self.headers.items()), body))
        except NotAnEventError as error:
            self._respond(400, str(error))
        except RefusedError as refused:
            self._respond(refused.status, str(refused))
        else:
            self._respond(202)

    def do_GET(self) -> None:
        """Refuse a method other than POST."""
        self._respond(405, "events are POSTed")

    do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815 - names that http.server calls

    def _respond(self, status: int, text: str = "") -> None:
        body = f"{text}\n".encode() if text else b""
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "POST")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of http.server
        """Disable access logging; deliveries go to the observer, refusals to the publisher."""
