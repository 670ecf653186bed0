"""HTTP/1.1 on loopback: one thread for each connection, kept alive, without delay of small answers."""

from __future__ import annotations

import contextlib
import socket
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from muster.simulator.apiserver.api import Api
from muster.simulator.apiserver.requests import Answer, Request
from muster.simulator.apiserver.status import ApiError

MAX_BODY = 3 * 1024 * 1024
"""The real server's limit for a request's body."""


class Server(ThreadingHTTPServer):
    """Listens, and knows its open connections so that stopping does not wait for idle clients."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], api: Api) -> None:
        self.api = api
        self._connections: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Bind without looking up the host's name, which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        host, port = self.socket.getsockname()[:2]
        self.server_address = host, port
        self.server_name, self.server_port = host, port

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection and serve it on a thread of its own."""
        with self._guard:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection and close it."""
        with self._guard:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nothing to report."""
        del request, client_address

    def close_connections(self) -> None:
        """End all connections, idle or not."""
        with self._guard:
            open_now = list(self._connections)
        for connection in open_now:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    """Reads requests of one connection and writes the answers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Nothing: `calls()` counts requests, and what fails is told to who asked."""

    def _serve(self) -> None:
        request = self._request()
        if request is None:
            self._send(Answer(413, b"request body too large", content_type="text/plain"))
            return
        try:
            answer = self.server.api.handle(request)
        except Exception as error:  # noqa: BLE001 - a bug in here is told to who asked and on standard error
            traceback.print_exc()
            answer = Answer(500, ApiError(500, "InternalError", f"{type(error).__name__}: {error}").status())
        if answer.stream is None:
            self._send(answer)
        else:
            self._stream(answer.stream())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - http.server calls these

    def _request(self) -> Request | None:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        length = int(headers.get("content-length") or 0)
        if length > MAX_BODY:
            self.close_connection = True
            return None
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = self._chunked()
        else:
            body = self.rfile.read(length) if length else b""
        parameters = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        return Request(self.command, path, parameters, headers, body)

    def _chunked(self) -> bytes:
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _send(self, answer: Answer) -> None:
        body = answer.encoded()
        self.send_response_only(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _stream(self, pieces: Iterator[bytes]) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        try:
            for piece in pieces:
                if piece:
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    self.wfile.flush()
                elif self._client_left():
                    break
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except OSError:
            self.close_connection = True
        finally:
            close = getattr(pieces, "close", None)
            if close is not None:
                close()

    def _client_left(self) -> bool:
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        finally:
            self.connection.setblocking(True)
