"""A sink for event sources: takes every CloudEvent and keeps it as it came."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Received:
    """One request, header names as they came."""

    headers: dict[str, str]
    body: bytes


class Sink:
    """Listens on loopback while it is entered, and answers 202 to everything.

    Attributes:
        url: where it listens; senders are told apart by the path that they append.
        received: what came so far, by path, in order of arrival.
    """

    def __init__(self) -> None:
        received: defaultdict[str, list[Received]] = defaultdict(list)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Keep the event and accept it."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received[self.path].append(Received(dict(self.headers.items()), body))
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                """Keep quiet."""

        self.received = received
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
