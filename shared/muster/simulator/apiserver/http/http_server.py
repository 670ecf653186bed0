"""HTTP/1.1: parse requests and write responses, with a thread for each connection and keep-alive."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import traceback
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from muster.simulator.apiserver.api import ApiBackend
from muster.simulator.apiserver.http.requests import Request, Response
from muster.simulator.apiserver.status import ApiError

MAX_BODY = 3 * 1024 * 1024
"""The limit of the real server for the body of a request, in bytes."""

LONGEST_LINE = 4096
"""The most bytes of a line between chunks, as in Go."""

_DECIMAL, _HEXADECIMAL = re.compile(rb"0*([0-9]{1,16})"), re.compile(rb"0*([0-9a-fA-F]{1,16})")
"""The lengths of bodies, and of chunks."""


class _UnreadableBodyError(Exception):
    """The body of a request is not read.

    Args:
        status: the HTTP status of the answer, 400 or 413.
    """

    def __init__(self, status: int) -> None:
        super().__init__(
            "request body too large" if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else "400 Bad Request"
        )
        self.status = status


def _length(pattern: re.Pattern[bytes], digits: bytes, before: int = 0) -> int:
    """Return the length of a body or of a chunk.

    Args:
        pattern: _DECIMAL or _HEXADECIMAL.
        digits: the length, as the client sent it.
        before: the length of the chunks before.

    Raises:
        _UnreadableBodyError: it is no length, or longer than MAX_BODY with that of the chunks before.
    """
    match = pattern.fullmatch(digits)
    if match is None:
        raise _UnreadableBodyError(400)
    length = int(match[1], 16 if pattern is _HEXADECIMAL else 10)
    if before + length > MAX_BODY:
        raise _UnreadableBodyError(413)
    return length


class HttpServer(ThreadingHTTPServer):
    """A listener that tracks its open connections, so that stopping does not wait for idle clients."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], api: ApiBackend) -> None:
        self.api = api
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        super().__init__(address, RequestHandler)

    def server_bind(self) -> None:
        """Bind without the reverse DNS look-up of the base class, which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        host, port = self.socket.getsockname()[:2]
        self.server_address = host, port
        self.server_name, self.server_port = host, port

    def process_request(self, request: Any, client_address: Any) -> None:
        """Track the connection and serve it in a thread of its own."""
        with self._connections_lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection and stop tracking it."""
        with self._connections_lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of a connection: the client closed it."""
        del request, client_address

    def close_connections(self) -> None:
        """Shut down all connections."""
        with self._connections_lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class RequestHandler(BaseHTTPRequestHandler):
    """Serves the requests of a connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: HttpServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Disable access logging."""

    def _serve(self) -> None:
        try:
            request = self._request()
        except _UnreadableBodyError as error:
            self.close_connection = True
            self._send(Response(error.status, str(error).encode(), content_type="text/plain"))
            return
        try:
            response = self.server.api.handle(request)
        except Exception as error:  # noqa: BLE001 - a bug is answered with 500 and printed with its traceback
            traceback.print_exc()
            response = Response(
                500, ApiError(500, "InternalError", f"{type(error).__name__}: {error}").status()
            )
        if response.stream is None:
            self._send(response)
        else:
            self._stream(response.stream())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - http.server calls these

    def _request(self) -> Request:
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = self._chunked()
        else:
            length = _length(_DECIMAL, headers.get("content-length", "0").encode(errors="replace"))
            body = self.rfile.read(length) if length else b""
        parameters = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        return Request(self.command, path, parameters, headers, body)

    def _chunked(self) -> bytes:
        body = bytearray()
        while size := _length(_HEXADECIMAL, self._line().split(b";")[0].strip(), len(body)):
            body += self.rfile.read(size)
            self._line()
        self._line()
        return bytes(body)

    def _line(self) -> bytes:
        """Return a line between chunks."""
        line = self.rfile.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise _UnreadableBodyError(400)
        return line

    def _send(self, response: Response) -> None:
        body = response.encoded()
        self.send_response_only(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in response.headers.items():
            self.send_header(name, value.encode().decode("latin-1"))  # UTF-8, as Go sends it
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _stream(self, chunks: Iterator[bytes]) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        try:
            for chunk in chunks:
                if chunk:
                    self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                    self.wfile.flush()
                elif self._client_closed():
                    break
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except OSError:
            self.close_connection = True
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()

    def _client_closed(self) -> bool:
        """Whether the client closed its end: the socket is readable and at its end."""
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        finally:
            self.connection.setblocking(True)
