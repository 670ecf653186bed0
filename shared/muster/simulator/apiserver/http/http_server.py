"""HTTP/1.1 by the standard library: a thread for each connection, keep-alive, chunked answers to watches."""

from __future__ import annotations

import contextlib
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qsl

from muster.simulator.apiserver.http.requests import Request, Response
from muster.simulator.apiserver.refusals import ApiError


class HttpServer(ThreadingHTTPServer):
    """A listener that tracks its open connections, so that stopping does not wait for idle clients."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, handle: Callable[[Request], Response], port: int = 0) -> None:
        self.handle = handle
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), RequestHandler)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def start(self) -> None:
        """Start serving; requests are answered once this returns."""
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening and end every connection."""
        self.shutdown()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def server_bind(self) -> None:
        """Bind without the reverse DNS look-up of the base class, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Track the connection and serve it in a thread of its own."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection and stop tracking it."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of a connection: the client closed it."""


class RequestHandler(BaseHTTPRequestHandler):
    """Serves the requests of a connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: HttpServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Disable access logging."""

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        try:
            response = self.server.handle(Request(self.command, path, parameters, headers, body))
        except Exception as error:  # noqa: BLE001 - a bug is answered with 500 and printed with its traceback
            traceback.print_exc()
            failure = ApiError(500, "InternalError", f"{type(error).__name__}: {error}")
            response = Response(500, failure.status())
        self.send_response_only(response.status)
        self.send_header("Content-Type", response.content_type)
        for name, value in response.headers.items():
            self.send_header(name, value.encode().decode("latin-1"))  # UTF-8, as Go sends it
        if response.stream is None:
            content = response.encoded()
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()
        else:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self._stream(response.stream())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - http.server calls these

    def _stream(self, chunks: Iterator[bytes]) -> None:
        with contextlib.closing(chunks):  # type: ignore[type-var]  # a generator
            for chunk in chunks:
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
