"""The HTTP ingress of the broker, without authentication, on loopback only.

A POST to `/<namespace>/<broker>` returns 202 if the event is accepted, 400 if it is invalid and 404 for
another broker, as `pkg/broker/ingress/ingress_handler.go` of knative.dev/eventing v0.47.0 does.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from muster.simulator.broker.broker import Broker, RefusedError
from muster.simulator.broker.events import CloudEvent, NotAnEventError


class Ingress:
    """An HTTP server for one broker, on 127.0.0.1."""

    def __init__(self, broker: Broker) -> None:
        """Bind a free port."""
        path = f"/{broker.wiring.namespace}/{broker.wiring.name}"
        handler = type("Handler", (_Handler,), {"broker": broker, "broker_path": path})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
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
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Publish the event of the request."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        status, text = 202, ""
        try:
            headers = dict(self.headers.items())
            event = CloudEvent.from_http(headers, body)
            if self.path == self.broker_path:
                self.broker.publish(event, headers)
            else:
                status, text = 404, f"the broker is at {self.broker_path}\n"
        except (NotAnEventError, RefusedError) as error:
            status, text = 400, f"{error}\n"
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of http.server
        """Disable access logging; deliveries go to the observer, refusals to the publisher."""
