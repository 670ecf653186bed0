"""Requests and responses as plain values, `route` between them, and HTTP/1.1 by the standard library."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qsl, unquote

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.kinds import Kind, Registry
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.refusals import ApiError

Stream = Callable[[], Iterator[bytes]]
"""Starts a watch: yields the JSON of an event each."""

APPLY = "application/apply-patch+yaml"
ADMINISTRATOR = "kubernetes-admin"
"""The name of a user without a token."""


@dataclass(frozen=True)
class Response:
    """A response: JSON as bytes or an object to encode, or the events of a watch in `stream`."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None
    content_type: str = "application/json"

    def encoded(self) -> bytes:
        """Return the body as bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


@dataclass
class Request:
    """A parsed request; `route` sets its Kubernetes verb, and its resource such as `podgroups/status`.

    Attributes:
        query: the last value of each parameter.
        headers: by lower-case name.
        warnings: texts for the Warning header of the response.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    verb: str = ""
    resource: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def user_agent(self) -> str:
        """The User-Agent header; empty if unset."""
        return self.headers.get("user-agent", "")

    @property
    def user(self) -> str:
        """The name of the user: the bearer token, which is not checked; without a token an administrator."""
        return self.headers.get("authorization", "").removeprefix("Bearer ") or ADMINISTRATOR

    @property
    def content_type(self) -> str:
        """The media type of the body without parameters."""
        return self.headers.get("content-type", "application/json").partition(";")[0].strip()

    @property
    def manager(self) -> str:
        """The field manager: the parameter `fieldManager`, or the user agent up to its first slash."""
        return self.query.get("fieldManager") or self.user_agent.partition("/")[0][:128] or "unknown"

    def integer(self, name: str) -> int:
        """Return a parameter that is a number, 0 if it is missing; ApiError 400 if it is none."""
        text = self.query.get(name) or "0"
        if not text.isdecimal():
            raise refusals.bad_request(f"{name} is no number: {text}")
        return int(text)

    @property
    def dry_run(self) -> bool:
        """Whether the request must not be persisted."""
        return bool(self.query.get("dryRun"))

    @cached_property
    def json(self) -> Any:
        """The parsed body; what is no UTF-8 becomes U+FFFD, as in Go."""
        try:
            return json.loads((self.body or b"null").decode(errors="replace"))
        except ValueError as error:
            raise refusals.bad_request(f"error decoding: {error}") from error


@dataclass(frozen=True)
class RequestTarget:
    """What a request addresses; a collection has no name, a list of all namespaces no namespace."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The key of the object in the store: namespace and name."""
        return self.namespace, self.name

    def object_in(self, body: Any) -> Object:
        """Return a body as an object of this kind; ApiError 400 if it is something else."""
        kind = self.kind
        if isinstance(body, dict):
            version, name = body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind
            if (version, name) == (kind.api_version, kind.kind):
                return dict(body)
        raise refusals.bad_request(f"the body is no {kind.kind} of {kind.api_version}")


VERBS = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
}


def route(registry: Registry, request: Request) -> RequestTarget:
    """Return the target of a request under /api or /apis, and set the request's verb and resource."""
    segments = [unquote(segment) for segment in request.path.strip("/").split("/")]
    if segments[0] == "api":
        segments.insert(1, "")
    root, group, version = (*segments, "", "")[:3]
    target = _target(registry, group, version, segments[3:])
    if root not in {"api", "apis"} or target is None:
        raise refusals.no_such_path()
    request.resource = "/".join(filter(None, (target.kind.plural, target.subresource)))
    verb = VERBS.get((request.method, bool(target.name)), "")
    if request.method == "POST" and target.subresource in {"binding", "eviction"}:
        verb = "create"
    elif verb == "list" and request.query.get("watch") in {"1", "true", "True"}:
        verb = "watch"
    if verb not in target.kind.verbs or (target.subresource and verb == "delete"):
        raise refusals.method_not_allowed()
    request.verb = verb
    return target


def _target(registry: Registry, group: str, version: str, rest: list[str]) -> RequestTarget | None:
    namespace = ""
    of_namespace = not group and rest[2:3] == ["status"]
    if rest[:1] == ["namespaces"] and len(rest) > 2 and not of_namespace:  # noqa: PLR2004 - its name, then a plural
        namespace, rest = rest[1], rest[2:]
    kind = registry.find(group, version, "".join(rest[:1]))
    if kind is None or (namespace and not kind.namespaced) or len(rest) > 3:  # noqa: PLR2004 - plural, name, subresource
        return None
    name, subresource = (*rest[1:], "", "")[:2]
    if name and (not kind.stored or (kind.namespaced and not namespace)):
        return None
    if subresource and subresource not in kind.subresources:
        return None
    return RequestTarget(kind, namespace, name, subresource)


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
