"""Errors of an API server over a real socket, and the outcome of the event."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from muster.cluster.http import connections
from muster.cluster.http.client import Client
from muster.cluster.versioned import Versioned
from tests.unit.runtime.fakes import FakeCluster, a_handler, a_step, an_event, execute


class Faulty(ThreadingHTTPServer):
    """An API server that gives one answer to everything."""

    daemon_threads = True
    status = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b"{}"

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.may_answer.set()
        super().__init__(("127.0.0.1", 0), Answering)

    def handle_error(self, *_: Any) -> None:
        """Silence: a caller that stopped waiting is part of the test."""


class Answering(BaseHTTPRequestHandler):
    """Answers as its server is configured."""

    def do_GET(self) -> None:
        """The one answer, when it may be given."""
        server = self.server
        assert isinstance(server, Faulty)
        server.may_answer.wait(10)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(server.status)
        for name, value in (*server.headers, ("Content-Length", str(len(server.body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(server.body)

    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *_: Any) -> None:
        """Silence."""


@pytest.fixture
def server() -> Iterator[Faulty]:
    """The server, up."""
    with Faulty() as faulty:
        thread = threading.Thread(target=faulty.serve_forever, args=(0.01,))
        thread.start()
        yield faulty
        faulty.may_answer.set()
        faulty.shutdown()
        thread.join()


def cluster_of(server: Faulty) -> Versioned:
    """A client of the server."""
    return Versioned(Client.for_server(f"http://127.0.0.1:{server.server_port}"))


def status_of(code: int, reason: str, **details: Any) -> bytes:
    """A Kubernetes Status object."""
    status = {
        "kind": "Status",
        "code": code,
        "reason": reason,
        "message": f"it said {reason}",
        "details": details,
    }
    return json.dumps(status).encode()


TERMINATING = {"causes": [{"reason": "NamespaceTerminating"}], "name": "llama-0"}


@pytest.mark.parametrize(
    ("code", "body", "want"),
    [
        pytest.param(401, status_of(401, "Unauthorized"), (503, "Unauthorized"), id="401"),
        pytest.param(403, status_of(403, "Forbidden"), (503, "Forbidden"), id="403, a missing role"),
        pytest.param(409, status_of(409, "Conflict"), (409, "Conflict"), id="409, written in between"),
        pytest.param(
            409, status_of(409, "AlreadyExists"), (409, "AlreadyExists"), id="409, the name is taken"
        ),
        pytest.param(422, status_of(422, "Invalid"), (500, "Invalid"), id="422, never acceptable"),
        pytest.param(500, status_of(500, "InternalError"), (503, "Unavailable"), id="500"),
        pytest.param(503, b"<html>proxy</html>", (503, "Unavailable"), id="503 of a proxy, no Status object"),
        pytest.param(504, status_of(504, "Timeout"), (503, "Unavailable"), id="504"),
        pytest.param(
            200, b"<html>login</html>", (503, "Unavailable"), id="200 that is no JSON, as of a portal"
        ),
    ],
)
@pytest.mark.parametrize("moment", ["read", "write"])
def test_answer_of_the_api_server(
    server: Faulty, moment: str, code: int, body: bytes, want: tuple[int, str]
) -> None:
    """Each answer of the API server has its answer to the event, whether it comes to a read or to a write."""
    server.status, server.body = code, body
    answer = handled(server, moment)
    assert (answer.status, json.loads(answer.body)["reason"]) == want


def test_retry_after_is_passed_on(server: Faulty) -> None:
    """429 with Retry-After: the sender is asked to wait as long as the API server asked us."""
    server.status, server.body = 429, status_of(429, "TooManyRequests")
    server.headers = (("Retry-After", "17"),)
    answer = handled(server, "read")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "17")


@pytest.mark.parametrize(
    ("code", "body", "reason"),
    [
        pytest.param(
            403, status_of(403, "Forbidden", **TERMINATING), "Deleted", id="the namespace is being deleted"
        ),
        pytest.param(404, status_of(404, "NotFound", name="llama-0"), "ObjectGone", id="the object is gone"),
        pytest.param(404, b"404 page not found", "ApiNotServed", id="the API is not served"),
    ],
)
def test_a_write_to_a_deleted_object_is_202(
    server: Faulty, code: int, body: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A write to what is gone needs no second delivery."""
    caplog.set_level("INFO", "muster")
    server.status, server.body = code, body
    assert handled(server, "write").status == 202
    assert caplog.records[-1].__dict__["fields"]["reason"] == reason


def test_slow_api_server(server: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server that does not answer in time is away: it is unknown whether the write was done."""
    monkeypatch.setattr(connections, "READ_SECONDS", 0.05)
    server.may_answer.clear()
    answer = handled(server, "read")
    assert (answer.status, json.loads(answer.body)["reason"]) == (503, "Unavailable")


def test_a_call_lasts_no_longer_than_the_time_for_its_event(server: Faulty) -> None:
    """Else the broker would time out, and have the event worked on once more beside the first time."""
    server.may_answer.clear()
    began = time.monotonic()
    answer = a_handler(cluster=cluster_of(server), deadline_seconds=0.2).handle(*an_event())
    assert time.monotonic() - began < connections.READ_SECONDS
    assert (answer.status, json.loads(answer.body)["reason"]) == (503, "DeadlineExceeded")


def handled(server: Faulty, moment: str) -> Any:
    """The answer to an event whose step reads from, or writes to, that server."""
    if moment == "read":
        return a_handler(cluster=cluster_of(server)).handle(*an_event())
    real = cluster_of(server)
    step = a_step(execute=lambda _cluster, plan, manager: execute(real, plan, manager))
    return a_handler(step, FakeCluster()).handle(*an_event())
