"""Trailers of a chunked body are counted like the fields of a head, before they are parsed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import h11
import pytest

from muster.runtime.http.bodies import LARGEST_HEAD
from muster.runtime.http.func_server import WholeReads
from tests.support import cpu
from tests.unit.runtime.fakes import FakeCluster, a_handler
from tests.unit.runtime.http.servers import behind_func, status

LAST_CHUNK = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"


def trailers_of(reads: Iterable[bytes]) -> int:
    """The number of trailers that func's server takes of a body, which comes in these reads."""
    connection = WholeReads(LARGEST_HEAD)
    connection.receive_data(LAST_CHUNK.removesuffix(b"0\r\n"))
    connection.next_event()
    event: Any = h11.NEED_DATA
    for read in reads:
        assert event is h11.NEED_DATA
        connection.receive_data(read)
        event = connection.next_event()
    assert isinstance(event, h11.EndOfMessage)
    return len(event.headers)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param([b"0\r\n" + b"a:\n" * 10_000 + b"\n"], id="with the last chunk"),
        pytest.param([b"0\r\na:\r\n" + b" \r\n" * 10_000 + b"\r\n"], id="one field of many lines"),
        pytest.param([b"0\r\n", b"a:\r\n" * 8_000 + b"\r\n"], id="after the last chunk"),
        pytest.param([b"0\r\n", *[b"a:\r\n"] * 8_000], id="line by line, without an end"),
        pytest.param([b"0\r\na:", *[b"a" * 1_000] * 20], id="one long line"),
    ],
)
def test_trailers_count_as_fields_before_they_are_parsed(sent: list[bytes]) -> None:
    """Of func's server: h11 takes 8 ms for those of 16 KB, and waitress parses none."""
    with cpu.at_most(0.003), pytest.raises(h11.RemoteProtocolError, match="trailers") as refused:
        trailers_of(sent)
    assert refused.value.error_status_hint == 431


def test_many_trailers_are_answered_with_431() -> None:
    """By func's server; waitress answers 400 beyond 8 KiB, and parses none."""
    cluster = FakeCluster()
    with behind_func(a_handler(None, cluster), cluster) as served:
        assert status(served.exchange(LAST_CHUNK + b"a:\r\n" * 4_000 + b"\r\n")) == 431


@pytest.mark.parametrize("number", [0, 1, WholeReads.most_fields])
@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_as_many_trailers_as_fields_are_read(number: int, end: bytes) -> None:
    """Whole, line by line, and byte by byte; what follows does not count."""
    fields = [b"a:" + end] * number
    whole = b"0\r\n" + b"".join(fields) + end
    assert trailers_of([whole + b"GET / HTTP/1.1\r\n" * 100]) == number
    assert trailers_of([b"0\r\n", *fields, end]) == number
    assert trailers_of(bytes([byte]) for byte in whole) == number
