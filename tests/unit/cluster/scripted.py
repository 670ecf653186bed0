"""An HTTP server that answers what a test scripted, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class SeenRequest(NamedTuple):
    """One request as it came in; names of headers in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class ScriptedResponse(NamedTuple):
    """One answer; `hold` keeps it back until the server stops."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = {}
    hold: bool = False


class Scripted:
    """The server's side of a test: replies are given in turn, the last one for ever."""

    def __init__(self, *replies: ScriptedResponse) -> None:
        self.replies = list(replies)
        self.requests: list[SeenRequest] = []
        self.stopping = threading.Event()
        self.url = ""


@contextmanager
def serving(*replies: ScriptedResponse) -> Iterator[Scripted]:
    """A server on a free port of this machine."""
    script = Scripted(*replies)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(script)) as server:
        server.daemon_threads = True
        script.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01)).start()
        try:
            yield script
        finally:
            script.stopping.set()
            server.shutdown()


def _handler(script: Scripted) -> Callable[..., BaseHTTPRequestHandler]:
    class ScriptedHandler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(content) if content else None
            query = dict(parse_qsl(parts.query))
            script.requests.append(SeenRequest(self.command, parts.path, query, headers, body))
            reply = script.replies.pop(0) if len(script.replies) > 1 else script.replies[0]
            if reply.hold:
                script.stopping.wait()
                return
            text = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(text)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815 - the names the library calls

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    return ScriptedHandler


def status(code: int, reason: str = "", message: str = "no", **details: Any) -> dict[str, Any]:
    """A Status body as the API server writes it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return body | {"code": code, "details": details}
