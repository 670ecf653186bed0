"""The answers of `muster record --listen`."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing

import pytest

from muster.local.serving import WsgiServer
from muster.replay.recording.events import BODY_LIMIT, sink_app
from muster.simulator.broker import CloudEvent

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
    served = WsgiServer(sink_app(taker), "sink", max_request_body_size=BODY_LIMIT)
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
