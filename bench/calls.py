"""The API calls of an event: recorded by a proxy, and aimed at other objects to be made again."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3

from tests.cluster.credentials import Credentials

_VERSION = r'(?:(?<=")|(?<=resourceVersion=)){}(?![\w.-])'


@dataclass(frozen=True)
class Call:
    """A request to the API server, with the status of its answer.

    Attributes:
        path: with the query.
        body: as text; empty for none.
    """

    method: str
    path: str
    content_type: str
    body: str
    status: int


def aimed(call: Call, recorded: Mapping[str, str], target: Mapping[str, str]) -> Call:
    """Return a recorded call with the names, UIDs and versions of other objects.

    Args:
        call: as it was recorded.
        recorded: the identifiers of the objects that it was made for, by a name of their role.
        target: those of the other objects, by the same names.
    """
    roles = {value: role for role, value in recorded.items() if value}
    longest_first = sorted(roles, key=len, reverse=True)
    # Names and UIDs also stand within longer names; a number is a version only where one can stand.
    words = (_VERSION.format(value) if value.isdigit() else re.escape(value) for value in longest_first)
    pattern = re.compile("|".join(words))

    def aim(text: str) -> str:
        return pattern.sub(lambda match: target[roles[match[0]]], text)

    return replace(call, path=aim(call.path), body=aim(call.body))


class RecordingProxy:
    """An HTTPS server on loopback that passes requests on to an API server and records them.

    Attributes:
        url: its address.
        calls: those of all finished requests; the caller clears it.
    """

    def __init__(self, server: str, credentials: Credentials) -> None:
        self.calls: list[Call] = []
        pool = urllib3.connection_from_url(
            server, maxsize=64, ca_certs=str(credentials.certificate), retries=False
        )
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), _handler(pool, self.calls))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(credentials.certificate, credentials.key)
        self._listener.socket = context.wrap_socket(self._listener.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._listener.server_port}"

    def start(self) -> None:
        """Listen, in a thread."""
        threading.Thread(target=self._listener.serve_forever, name="proxy", daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        self._listener.shutdown()
        self._listener.server_close()


@contextmanager
def recording(server: str, credentials: Credentials) -> Iterator[RecordingProxy]:
    """Run a proxy in front of an API server for the length of a block."""
    proxy = RecordingProxy(server, credentials)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


def _handler(pool: urllib3.HTTPConnectionPool, calls: list[Call]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            answer = pool.request(self.command, self.path, body=body or None, headers=headers)
            content_type = self.headers.get("Content-Type") or ""
            calls.append(Call(self.command, self.path, content_type, body.decode(), answer.status))
            self.send_response_only(answer.status)
            for name in ("Content-Type", "Retry-After"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Content-Length", str(len(answer.data)))
            self.end_headers()
            self.wfile.write(answer.data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815 - http.server calls these

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Disable access logging."""

    return Handler
