"""A sink for event sources, which stores every request."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class ReceivedRequest:
    """A received request; header names as they were sent."""

    headers: dict[str, str]
    body: bytes


class Sink:
    """A context manager that listens on loopback and answers 202 to every request.

    Attributes:
        url: address; each sender appends a path of its own.
        received: requests so far, by path, in order of arrival.
    """

    def __init__(self) -> None:
        received: defaultdict[str, list[ReceivedRequest]] = defaultdict(list)

        class SinkHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Store the request and answer 202."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received[self.path].append(ReceivedRequest(dict(self.headers.items()), body))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                """Log nothing."""

        self.received = received
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), SinkHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
