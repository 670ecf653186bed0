"""The HTTP server behind all subscribers and dead letter sinks of the broker's contract cases.

Both brokers, ours and Knative's, deliver to it by URL, so that both are seen from the same place.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

NO_ANSWER = 0
"""The status that stands for a connection that is closed without an answer."""

LONGEST_SECONDS = 20.0
"""How long a recipient waits at most: for its delay, or for other deliveries."""


@dataclass(frozen=True)
class Reaction:
    """The answer of a recipient to one delivery.

    Attributes:
        status: the HTTP status; NO_ANSWER closes the connection.
        headers: added to the answer.
        body: of the answer.
        seconds: the time before the answer.
    """

    status: int = 202
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0


@dataclass(frozen=True)
class HeardRequest:
    """A request that a recipient received.

    Attributes:
        at: the time of arrival in seconds, of a clock that never goes back.
        headers: names as they were sent.
    """

    at: float
    headers: Mapping[str, str]
    body: bytes


@dataclass
class _Recipient:
    reactions: Sequence[Reaction] | Mapping[str, Reaction] = (Reaction(),)
    heard: list[HeardRequest] = field(default_factory=list)


class Recipients:
    """A context manager that serves any number of recipients on loopback, each at `<url>/<case>/<name>`."""

    def __init__(self) -> None:
        self._recipients: defaultdict[tuple[str, str], _Recipient] = defaultdict(_Recipient)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        handler = type("Handler", (_RecipientHandler,), {"recipients": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def url_of(self, case: str, name: str) -> str:
        """Return the URL of a recipient; nothing listens at that of `nobody`."""
        return "http://127.0.0.1:9" if name == "nobody" else f"{self.url}/{case}/{name}"

    def react(self, case: str, name: str, reactions: Sequence[Reaction] | Mapping[str, Reaction]) -> None:
        """Set the answers of a recipient in order, the last one repeated, or by the id of the event."""
        with self._lock:
            self._recipients[case, name].reactions = reactions

    def of_case(self, case: str) -> dict[str, list[HeardRequest]]:
        """Return the requests of each recipient of a case that received any."""
        with self._lock:
            return {
                name: list(recipient.heard)
                for (owner, name), recipient in sorted(self._recipients.items())
                if owner == case and recipient.heard
            }

    def wait_for_silence(self, case: str, since: float, seconds: float) -> None:
        """Wait until no recipient of a case has received a request for some seconds, counted from `since`."""
        while True:
            times = [request.at for heard in self.of_case(case).values() for request in heard]
            rest = max([since, *times]) + seconds - time.monotonic()
            if rest <= 0:
                return
            time.sleep(rest)

    def take(self, case: str, name: str, request: HeardRequest) -> Reaction:
        """Keep a request, wait as the recipient's reaction says, and return the reaction."""
        with self._lock:
            recipient = self._recipients[case, name]
            reactions, number = recipient.reactions, len(recipient.heard)
            if isinstance(reactions, Mapping):
                reaction = reactions[request.headers["Ce-Id"]]
            else:
                reaction = reactions[min(number, len(reactions) - 1)]
            recipient.heard.append(request)
        self._closing.wait(reaction.seconds)
        return reaction

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: a broker may hang up before the answer."""


class _RecipientHandler(BaseHTTPRequestHandler):
    recipients: Recipients
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Take a delivery and answer it."""
        at = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        _, case, name = self.path.split("/")
        heard = HeardRequest(at, dict(self.headers.items()), body)
        reaction = self.recipients.take(case, name, heard)
        if reaction.status == NO_ANSWER:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(reaction.status)
        for header, value in reaction.headers.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(reaction.body)))
        self.end_headers()
        self.wfile.write(reaction.body)

    def log_message(self, *_args: object) -> None:
        """Log nothing."""
