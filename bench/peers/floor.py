"""The floor: a server of the standard library that makes given API calls by urllib3, and decides nothing.

    python floor.py calls.json

`calls.json` has the calls of each event by its `ce-id`: method, path, content type, body and the expected
status. The address and the credentials of the API server come from the environment. The first line of output
is the URL that it listens on.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import urllib3

SERVER, TOKEN, AUTHORITY = (os.environ[name] for name in ("API_SERVER", "API_TOKEN", "API_CA"))
CALLS = json.loads(Path(sys.argv[1]).read_text())
POOL = urllib3.connection_from_url(SERVER, maxsize=64, ca_certs=AUTHORITY, retries=False)


class Handler(BaseHTTPRequestHandler):
    """Reads an event, makes its calls one after the other, and answers 204."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer an event; 500 if a call was answered with another status than expected."""
        json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        right = all(_sent(*call) for call in CALLS[self.headers["ce-id"]])
        self.send_response_only(204 if right else 500)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _sent(method: str, path: str, content_type: str, body: str, expected: int) -> bool:
    """Send a call, parse the answer, and return whether its status is the expected one."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
    if body:
        headers["Content-Type"] = content_type
    answer = POOL.urlopen(method, path, body=body or None, headers=headers)
    json.loads(answer.data)
    return answer.status == expected


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
