"""A source retries for three seconds and then drops the event; which answers are retried, and when."""

from __future__ import annotations

import logging
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from muster.simulator.clock import rfc3339_nano
from muster.simulator.source.sending import Sender

HEADERS = {"Ce-Type": "dev.knative.apiserver.resource.add", "Ce-Subject": "/apis/v1/namespaces/a/pods/b"}


class _Sink:
    """Answers with the statuses given, the last of them for ever."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.calls: list[dict[str, str]] = []

    def __call__(self, headers: object, _body: bytes) -> int:
        self.calls.append(dict(headers))  # type: ignore[call-overload]  # the sink's own protocol says Mapping
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@pytest.mark.parametrize(
    ("status", "attempts"),
    [
        pytest.param(202, 1, id="202 is taken at once"),
        pytest.param(200, 1, id="200 is taken at once"),
        *[
            pytest.param(status, 1, id=f"{status} is lost at once")
            for status in (400, 401, 409, 410, 422, 500, 501)
        ],
        *[pytest.param(status, 6, id=f"{status} is tried six times") for status in (404, 413, 425, 429)],
        *[pytest.param(status, 6, id=f"{status} is tried six times") for status in (502, 503, 504)],
        pytest.param(0, 6, id="no answer is tried six times"),
    ],
)
def test_answers_that_come_again(status: int, attempts: int) -> None:
    """The table of sdk-go as the adapter uses it: a 500 or a 409 is never sent again."""
    sink = _Sink(status)
    taken = Sender(sink, wait=lambda _seconds: None).send(HEADERS, b"{}")
    assert len(sink.calls) == attempts
    assert taken == (status in (200, 202))


def test_waits_add_up_to_three_seconds() -> None:
    """0.1, 0.2, 0.4, 0.8 and 1.6 seconds, as the real adapter was measured."""
    waits: list[float] = []
    Sender(_Sink(503), wait=waits.append).send(HEADERS, b"{}")
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6]


def test_attempts_of_one_sending_share_an_id_and_sendings_do_not() -> None:
    """The id distinguishes retries of one sending from a second event about the same change."""
    sink = _Sink(503, 202)
    sender = Sender(sink, wait=lambda _seconds: None)
    sender.send(HEADERS, b"{}")
    sender.send(HEADERS, b"{}")
    first, again, second = (call["Ce-Id"] for call in sink.calls)
    assert first == again
    assert second != first


def test_a_drop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The only trace of a lost event is one line with its subject and the last answer."""
    with caplog.at_level(logging.ERROR):
        Sender(_Sink(500)).send(HEADERS, b"{}")
    assert "/apis/v1/namespaces/a/pods/b" in caplog.text
    assert "500" in caplog.text
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        pytest.param(1_795_249_044_201_561_128, "2026-11-21T08:17:24.201561128Z", id="nine digits"),
        pytest.param(
            1_795_249_045_573_147_300, "2026-11-21T08:17:25.5731473Z", id="zeros at the end are left out"
        ),
        pytest.param(1_795_249_045_000_000_000, "2026-11-21T08:17:25Z", id="a whole second has no fraction"),
    ],
)
def test_times_are_written_as_go_writes_them(nanoseconds: int, text: str) -> None:
    """RFC 3339 with up to nine digits; the first two texts were recorded."""
    assert rfc3339_nano(nanoseconds) == text


def test_a_url_is_posted_to() -> None:
    """Over HTTP the sink gets the headers of binary mode, an empty namespace among them, and the body."""
    seen: list[tuple[dict[str, str], bytes]] = []

    class EventReceiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Keep what came and accept it."""
            seen.append((dict(self.headers.items()), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Keep quiet."""

    with HTTPServer(("127.0.0.1", 0), EventReceiver) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        assert Sender(url, headers={"Kn-Namespace": "muster-system"}).send(
            {**HEADERS, "Ce-Namespace": ""}, b"{}"
        )
        thread.join()
    ((headers, body),) = seen
    assert headers["Ce-Namespace"] == ""
    assert headers["Kn-Namespace"] == "muster-system"
    assert re.fullmatch(r"[0-9a-f-]{36}", headers["Ce-Id"])
    assert body == b"{}"


def test_a_sink_that_is_away_is_no_answer() -> None:
    """A refused connection is tried again like a 503, then the event is lost."""
    waits: list[float] = []
    assert not Sender("http://127.0.0.1:9/", wait=waits.append).send(HEADERS, b"{}")
    assert len(waits) == 5
