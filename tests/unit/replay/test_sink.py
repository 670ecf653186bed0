"""The answers of `muster record --listen`."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing

import pytest

from muster.local.serving import WsgiServer
from muster.replay.recording.events import SINK_LIMITS, sink_app
from muster.simulator.broker import CloudEvent
from tests.support import cpu

EVENT = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/test", "ce-type": "dev.muster.sweep"}


class _Taker:
    """Takes events until it is stopped."""

    def __init__(self) -> None:
        self.taken: list[CloudEvent] = []
        self.open = True

    def __call__(self, headers: Mapping[str, str], body: bytes) -> bool:
        event = CloudEvent.from_http(headers, body)
        if self.open:
            self.taken.append(event)
        return self.open


@pytest.fixture
def taker() -> _Taker:
    """What stands behind the door."""
    return _Taker()


@pytest.fixture
def port(taker: _Taker) -> Iterator[int]:
    """The port of the sink."""
    served = WsgiServer(sink_app(taker), "sink", settings=SINK_LIMITS)
    yield served.port
    served.stop()


def ask(
    port: int, headers: dict[str, str], body: bytes | Iterable[bytes] = b"", method: str = "POST"
) -> tuple[int, bytes]:
    """Status and body of the answer; an iterable is sent in chunks, without a length."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request(method, "/any/path", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_an_event_in_binary_mode_is_taken(port: int, taker: _Taker) -> None:
    """202 with an empty body: a broker takes any other body for a failure."""
    headers = {**EVENT, "Ce-Namespace": "", "Content-Type": "application/json"}
    assert ask(port, headers, b'{"a": 1}') == (202, b"")
    (event,) = taker.taken
    assert (event["id"], event["datacontenttype"], event.data) == ("1", "application/json", b'{"a": 1}')
    assert event.attributes["namespace"] == ""


def test_an_event_in_structured_mode_is_taken(port: int, taker: _Taker) -> None:
    """Attributes from the body."""
    envelope = {**{name[3:]: value for name, value in EVENT.items()}, "data": [1]}
    body = json.dumps(envelope, separators=(",", ":")).encode()
    assert ask(port, {"Content-Type": "application/cloudevents+json"}, body) == (202, b"")
    assert (taker.taken[0]["type"], taker.taken[0].data) == ("dev.muster.sweep", b"[1]")


def test_a_body_in_chunks_is_read_whole(port: int, taker: _Taker) -> None:
    """Go's client sends one when it does not know the length."""
    assert ask(port, EVENT, iter([b'{"a":', b" 1}"])) == (202, b"")
    assert taker.taken[0].data == b'{"a": 1}'


@pytest.mark.parametrize(
    ("method", "headers", "body", "status"),
    [
        pytest.param("GET", EVENT, b"", 405, id="an event is POSTed"),
        pytest.param("POST", {}, b"{}", 400, id="no event"),
        pytest.param("POST", {**EVENT, "ce-id": ""}, b"", 400, id="an event without an id"),
        pytest.param(
            "POST", {"Content-Type": "application/cloudevents-batch+json"}, b"[]", 400, id="a batch of events"
        ),
        pytest.param(
            "POST",
            {"Content-Type": "application/cloudevents+json"},
            b"{",
            400,
            id="a broken structured event",
        ),
    ],
)
def test_a_request_without_an_event_is_refused(
    port: int, taker: _Taker, method: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    """With words, and nothing is taken."""
    answered, words = ask(port, headers, body, method)
    assert answered == status
    assert words
    assert taker.taken == []


def test_when_nothing_is_recorded_any_more_the_event_may_come_again(port: int, taker: _Taker) -> None:
    """503: a sender that does not want to lose it tries again."""
    taker.open = False
    assert ask(port, EVENT)[0] == 503


def test_a_body_that_is_too_large_is_refused(port: int, taker: _Taker) -> None:
    """413: a sender would send it again and again after 503."""
    assert ask(port, EVENT, b"1" * (SINK_LIMITS.body_limit_bytes + 1))[0] == 413
    assert taker.taken == []


@pytest.mark.parametrize(
    "request_line",
    [
        pytest.param(b"POST a://" + b"0" * 16_000, id="a long target"),
        pytest.param(b"POST / HTTP/1.1\r\na: " + b" " * 16_000 + b"x\0", id="a field of blanks"),
        pytest.param(b"POST / HTTP/1.1\r\na: " + b" " * 60_000, id="a head of 60 KB"),
    ],
)
def test_no_head_stops_the_sink(port: int, request_line: bytes) -> None:
    """The patterns of waitress took 14 s for 4,000 digits, and Ctrl-C had no effect meanwhile."""
    with cpu.at_most(1), socket.create_connection(("127.0.0.1", port), timeout=10) as sender:
        sender.sendall(request_line + b"\r\n\r\n")
        assert sender.recv(100).startswith((b"HTTP/1.0 4", b"HTTP/1.1 4"))
    assert ask(port, EVENT)[0] == 202


def test_unfinished_requests_do_not_keep_out_events(port: int) -> None:
    """Two hundred of them took all connections."""
    with ExitStack() as senders:
        for _ in range(200):
            sender = senders.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            sender.sendall(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n")
        assert ask(port, EVENT)[0] == 202
