"""The broker over HTTP: answers to senders, and a subscriber behind a URL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import urllib3

from muster.simulator.broker import Answer, Broker, CloudEvent, HttpTarget, Ingress, NoAnswerError, Wiring
from muster.simulator.broker.targets import MOST_ANSWER_BYTES

EVENT = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/test", "ce-type": "dev.muster.sweep"}
TRIGGER = {
    "kind": "Trigger",
    "metadata": {"name": "step", "namespace": "muster-system"},
    "spec": {"broker": "muster", "subscriber": {"ref": {"name": "step"}}},
}
BROKER = {"kind": "Broker", "metadata": {"name": "muster", "namespace": "muster-system"}}
SECONDS = 5


@pytest.fixture
def seen() -> list[CloudEvent]:
    """What the only subscriber got."""
    return []


@pytest.fixture
def url(seen: list[CloudEvent]) -> Iterator[str]:
    """A broker with one trigger for everything, served on loopback."""

    def step(headers: Mapping[str, str], body: bytes, _timeout: float | None) -> Answer:
        seen.append(CloudEvent.from_http(headers, body))
        return Answer(202)

    broker = Broker(Wiring.from_manifests([BROKER, TRIGGER]), {"step": step}, workers=1, capacity=1)
    ingress = Ingress(broker)
    ingress.start()
    yield ingress.url
    ingress.stop()
    broker.pump()


def _post(url: str, headers: dict[str, str], body: bytes = b"") -> urllib3.BaseHTTPResponse:
    return urllib3.request("POST", url, headers=headers, body=body, timeout=SECONDS, retries=False)


def test_an_event_is_taken_in(url: str) -> None:
    """202 with an empty body, before any function was called; the address is Knative's."""
    answer = _post(url, EVENT)
    assert (answer.status, answer.data) == (202, b"")
    assert url.endswith("/muster-system/muster")


def test_an_event_in_structured_mode_is_taken_in(url: str) -> None:
    """As `curl --json` with the right content type would send it."""
    body = json.dumps({name[3:]: value for name, value in EVENT.items()}).encode()
    assert _post(url, {"Content-Type": "application/cloudevents+json"}, body).status == 202


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        pytest.param({}, "", 400, id="no event"),
        pytest.param({**EVENT, "ce-id": ""}, "", 400, id="no id"),
        pytest.param({**EVENT, "ce-knativebrokerttl": "1"}, "", 400, id="the last of too many replies"),
        pytest.param(EVENT, "-of-others", 404, id="another broker"),
    ],
)
def test_refusals_say_why(url: str, headers: dict[str, str], path: str, status: int) -> None:
    """Each with its status, and a sentence for the person who sent it."""
    answer = _post(url + path, headers)
    assert answer.status == status
    assert answer.data


def test_a_full_queue_is_503(url: str) -> None:
    """The one refusal after which a source tries again."""
    assert [_post(url, EVENT).status, _post(url, EVENT).status] == [202, 503]


def test_only_post_is_heard(url: str) -> None:
    """A browser gets 405 and the method that works."""
    answer = urllib3.request("GET", url, timeout=SECONDS)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST, OPTIONS")


def test_a_body_of_unknown_length_is_read_in_chunks(url: str) -> None:
    """An event that is sent while it is written is accepted."""
    answer = urllib3.request(
        "POST", url, headers=EVENT, body=iter([b"{", b"}"]), timeout=SECONDS, retries=False
    )
    assert answer.status == 202


def test_a_broken_length_is_400(url: str) -> None:
    """The connection is closed, since the end of the request is unknown."""
    answer = _post(url, EVENT | {"Content-Length": "many"})
    assert (answer.status, answer.headers.get("Connection", "close")) == (400, "close")


class _FunctionHandler(BaseHTTPRequestHandler):
    """Answers with the status in the path, never for /silent, and without an end for /endless."""

    silent: threading.Event

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/silent":
            self.silent.wait(SECONDS)
            return
        if self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(bytes(1024 * 1024))
        self.send_response(int(self.path[1:]))
        self.send_header("Content-Length", "2")
        self.send_header("Location", "/202" if self.path == "/307" else "")
        self.end_headers()
        self.wfile.write(b"no")

    def log_message(self, *_args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def functions() -> Iterator[str]:
    """A server of subscribers."""
    _FunctionHandler.silent = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), _FunctionHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        _FunctionHandler.silent.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("status", [202, 301, 404, 503])
def test_every_status_is_an_answer(functions: str, status: int) -> None:
    """Errors, and redirects without a location, raise nothing: the delivery decides."""
    target = HttpTarget(f"{functions}/{status}")
    answer = target(EVENT, b"{}", SECONDS)
    target.close()
    assert (answer.status, answer.body) == (status, b"no")


def test_a_redirect_is_followed(functions: str) -> None:
    """The answer is that of the location."""
    target = HttpTarget(f"{functions}/307")
    assert target(EVENT, b"{}", SECONDS).status == 202
    target.close()


def test_a_function_that_does_not_answer_in_time(functions: str) -> None:
    """The time-out of the delivery ends the attempt."""
    target = HttpTarget(f"{functions}/silent")
    with pytest.raises(NoAnswerError) as no_answer:
        target(EVENT, b"{}", 0.05)
    target.close()
    assert no_answer.value.timed_out


def test_a_connection_serves_further_deliveries(functions: str) -> None:
    """As long as each answer is read to its end."""
    target = HttpTarget(f"{functions}/202", connections=1)
    for _ in range(3):
        target(EVENT, b"{}", SECONDS)
    (pool,) = target._pool.pools._container.values()
    assert (pool.num_connections, pool.num_requests) == (1, 3)
    target.close()


def test_an_answer_without_an_end_is_no_answer(functions: str) -> None:
    """Sent to an endpoint of somebody else, `muster replay` would read it until its memory is full."""
    target = HttpTarget(f"{functions}/endless")
    with pytest.raises(NoAnswerError) as no_answer:
        target(EVENT, b"{}", SECONDS)
    target.close()
    assert str(MOST_ANSWER_BYTES) in str(no_answer.value)


def test_a_function_that_is_not_there() -> None:
    """A refused connection is no time-out: the dead letter says what happened."""
    with pytest.raises(NoAnswerError) as no_answer:
        HttpTarget("http://127.0.0.1:9/")(EVENT, b"{}", SECONDS)
    assert not no_answer.value.timed_out
