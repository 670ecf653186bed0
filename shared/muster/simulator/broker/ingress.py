"""The HTTP ingress of the broker, without authentication, on loopback only.

The responses are those of `pkg/broker/ingress/ingress_handler.go` of knative.dev/eventing v0.47.0, with a
text for the person who reads a refusal. A POST to `/<namespace>/<broker>` returns 202 if the event is
accepted, 400 if it is invalid and 404 for another broker; OPTIONS returns 200, other methods 405.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from muster.simulator.broker.attributes import NotAnEventError
from muster.simulator.broker.broker import Broker, RefusedError
from muster.simulator.broker.events import CloudEvent

WEB_HOOKS = {"Allow": "POST, OPTIONS", "WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "*"}


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
        body = self._body()
        if body is None:
            self.close_connection = True
            self._respond(400, "the body is broken: neither of a given length nor in chunks")
            return
        path = self.requestline.split()[1]  # `self.path` has lost its first of two slashes
        segments = path.removesuffix("/").split("/")
        if path == "/":
            self._respond(404, f"the broker is at {self.broker_path}")
        elif len(segments) != len(self.broker_path.split("/")):
            self._respond(
                400, f"the path of a broker is /<namespace>/<name>; this one is at {self.broker_path}"
            )
        else:
            self._publish("/".join(segments), body)

    def do_OPTIONS(self) -> None:
        """Allow any sender any rate, as the CloudEvents web hook specification asks."""
        self.send_response(200)
        for name, value in WEB_HOOKS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """Refuse a method other than POST."""
        self._respond(405, "events are POSTed")

    do_PUT = do_DELETE = do_PATCH = do_HEAD = do_GET  # noqa: N815 - names that http.server calls

    def _publish(self, path: str, body: bytes) -> None:
        headers = dict(self.headers.items())
        try:
            event = CloudEvent.from_http(headers, body)
            if path != self.broker_path:
                self._respond(404, f"the broker is at {self.broker_path}")
                return
            self.broker.publish(event, headers)
        except NotAnEventError as error:
            self._respond(400, str(error))
        except RefusedError as refused:
            self._respond(refused.status, str(refused))
        else:
            self._respond(202)

    def _body(self) -> bytes | None:
        """Return the body of the request; None if it cannot be read."""
        try:
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                return b"".join(iter(self._chunk, b""))
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        except ValueError:
            return None

    def _chunk(self) -> bytes:
        """Return the next chunk of the body; empty after the last one (RFC 9112, 7.1; no trailers)."""
        chunk = self.rfile.read(int(self.rfile.readline().partition(b";")[0], 16))
        self.rfile.readline()
        return chunk

    def _respond(self, status: int, text: str = "") -> None:
        body = f"{text}\n".encode() if text else b""
        self.send_response(status)
        self.send_header("Allow", WEB_HOOKS["Allow"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of http.server
        """Disable access logging; deliveries go to the observer, refusals to the publisher."""
