"""Both servers of functions with more requests in work than they have threads: probes and other senders."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

import pytest

from muster.runtime import config
from muster.runtime.http import responses
from muster.runtime.http.func_server import LimitedConnection, OpenConnections
from muster.runtime.http.responses import HttpAnswer
from muster.runtime.outcome import Outcome
from tests.unit.runtime.fakes import FakeCluster, a_handler, an_event
from tests.unit.runtime.http.servers import (
    SERVERS,
    Served,
    answer,
    behind_func,
    behind_waitress,
    post,
    reason,
    status,
    wait_until,
)

HEADERS, BODY = an_event()
EVENT = post(HEADERS, BODY)
LIVENESS = b"GET /health/liveness HTTP/1.1\r\nHost: muster\r\n\r\n"
METRICS = LIVENESS.replace(b"/health/liveness", b"/metrics")
THREADS = 3
"""The threads of a server with one worker and one place to wait."""


@dataclass
class Busy:
    """A function whose events stay in work until `finish`.

    Attributes:
        served: its server.
        begun: returns the number of events that have a thread.
        finish: ends the events.
        clients: closes the connections in the end.
    """

    served: Served
    begun: Callable[[], int]
    finish: threading.Event
    clients: ExitStack

    def send(self, number: int, request: bytes = EVENT) -> list[socket.socket]:
        """Send a request on each of so many new connections."""
        opened = [self.clients.enter_context(self.served.connect()) for _ in range(number)]
        for connection in opened:
            connection.sendall(request)
        return opened

    def send_one_by_one(self, number: int) -> list[socket.socket]:
        """Send so many events, each when the one before is in work: no two connections wait at once."""
        sent: list[socket.socket] = []
        for count in range(1, number + 1):
            sent += self.send(1)
            self.wait_until_begun(count)
        return sent

    def wait_until_begun(self, number: int) -> None:
        """Wait until so many events have a thread."""
        assert wait_until(lambda: self.begun() == number, 5)

    def send_as_many_as_may_wait(self) -> list[socket.socket]:
        """Send requests until each thread has one, and as many wait for a thread."""
        sent = self.send(THREADS)
        self.wait_until_begun(THREADS)
        sent += self.send(THREADS)
        for connection in sent:
            connection.settimeout(0.1)
            with pytest.raises(TimeoutError):
                connection.recv(1)
            connection.settimeout(10)
        return sent


Start = Callable[..., Busy]


@pytest.fixture(params=SERVERS)
def start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """A function that serves, behind one of both servers, events that stay in work."""
    monkeypatch.setattr(config, "SPARE_THREADS", 0)
    finish = threading.Event()
    with ExitStack() as servers, ExitStack() as clients:
        servers.callback(finish.set)

        def serve(**settings: Any) -> Busy:
            begun: list[int] = []
            cluster = FakeCluster()
            handler = a_handler(
                None, cluster, **{"workers": 1, "most_in_work": 2, "waiting": THREADS - 2, **settings}
            )

            def handle(_headers: Any, _body: bytes) -> HttpAnswer:
                begun.append(1)
                finish.wait(10)
                return HttpAnswer(202)

            monkeypatch.setattr(handler, "handle", handle)
            served: Served = servers.enter_context(request.param(handler, cluster))
            servers.callback(finish.set)
            return Busy(served, lambda: len(begun), finish, clients)

        yield serve


def test_requests_in_work_close_no_connection(start: Start) -> None:
    """A probe that has connected, and waits for its turn to send, is answered."""
    busy = start(waiting=20, connection_limit=5)
    (probe,) = busy.send(1, b"")
    in_work = busy.send_one_by_one(10)
    busy.send(3, b"")
    probe.sendall(LIVENESS)
    assert status(answer(probe)) == 200
    busy.finish.set()
    assert [status(answer(connection)) for connection in in_work] == [202] * 10


def test_connections_that_wait_are_closed_beside_requests_in_work(start: Start) -> None:
    """The limit holds for those that wait, and the oldest of them makes room."""
    busy = start(waiting=20, connection_limit=5)
    busy.send_one_by_one(4)
    idle = busy.send(8, b"")
    assert wait_until(lambda: busy.served.open_connections() == 9, 5)
    assert [connection.recv(1) for connection in idle[:3]] == [b""] * 3


@pytest.mark.thorough
def test_a_request_beyond_those_that_may_wait_is_refused_at_once(start: Start) -> None:
    """It comes again: 503 with Retry-After, counted like other answers, before any thread is free."""
    busy = start()
    waiting = busy.send_as_many_as_may_wait()
    received = busy.served.exchange(EVENT)
    head, _, _ = received.partition(b"\r\n\r\n")
    assert (status(received), reason(received)) == (503, "TooManyWaiting")
    assert b"retry-after: 1" in head.lower()
    assert b"content-type: application/json" in head.lower()
    assert status(busy.served.exchange(METRICS)) == 503
    busy.finish.set()
    assert [status(answer(connection)) for connection in waiting] == [202] * 2 * THREADS
    metrics = busy.served.exchange(METRICS).decode()
    assert 'reason="TooManyWaiting",type="unreadable"} 1.0' in metrics


@pytest.mark.thorough
def test_liveness_needs_no_thread(start: Start) -> None:
    """Else a busy function is restarted, and loses what it has in work."""
    busy = start()
    busy.send_as_many_as_may_wait()
    assert status(busy.served.exchange(LIVENESS)) == 200


def test_the_body_of_a_refused_request_is_freed(start: Start) -> None:
    """Those that wait keep theirs."""
    busy = start()
    busy.send(THREADS)
    busy.wait_until_begun(THREADS)
    large = post(HEADERS, BODY + b" " * 200_000)
    busy.send(THREADS, large)
    assert wait_until(lambda: busy.served.bodies.taken > THREADS * 100_000, 5)
    kept = busy.served.bodies.taken
    assert [reason(busy.served.exchange(large)) for _ in range(3)] == ["TooManyWaiting"] * 3
    assert wait_until(lambda: busy.served.bodies.taken == kept, 3)


@pytest.mark.thorough
@pytest.mark.parametrize("start", [behind_func], indirect=True)
def test_clients_that_have_gone_leave_their_places(start: Start) -> None:
    """Else those that close connections would have others refused until the threads are free."""
    busy = start()
    waiting = busy.send_as_many_as_may_wait()
    for connection in waiting[THREADS:]:
        connection.close()
    assert wait_until(lambda: len(LimitedConnection.opened) == THREADS, 5)
    others = busy.send(THREADS)
    busy.finish.set()
    assert [status(answer(connection)) for connection in others] == [202] * THREADS


@pytest.mark.thorough
@pytest.mark.parametrize("start", [behind_waitress], indirect=True)
def test_where_too_many_refusals_wait_the_connection_is_closed(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender takes it for a refusal, and the memory for those that wait is bounded."""
    refusing = threading.Event()
    of_refusal = responses.of_refusal

    def slow(*arguments: Any) -> Outcome:
        refusing.wait(10)
        return of_refusal(*arguments)

    monkeypatch.setattr(responses, "of_refusal", slow)
    busy = start()
    busy.send_as_many_as_may_wait()
    refused = busy.send(2 * THREADS)
    try:
        closed, _, _ = select.select(refused, [], [], 5)
        assert [connection.recv(1) for connection in closed] == [b""] * len(closed)
        assert closed
    finally:
        refusing.set()


def test_open_connections_are_counted_for_many_new_ones_together() -> None:
    """Counted for each, a thousand took all the time of the event loop, and no probe was answered."""
    counted = 0

    class InWork:
        def waits(self) -> bool:
            nonlocal counted
            counted += 1
            return False

    opened = OpenConnections()
    for _ in range(1000):
        opened.add(cast(LimitedConnection, InWork()), 500)
    assert 0 < counted < 25_000
