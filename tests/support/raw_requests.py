"""Requests as a hostile client writes them: bytes for a socket, most of them almost HTTP and an event."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.unit.runtime.fakes import an_event

_ATTRIBUTES, _BODY = an_event()
_TEXT = st.text(st.characters(codec="latin-1", exclude_characters="\r\n"), max_size=20).map(str.encode)
_ODD = st.binary(max_size=40)

METHODS = st.sampled_from(
    [b"POST"] * 8 + [b"GET", b"PUT", b"HEAD", b"OPTIONS", b"PRI", b"TRACE", b"post", b"\xff"]
)
TARGETS = st.one_of(
    st.sampled_from([b"/"] * 6 + [b"/health/liveness", b"/health/readiness", b"/metrics", b"*", b"//",
                     b"/%00", b"/../etc", b"http://other/", b"/?" + b"q" * 9000, b"", b"/\xc3\x28"]),
    _ODD,
)  # fmt: skip
VERSIONS = st.sampled_from(
    [b"HTTP/1.1"] * 8 + [b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/9.9", b"", b"http/1.1"]
)
LENGTHS = st.one_of(
    st.integers(-2, 1 << 65).map(lambda number: str(number).encode()),
    st.sampled_from([b"9" * 5000, b"+1", b"0x10", b"1, 1", b"1_0", b" ", b"\xd9\xa3"]),
)
UPGRADES = st.sampled_from(
    [
        [(b"Connection", b"Upgrade, HTTP2-Settings"), (b"Upgrade", b"h2c"), (b"HTTP2-Settings", b"AAMAAABk")],
        [(b"Connection", b"Upgrade"), (b"Upgrade", b"h2c")],
        [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"), (b"Sec-WebSocket-Version", b"13"),
         (b"Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ==")],
        [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")],
        [(b"Expect", b"100-continue")],
        [(b"Connection", b"close")],
    ]
)  # fmt: skip
CONTENT_TYPES = st.sampled_from(
    [b"application/json", b"application/cloudevents+json", b"application/cloudevents-batch+json",
     b"application/cloudevents+avro", b"application/json; charset=utf-16", b"multipart/form-data; boundary=x",
     b"application/x-www-form-urlencoded", b"text/plain", b"", b"\xff/\xff"]
)  # fmt: skip


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_STRUCTURED = {"specversion": "1.0", "id": "1", "source": "/", "type": "dev.muster.x"}
BODIES = st.one_of(
    st.just(_BODY),
    st.builds(lambda key, value: _json({**json.loads(_BODY), key: value}),
              st.sampled_from(["apiVersion", "kind", "metadata", "spec", "status"]), _JSON),
    st.builds(lambda key, value: _json({**_STRUCTURED, key: value}),
              st.sampled_from([*_STRUCTURED, "data", "data_base64", "datacontenttype", "time", "é"]),
              _JSON),
    _JSON.map(_json),
    st.integers(1, 20_000).map(lambda depth: b"[" * depth),
    st.integers(1, 2_000).map(lambda depth: b'{"a":' * depth + b"1" + b"}" * depth),
    st.integers(1, 50_000).map(lambda number: b"[" + b"{}," * number + b"{}]"),
    st.sampled_from([b"9" * 5000, b'{"a": 1e999}', b"NaN", b'"\\ud800"', b"\xff\xfe{}", b"\xef\xbb\xbf{}"]),
    st.binary(max_size=200),
)  # fmt: skip


@st.composite
def chunked(draw: st.DrawFn) -> bytes:
    """A body in chunks, of which one may be broken."""
    body, size = draw(BODIES), draw(st.integers(1, 4000))
    chunks = [
        b"%x\r\n%b\r\n" % (len(body[at : at + size]), body[at : at + size])
        for at in range(0, len(body), size)
    ][:50]
    chunks.append(b"0\r\n\r\n")
    if draw(st.booleans()):
        position = draw(st.integers(0, len(chunks) - 1))
        chunks[position] = draw(
            st.sampled_from(
                [
                    b"zz\r\n",
                    b"-1\r\nx\r\n",
                    b"ffffffffffffffffff\r\n",
                    b"1;" + b"x" * 20_000,
                    b"1\r\nxy\r\n",
                    b"",
                ]
            )
        )
    return b"".join(chunks)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """One request, or nearly one."""
    headers = [(b"Host", b"muster")]
    if draw(st.integers(0, 3)):
        headers += [
            (name.encode(), value.encode()) for name, value in _ATTRIBUTES.items() if name != "content-type"
        ]
    headers.append((b"Content-Type", draw(CONTENT_TYPES)))
    headers += draw(st.one_of(st.just([]), UPGRADES))
    headers += draw(st.lists(st.tuples(_TEXT, _TEXT), max_size=2))
    match draw(st.sampled_from(["sized"] * 4 + ["chunked"] * 2 + ["odd length", "both", "neither"])):
        case "sized":
            body = draw(BODIES)
            headers.append((b"Content-Length", str(len(body)).encode()))
        case "chunked":
            body = draw(chunked())
            headers.append(
                (
                    b"Transfer-Encoding",
                    draw(st.sampled_from([b"chunked", b"Chunked", b"gzip, chunked", b"x"])),
                )
            )
        case "odd length":
            body = draw(BODIES)
            headers.append((b"Content-Length", draw(LENGTHS)))
        case "both":
            body = draw(chunked())
            headers += [(b"Transfer-Encoding", b"chunked"), (b"Content-Length", str(len(body)).encode())]
        case _:
            body = draw(_ODD)
    if draw(st.integers(0, 15)) == 0:
        headers.append(
            (
                draw(st.sampled_from([b"X", b"Ce-Subject", b"Ce-Time"])),
                b"a" * draw(st.sampled_from([100, 3000, 70_000])),
            )
        )
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"%b %b %b\r\n%b\r\n%b" % (draw(METHODS), draw(TARGETS), draw(VERSIONS), lines, body)


STREAMS = st.one_of(
    requests(),
    st.lists(requests(), min_size=2, max_size=3).map(b"".join),
    st.builds(lambda request, end: request[: max(end, 1)], requests(), st.integers(1, 3000)),
    st.binary(min_size=1, max_size=300),
)
"""What one client sends over one connection: a request, several at once, a part of one, or anything."""
