"""An HTTP server that answers what a test scripted, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class SeenRequest:
    """One request as it came in; names of headers in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class ScriptedResponse:
    """One answer: a body, or the chunks it comes in; `hold` keeps the answer back until the server stops."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] = ()
    hold: bool = False


class Scripted:
    """The server's side of a test: replies are given in turn, the last one for ever.

    Attributes:
        requests: all that came.
    """

    def __init__(self, *replies: ScriptedResponse) -> None:
        self.replies = list(replies)
        self.requests: list[SeenRequest] = []
        self.stopping = threading.Event()
        self.url = ""

    def next(self) -> ScriptedResponse:
        """The reply to the request that came last."""
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def serving(*replies: ScriptedResponse) -> Iterator[Scripted]:
    """A server on a free port of this machine."""
    script = Scripted(*replies)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        yield script
    finally:
        script.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(script: Scripted) -> Callable[..., BaseHTTPRequestHandler]:
    class ScriptedHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            script.requests.append(
                SeenRequest(
                    self.command,
                    parts.path,
                    query,
                    {name.lower(): value for name, value in self.headers.items()},
                    body,
                )
            )
            reply = script.next()
            if reply.hold:
                script.stopping.wait()
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.chunks:
                self._send_chunks(reply.chunks)
            else:
                text = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                if "Content-Length" not in reply.headers:
                    self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                self.close_connection = "Content-Length" in reply.headers

        def _send_chunks(self, chunks: tuple[bytes, ...]) -> None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for chunk in chunks:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815 - the names the library calls

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    return ScriptedHandler


def status(code: int, reason: str = "", message: str = "no", **details: Any) -> dict[str, Any]:
    """A Status body as the API server writes it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return body | {"code": code, "details": details}
