"""A client of both servers of functions delays no other client, and what it holds is bounded."""

from __future__ import annotations

import gc
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from muster.runtime.config import Settings
from muster.runtime.http.bodies import LARGEST_HEAD
from muster.runtime.http.func_server import READ_BYTES, LimitedConnection, WholeReads
from muster.runtime.http.waitress_server import LimitedServer
from tests.support import cpu
from tests.unit.runtime.fakes import FakeCluster, a_handler, an_event
from tests.unit.runtime.http.servers import (
    SERVERS,
    Served,
    answer,
    behind_func,
    post,
    reason,
    status,
    wait_until,
)

HEADERS, BODY = an_event()
EVENT = post(HEADERS, BODY)
BODY_SECONDS = 2.0
"""The time limit of a body in tests where others hold what they have until it ends."""
QUICKLY = 0.75 * BODY_SECONDS
"""Seconds within which an event is answered while others hold what they have."""

Serve = Callable[..., Served]


@pytest.fixture(params=SERVERS)
def serve(request: pytest.FixtureRequest) -> Iterator[Serve]:
    """A function that serves a step with the settings given, behind one of both servers."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Served:
            cluster = FakeCluster()
            served: Served = stack.enter_context(request.param(a_handler(None, cluster, **settings), cluster))
            return served

        yield start


@pytest.fixture(name="clients")
def _clients() -> Iterator[ExitStack]:
    """Connections that are closed after the test."""
    with ExitStack() as stack:
        yield stack


def connections(served: Served, clients: ExitStack, number: int, request: bytes = b"") -> list[socket.socket]:
    """So many connections, each with this beginning of a request."""
    opened = [clients.enter_context(served.connect()) for _ in range(number)]
    for connection in opened:
        connection.sendall(request)
    return opened


def answered_quickly(served: Served) -> bool:
    """Whether an event of another client is answered at once."""
    began = time.monotonic()
    return status(served.exchange(EVENT)) == 200 and time.monotonic() - began < QUICKLY


@pytest.mark.thorough
def test_slow_bodies_take_no_worker(serve: Serve, clients: ExitStack) -> None:
    """Four POSTs with too few bytes leave the workers to others, and are refused when their time is over."""
    served = serve(workers=2, body_seconds=BODY_SECONDS)
    slow = connections(served, clients, 4, post(HEADERS, b'{"kind"', length=1000))
    time.sleep(0.2)
    assert answered_quickly(served)
    for connection in slow:
        received = answer(connection)
        assert (status(received), reason(received)) == (408, "BodyTooSlow")
        assert b"MUSTER_BODY_SECONDS" in received
        assert connection.recv(1) == b""


@pytest.mark.thorough
def test_a_body_of_single_bytes_is_slow_too(serve: Serve, clients: ExitStack) -> None:
    """The time is that of the whole body, not of each part of it."""
    served = serve(body_seconds=0.5)
    (connection,) = connections(served, clients, 1, post(HEADERS, b"", length=1000))
    began = time.monotonic()
    for _ in range(40):
        try:
            connection.sendall(b" ")
        except OSError:
            break
        time.sleep(0.1)
    assert time.monotonic() - began < 3.5


def test_requests_sent_before_an_answer_are_dropped(serve: Serve, clients: ExitStack) -> None:
    """One packet of hundreds of requests would keep a worker busy for a client that reads no answer."""
    served = serve()
    (connection,) = connections(served, clients, 1, EVENT * 20)
    received = b"".join(iter(lambda: connection.recv(65536), b""))
    assert received.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in received.lower()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"aa:\r\n" * 102 + b"\r\n", id="whole"),
        pytest.param(b"aa:\r\n" * 102 + b"\r\n" + b"\n" * 1000, id="with a body"),
        pytest.param(b"aa:" + b"a" * LARGEST_HEAD + b"\r\n" * 2, id="one long field"),
        pytest.param(b"aa:\r\n" + b" \r\n" * 102 + b"\r\n", id="one field of many lines"),
    ],
)
def test_a_head_of_many_fields_is_refused(serve: Serve, sent: bytes) -> None:
    """Fields of five bytes take a hundred times their size, in every copy of the head."""
    served = serve(header_limit=100)
    assert status(served.exchange(b"GET /health/liveness HTTP/1.1\r\nHost: a\r\n" + sent)) == 431
    assert wait_until(lambda: not served.open_connections(), 3)


def test_a_head_of_as_many_fields_as_allowed_is_read(serve: Serve) -> None:
    """Line ends of the body do not count."""
    served = serve(header_limit=100)
    fields = "".join(f"X-{number}: a\r\n" for number in range(98))
    head = f"GET /health/liveness HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: 200\r\n\r\n"
    assert status(served.exchange(head.encode() + b"\n" * 200)) == 200


BLANKS = b" " * 15_000
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nA:" + BLANKS + b"\0\r\n\r\n", id="before a value"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nA: b" + BLANKS + b"\0\r\n\r\n", id="within a value"),
        pytest.param(b"GET a://" + b"1" * 3_000 + b" x\r\nHost: a\r\n\r\n", id="of a request line"),
        pytest.param(CHUNKED + b"1;" + BLANKS + b"\nx\r\n", id="before a chunk"),
        pytest.param(CHUNKED + b"0\r\nA:" + BLANKS + b"\0\r\n\r\n", id="in a trailer"),
    ],
)
def test_blanks_take_linear_time(serve: Serve, request_: bytes) -> None:
    """The patterns of both servers' libraries try every way to divide a run of them: seconds for these."""
    served = serve()

    def refused() -> None:
        for _ in range(5):
            assert status(served.exchange(request_)) in {400, 415}

    assert cpu.seconds_of(refused, time.process_time) < 0.25


@pytest.mark.thorough
def test_blank_lines_take_little_time_and_keep_no_connection_open(serve: Serve, clients: ExitStack) -> None:
    """Waitress makes a parser for each, and takes the connection for one that has just come."""
    served = serve(body_seconds=1.0)
    (connection,) = connections(served, clients, 1)
    end = time.monotonic() + 5

    def send() -> None:
        with suppress(OSError):
            while time.monotonic() < end and served.open_connections() in {0, 1}:
                connection.sendall(b"\r\n" * 4_000)
                time.sleep(0.02)

    assert cpu.seconds_of(send, time.process_time) < 0.25
    assert time.monotonic() < end


@pytest.mark.parametrize("lines", [b"\r\n" * 4_000, b"1\r\na\r\n" + b"\r\n" * 4_000])
def test_blank_lines_between_chunks_are_refused(serve: Serve, lines: bytes) -> None:
    """Waitress copies the rest of what it has read for each."""
    assert status(serve().exchange(CHUNKED + lines)) == 400


@pytest.mark.thorough
@pytest.mark.parametrize("beginning", [b"", b"POST / HT", b"POST / HTTP/1.1\r\nHost: a\r\nCe-Id: "])
def test_idle_connections_are_closed(serve: Serve, clients: ExitStack, beginning: bytes) -> None:
    """101 connections without a complete request delay no other client and are closed in the end."""
    served = serve(body_seconds=BODY_SECONDS)
    idle = connections(served, clients, 101, beginning)
    assert answered_quickly(served)
    assert wait_until(lambda: not served.open_connections(), BODY_SECONDS + 6)
    assert [connection.recv(1) for connection in idle] == [b""] * 101


def test_the_longest_waiting_connection_makes_room(serve: Serve, clients: ExitStack) -> None:
    """At the limit a new connection is served, also while the bodies of all others are on their way."""
    served = serve(connection_limit=10, body_seconds=20.0)
    connections(served, clients, 15)
    connections(served, clients, 15, post(HEADERS, b"{", length=1000))
    assert answered_quickly(served)
    assert wait_until(lambda: served.open_connections() <= 10, 2)


def test_all_connections_that_wait_are_accepted_at_once() -> None:
    """One for each look at all others would be 20 a second while waitress is busy."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as clients:
        server = LimitedServer(None, Settings(), listener)
        for _ in range(30):
            clients.enter_context(socket.create_connection(listener.getsockname()))
        server.handle_accept()
        accepted = list(server.active_channels.values())
        for channel in accepted:
            channel.handle_close()
        server.close()
    assert len(accepted) == 30


def test_a_thousand_connections_may_wait_to_be_accepted(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel drops those beyond the backlog, and a probe comes again a second later."""
    listen, backlogs = socket.socket.listen, []

    def recorded(listener: socket.socket, backlog: int = 0) -> None:
        backlogs.append(backlog)
        listen(listener, backlog)

    monkeypatch.setattr(socket.socket, "listen", recorded)
    served = serve()
    assert wait_until(lambda: 1024 in backlogs, 3)
    assert answered_quickly(served)
    assert backlogs[-1] == 1024


def test_bodies_share_a_memory(serve: Serve, clients: ExitStack) -> None:
    """Large bodies that arrive at the same time are refused when they take too much, usual ones are not."""
    served = serve(bodies_limit_bytes=300_000, body_seconds=20.0)
    large = post(HEADERS, b" " * 200_000, length=1_000_000)
    held = connections(served, clients, 2, large)
    assert wait_until(lambda: served.bodies.taken > 250_000, 2)
    (refused,) = connections(served, clients, 1, post(HEADERS, b" " * 200_000))
    received = answer(refused)
    assert (status(received), reason(received)) == (503, "TooManyBodies")
    assert b"etry-" in received
    assert answered_quickly(served)
    for connection in held:
        connection.close()
    assert wait_until(lambda: served.bodies.taken == 0, 3)


def test_memory_is_given_back_after_each_answer(serve: Serve) -> None:
    """Bodies that were read, refused for their size, or cut off leave nothing behind."""
    served = serve(body_limit_bytes=200_000, bodies_limit_bytes=500_000)
    for _ in range(3):
        assert status(served.exchange(post(HEADERS, BODY + b" " * 150_000))) == 200
        assert reason(served.exchange(post(HEADERS, b" " * 300_000))) == "BodyTooLarge"
        with served.connect() as connection:
            connection.sendall(post(HEADERS, b" " * 150_000, length=190_000))
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    assert wait_until(lambda: served.bodies.taken == 0, 3)


def test_a_large_body_in_chunks_is_refused(serve: Serve) -> None:
    """413 where no Content-Length announces it; the lines between chunks are limited as well."""
    served = serve(body_limit_bytes=20_000, body_seconds=1.0)
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"2710\r\n" + b" " * 10_000 + b"\r\n"
    assert status(served.exchange(head + chunk * 3 + b"0\r\n\r\n")) == 413
    assert status(served.exchange(head + b"1;" + b"x" * 40_000)) in {400, 431}


def test_a_body_in_tiny_chunks_is_refused(serve: Serve) -> None:
    """One byte in each takes a server thousands of times as long as one chunk."""
    served = serve()
    head = post({**HEADERS, "Transfer-Encoding": "chunked"}, b"").replace(b"Content-Length: 0\r\n", b"")
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY + b" " * 300)
    assert status(served.exchange(head + chunks + b"0\r\n\r\n")) == 400
    in_kilobytes = b"".join(
        b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:100], BODY[100:], *[b" " * 1024] * 200)
    )
    assert status(served.exchange(head + in_kilobytes + b"0\r\n\r\n")) == 200


@pytest.mark.parametrize("serve", [behind_func], indirect=True)
@pytest.mark.parametrize(
    "sent", [b"broken\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 200]
)
def test_what_a_closed_connection_had_sent_is_freed_at_once(serve: Serve, sent: bytes) -> None:
    """Not with the next collection of garbage, before which a flood of connections would fill the memory."""
    served = serve()

    def kept() -> int:
        return sum(isinstance(found, WholeReads) for found in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            assert status(served.exchange(b"POST / HTTP/1.1\r\nHost: a\r\n" + sent + b" " * 50_000)) == 400
        assert wait_until(lambda: kept() == 0, 3)
    finally:
        gc.enable()


@pytest.mark.parametrize("serve", [behind_func], indirect=True)
def test_little_is_read_of_a_connection_at_once(serve: Serve, clients: ExitStack) -> None:
    """490 senders of 4 MB took a function 280 MiB, because asyncio reads 256 KiB of each ahead."""
    served = serve()
    connections(served, clients, 1, b"POST / HTTP/1.1\r\n")
    assert wait_until(lambda: served.open_connections() == 1, 3)
    (connection,) = LimitedConnection.opened
    transport: Any = connection.writer.transport
    assert type(transport).max_size > transport.max_size == READ_BYTES


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                     b"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n", id="h2c"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
                     id="h2c without settings"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                     id="WebSocket"),
        pytest.param(b"GET /health/liveness HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                     b"Upgrade: websocket\r\n\r\n", id="WebSocket without a key"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2 from the beginning"),
        pytest.param(b"CONNECT /health/liveness HTTP/1.1\r\nHost: a\r\n\r\n", id="a tunnel"),
        pytest.param(b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", id="a tunnel to another host"),
    ],
)  # fmt: skip
def test_upgrades_are_answered_as_plain_requests(
    serve: Serve, request_: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is raised, and nothing speaks another protocol afterwards."""
    served = serve()
    received = served.exchange(request_)
    assert received.startswith(b"HTTP/1.")
    assert status(received) in {200, 400, 404, 405}
    assert wait_until(lambda: not served.open_connections(), 3)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_sender_that_never_stops_is_cut_off(serve: Serve, clients: ExitStack) -> None:
    """A body without end is answered or not, and its connection is closed."""
    served = serve(body_seconds=0.5, body_limit_bytes=100_000)
    (connection,) = connections(served, clients, 1, post(HEADERS, b"", length=1 << 50))
    end = time.monotonic() + 6
    with suppress(OSError):
        while time.monotonic() < end:
            connection.sendall(b" " * 1_000_000)
    assert time.monotonic() < end
    assert answered_quickly(served)
    assert wait_until(lambda: not served.open_connections(), 3)


def test_a_client_that_ends_its_sending_is_answered_and_leaves(serve: Serve, clients: ExitStack) -> None:
    """Nothing is kept for a request that cannot follow."""
    served = serve(body_seconds=20.0)
    (connection,) = connections(served, clients, 1, EVENT)
    connection.shutdown(socket.SHUT_WR)
    assert status(answer(connection)) == 200
    assert wait_until(lambda: not served.open_connections(), 2)


@pytest.mark.thorough
def test_a_probe_with_a_large_body_ends(serve: Serve, clients: ExitStack) -> None:
    """It is answered without its body, and its connection is closed."""
    served = serve(body_seconds=0.5)
    (connection,) = connections(served, clients, 1)
    probe = post(HEADERS, b"").replace(b"POST / ", b"POST /health/liveness ")
    connection.sendall(probe.replace(b"Content-Length: 0", b"Content-Length: 9000000"))
    with suppress(OSError):
        for _ in range(90):
            connection.sendall(b" " * 100_000)
            time.sleep(0.03)
        pytest.fail("the server took all of it")
    assert wait_until(lambda: not served.open_connections(), 4)


def test_a_client_that_reads_no_answer_is_cut_off(serve: Serve, clients: ExitStack) -> None:
    """Answers that the client does not read do not pile up, and their connection is closed."""
    served = serve(body_seconds=0.5)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(0.5)
    clients.enter_context(connection)
    connection.connect(("127.0.0.1", served.port))
    with suppress(OSError):
        for _ in range(50):
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
    assert answered_quickly(served)
    assert wait_until(lambda: not served.open_connections(), 15)
