"""The limits of func's server: hypercorn, which func's middleware starts with hypercorn's defaults.

func-python 0.8.1 builds hypercorn's configuration itself, and hypercorn 0.17.3 has no setting for most of
what follows. So the defaults of its `Config` are changed, and two of its classes replaced by subclasses,
before the middleware starts the server.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

import h11
import h11._readers as h11_readers
import hypercorn.asyncio.run
import hypercorn.protocol
from h11._abnf import OWS, chunk_header, header_field
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Response
from hypercorn.protocol.h11 import H11Protocol

from muster.runtime.config import Settings
from muster.runtime.http.bodies import LARGEST_HEAD, head_too_large, too_many_chunks

READ_BYTES = 16 * 1024
"""The bytes that are read of a connection at once, in place of asyncio's 256 KiB: 500 connections that wait
would keep more than a hundred MiB."""

BACKLOG = 1024
"""The connections that may wait to be accepted, as with waitress. Hypercorn's 100 are full after a burst, and
the kernel drops those of probes, which come again a second later."""


def set_limits(settings: Settings) -> None:
    """Limit what a client can do to the server that func's middleware starts next in this process."""
    Config.keep_alive_timeout = settings.body_seconds
    # Without a bound a reader would wait in the queue of an app that has answered without reading the body,
    # and its connection would never be closed. Function.handle takes what arrives at once.
    Config.max_app_queue_size = 0
    Config.backlog = BACKLOG
    Config.errorlog = logging.getLogger("muster.server")
    # The patterns of h11 0.16.0 try every way to divide a run of blanks: 16 KB take a second of CPU.
    h11_readers.header_field_re = re.compile(header_field.replace(OWS, f"{OWS}+", 1).encode())
    h11_readers.chunk_header_re = re.compile(chunk_header.replace(";.*", r";[^\r\n]{0,100}").encode())
    Config.h11_max_incomplete_size = LARGEST_HEAD
    WholeReads.most_fields = settings.header_limit
    LimitedConnection.seconds = settings.body_seconds
    LimitedConnection.limit = settings.connection_limit
    hypercorn.protocol.H11Protocol = Http1Only  # type: ignore[attr-defined]
    hypercorn.asyncio.run.TCPServer = LimitedConnection  # type: ignore[attr-defined]


_BLANK_LINE = re.compile(rb"\n\r?\n")
"""The end of a head."""


class CountedTrailers(h11_readers.ChunkedReader):
    """Reads the chunks of a body; its trailers are counted before h11 parses them.

    They are the fields of a head whose first line is that of the last chunk. The reader calls itself once it
    has read that line, so they are also counted if they came in the same read.
    """

    def __init__(self, most_fields: int) -> None:
        super().__init__()
        self._most_fields = most_fields

    def __call__(self, buffer: Any) -> Any:
        """Return the next event of what has arrived; None if that takes more bytes."""
        if self._reading_trailer:
            trailers = _BLANK_LINE.split(b"0\n" + bytes(buffer), maxsplit=1)[0]
            if head_too_large(trailers, self._most_fields):
                raise h11.RemoteProtocolError("the trailers are too large", error_status_hint=431)
        return super().__call__(buffer)


class WholeReads(h11.Connection):
    """HTTP/1.1 that takes the chunks of one read together, and refuses too many small ones.

    Hypercorn hands each chunk to the app by itself, without a pause between those of one read: a body in
    chunks of one byte would keep its event loop busy for seconds, and take hundreds of times its memory.
    """

    most_fields = Settings.header_limit

    def __init__(self, largest_head: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=largest_head)
        self._next: deque[Any] = deque()
        self._chunks = self._size = 0

    def next_event(self) -> Any:
        """Return the next event; the data of several chunks is one event.

        Raises:
            RemoteProtocolError: the client keeps to no protocol, wants a tunnel, or sends too many header
                fields or chunks.
        """
        event = self._next.popleft() if self._next else self._parsed()
        if isinstance(event, h11.Request):
            self._chunks = self._size = 0
            if event.method == b"CONNECT":  # h11 would make a tunnel of the connection, and hypercorn raise
                raise h11.RemoteProtocolError("CONNECT", error_status_hint=405)
        if not isinstance(event, h11.Data):
            return event
        pieces = []
        while isinstance(event, h11.Data):
            pieces.append(event.data)
            self._count(event)
            event = self._parsed()
        self._next.append(event)
        return h11.Data(data=b"".join(pieces))

    def _parsed(self) -> Any:
        if self.their_state is h11.IDLE:
            head = _BLANK_LINE.split(self.trailing_data[0], maxsplit=1)[0]
            if head_too_large(head, self.most_fields):
                raise h11.RemoteProtocolError("the head is too large", error_status_hint=431)
        try:
            return super().next_event()
        except h11.RemoteProtocolError as error:
            # h11 raises it in a method of its own: error, frames and connection would be a cycle.
            raise error.with_traceback(None) from None

    def _get_io_object(self, role: Any, event: Any, io_dict: Any) -> Any:
        reader = super()._get_io_object(role, event, io_dict)
        return CountedTrailers(self.most_fields) if isinstance(reader, h11_readers.ChunkedReader) else reader

    def _count(self, event: h11.Data) -> None:
        self._chunks += event.chunk_start
        self._size += len(event.data)
        if too_many_chunks(self._chunks, self._size):
            raise h11.RemoteProtocolError(f"{self._chunks} chunks for {self._size} bytes")


class Http1Only(H11Protocol):
    """HTTP/1.1 without upgrades: hypercorn raises on most requests for HTTP/2 and WebSockets."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.connection = WholeReads(self.config.h11_max_incomplete_size)

    async def stream_send(self, event: Any) -> None:
        """Send a part of an answer; the connection is closed after it if more came before it.

        One packet can hold hundreds of requests, which a client that reads no answer would leave here. The
        rest of a body is not read, and a proxy that is not told so would use the connection again.
        """
        unread = self.connection.trailing_data[0] or self.connection.their_state is h11.SEND_BODY
        if isinstance(event, Response) and unread:
            self.keep_alive_requests = self.config.keep_alive_max_requests
        await super().stream_send(event)

    async def _check_protocol(self, event: h11.Request) -> None:
        """Take a request for HTTP/2 as one of HTTP/1.1, which every server may do (RFC 9110, 7.8)."""

    async def _create_stream(self, request: h11.Request) -> None:
        plain = [(name, value) for name, value in request.headers if name.lower() != b"upgrade"]
        await super()._create_stream(
            h11.Request(
                method=request.method, target=request.target, headers=plain, http_version=request.http_version
            )
        )


COUNTED_EVERY = 20
"""The connections that wait are counted when a twentieth of the limit came since the last count: counting a
thousand takes a millisecond, so with one count for each the event loop would do nothing else."""


class OpenConnections:
    """The open connections of a server, of which those that wait longest are closed beyond a limit.

    Only connections that wait for a request, or the rest of one, count for the limit: requests in work would
    else close those of probes that have just come. Function.handle bounds the requests in work.
    """

    def __init__(self) -> None:
        self._open: dict[LimitedConnection, None] = {}  # oldest first
        self._new = 0

    def __iter__(self) -> Iterator[LimitedConnection]:
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: LimitedConnection, limit: int) -> None:
        """Add a new connection, and close the oldest that wait beyond the limit, or a twentieth more."""
        self._open[connection] = None
        self._new += 1
        if len(self._open) > limit and self._new * COUNTED_EVERY >= limit:
            self._new = 0
            waiting = [one for one in self._open if one.waits()]
            for one in waiting[: max(len(waiting) - limit, 0)]:
                self.discard(one)
                one.writer.transport.abort()

    def discard(self, connection: LimitedConnection) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)


class LimitedConnection(TCPServer):
    """A connection that is closed for a new one at the limit, or if its client does not read the answers."""

    seconds = Settings.body_seconds
    limit = Settings.connection_limit
    opened = OpenConnections()

    async def run(self) -> None:
        """Serve the connection."""
        self.opened.add(self, self.limit)
        self.writer.transport.max_size = READ_BYTES  # type: ignore[attr-defined]  # of asyncio's transports
        try:
            await super().run()
        finally:
            self.opened.discard(self)
            # Hypercorn's objects of a connection form a cycle: what it has read would stay until the next
            # collection of garbage.
            vars(self).pop("protocol", None)

    async def _read_data(self) -> None:
        """Read until the client closes the connection, and then wait no longer for a request.

        It does not count for the limit then: requests of clients that have gone would close connections of
        clients that have just come.
        """
        await super()._read_data()
        self.opened.discard(self)
        await self.idle_task.stop()

    async def protocol_send(self, event: Event) -> None:
        """Send a part of an answer, or close the connection if that takes too long."""
        if isinstance(event, Updated) and event.idle and self.reader.at_eof():
            return  # no request can follow, for which the connection would be kept open
        if not isinstance(event, RawData):
            await super().protocol_send(event)
            return
        try:
            async with asyncio.timeout(self.seconds):
                await super().protocol_send(event)
        except TimeoutError:
            self.writer.transport.abort()
            await self.protocol.handle(Closed())

    def waits(self) -> bool:
        """Whether the connection waits for a request, or for the rest of one."""
        protocol: Any = getattr(getattr(self, "protocol", None), "protocol", None)
        return protocol is None or protocol.connection.their_state in {h11.IDLE, h11.SEND_BODY}
