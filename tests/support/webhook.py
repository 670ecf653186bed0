"""A chat's webhook on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer


@dataclass
class ChatChannel:
    """A chat channel: its URL, what was said in it, and how it answers."""

    url: str
    status: int
    texts: list[str] = field(default_factory=list)


@contextmanager
def webhook(status: int = 200) -> Iterator[ChatChannel]:
    """Serve a channel that answers with this status."""
    channel = ChatChannel("", status)

    class WebhookHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            channel.texts.append(json.loads(self.rfile.read(length))["text"])
            self.send_response(channel.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), WebhookHandler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        channel.url = f"http://127.0.0.1:{server.server_port}"
        yield channel
        server.shutdown()
        thread.join()
