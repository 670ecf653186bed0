"""Waitress with the limits of a function: bodies and connections, in time, number and memory."""

from __future__ import annotations

import logging
import re
import socket
import time
from typing import Any

import waitress.parser
from waitress.adjustments import Adjustments
from waitress.buffers import OverflowableBuffer
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.rfc7230 import HEADER_FIELD_RE
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.utilities import BadRequest, Error, RequestEntityTooLarge, RequestHeaderFieldsTooLarge

from muster.runtime.config import Settings
from muster.runtime.http.bodies import (
    LARGEST_HEAD,
    REFUSAL,
    BodyMemory,
    BodyRefusal,
    BodySize,
    head_too_large,
    too_many_chunks,
)

LARGEST_REFUSED = 64
"""The rest of a refused body is read and discarded up to this many times the body limit, because a sender may
see no answer before it has sent everything."""
_ACCEPTED_AT_ONCE = 100
"""Connections that are accepted between two looks at the others. Waitress accepts one: 20 a second when it is
busy, so that probes wait in the queue of the listener."""
# The pattern of waitress 3.0.2 tries every way to divide a run of blanks before an invalid value: 16 KB take
# a second of CPU.
waitress.parser.HEADER_FIELD_RE = re.compile(HEADER_FIELD_RE.pattern.replace(b"[ \t]{0,}?", b"[ \t]*+", 1))
# Likewise of a request line with `a://111...`: it takes 25 s. What is matched stays the same.
waitress.parser.first_line_re = re.compile(
    rb"(?P<method>[!#$%&'*+\-.^_`|~0-9A-Za-z]++) (?P<uri>[^ ]++)(?: HTTP/(?P<version>[0-9]\.[0-9]))?"
)
CHUNK_LINE_BYTES = 8192
"""The longest beginning of a chunk, and the longest trailer: waitress keeps them whole."""


class LimitedServer(TcpWSGIServer):  # type: ignore[misc]
    """A WSGI server within the limits of a function.

    Args:
        app: the WSGI app.
        settings: the limits.
        listener: a bound socket.
    """

    def __init__(self, app: Any, settings: Settings, listener: socket.socket) -> None:
        # Waitress warns of every request that waits for a thread.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self.settings = settings
        self.bodies = BodyMemory(settings.bodies_limit_bytes)
        self.channel_class = _LimitedChannel
        largest = LARGEST_REFUSED * settings.body_limit_bytes
        adjustments = Adjustments(
            sockets=[listener],
            threads=settings.threads,
            max_request_body_size=largest,
            max_request_header_size=LARGEST_HEAD,
            # Nothing is written to disk: a function's root file system is read-only.
            inbuf_overflow=largest,
            # Connections are closed in `handle_accept`; waitress would accept no new ones. Beyond those that
            # wait, one is in work for each thread, and as many may wait for a thread, or for their refusal.
            connection_limit=2 * settings.connection_limit
            + settings.threads
            + 2 * settings.queue_limit
            + 100,
            asyncore_use_poll=True,  # select takes file descriptors up to 1023
            cleanup_interval=1,
            ident="muster",
        )
        address = listener.getsockname()
        super().__init__(
            app,
            _sock=listener,
            bind_socket=False,
            adj=adjustments,
            dispatcher=_Threads(settings),
            sockinfo=(listener.family, listener.type, listener.proto, address),
        )

    def handle_accept(self) -> None:
        """Accept the connections that wait."""
        for _ in range(_ACCEPTED_AT_ONCE):
            kept = len(self.active_channels)
            super().handle_accept()
            if len(self.active_channels) <= kept:
                return
            self._make_room()

    def _make_room(self) -> None:
        """Close the connections that wait longest for their request, as far as too many wait.

        Requests in work do not count: they would else close the connections of probes that have just come.
        """
        limit = self.settings.connection_limit
        if len(self.active_channels) > limit:
            waiting = [channel for channel in self.active_channels.values() if channel.waits]
            for channel in sorted(waiting, key=lambda one: one.waits_since)[: max(len(waiting) - limit, 0)]:
                channel.handle_close()

    def maintenance(self, now: float) -> None:  # noqa: ARG002 - waitress's signature
        """Refuse requests that arrive too slowly, and close connections without one; called every second."""
        too_old = time.monotonic() - self.settings.body_seconds
        for channel in list(self.active_channels.values()):
            if channel.waits and channel.waits_since < too_old:
                channel.give_up()


class _Threads(ThreadedTaskDispatcher):  # type: ignore[misc]
    """The threads of the app, and one more for what must not wait for them: liveness probes and refusals.

    Args:
        settings: how many threads there are, and how many requests may wait for one.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._limit = settings.queue_limit
        self._one_more = ThreadedTaskDispatcher()
        self._one_more.set_thread_count(1)
        self.set_thread_count(settings.threads)

    def add_task(self, task: _LimitedChannel) -> None:
        """Take a request: it waits for a thread, or is refused at once where too many do.

        Where too many refusals wait as well, the connection is closed, and a sender comes again too.
        """
        request = task.requests[0]
        if request.is_liveness:
            self._one_more.add_task(task)
        elif self._waiting < self._limit:
            super().add_task(task)
        else:
            request.refuse(BodyRefusal.NO_THREAD)
            if len(self._one_more.queue) < self._limit:
                self._one_more.add_task(task)
            else:
                task.will_close = True

    @property
    def _waiting(self) -> int:
        """Requests for which no thread is idle."""
        with self.lock:
            return int(len(self.queue) - (len(self.threads) - self.stop_count - self.active_count))

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        """End the threads; whether requests that waited were cancelled."""
        self._one_more.shutdown(cancel_pending, timeout)
        return bool(super().shutdown(cancel_pending, timeout))


class _LimitedBody(OverflowableBuffer):  # type: ignore[misc]
    """The buffer of a body; it stays empty once the body is refused."""

    def __init__(self, overflow: int, size: BodySize) -> None:
        super().__init__(overflow)
        self._size = size
        self.refusal: BodyRefusal | None = None
        self.pieces = self.received = 0

    def append(self, data: bytes) -> None:
        """Keep a chunk, or drop all that was kept."""
        self.pieces += 1
        self.received += len(data)
        if self.refusal is None:
            self.refusal = self._size.grow(len(data))
            if self.refusal is None:
                super().append(data)
                return
            self.drop()

    def drop(self) -> None:
        """Free the memory, and stay an empty body."""
        super().close()
        self.buf, self.strbuf = None, b""
        self._size.release()

    def close(self) -> None:
        """Free the memory."""
        self._size.release()
        super().close()


class _RefusedError(Exception):
    """A request is refused before it is read to its end.

    Args:
        answer: the error that waitress answers.
    """

    def __init__(self, answer: Error) -> None:
        super().__init__(answer.body)
        self.answer = answer


_SMALL_CHUNKS = "the chunks are too small"


class _LimitedChunks(ChunkedReceiver):  # type: ignore[misc]
    """The chunks of a body, whose lines are counted: waitress copies the rest of a read for each."""

    buf: _LimitedBody

    def __init__(self, buf: _LimitedBody) -> None:
        self._line = b""
        self._lines = 0
        super().__init__(buf)

    @property
    def control_line(self) -> bytes:
        """The beginning of a line whose end has not arrived."""
        return self._line

    @control_line.setter
    def control_line(self, line: bytes) -> None:
        self._line = line
        self._lines += not line
        if too_many_chunks(self._lines, self.buf.received):
            raise _RefusedError(BadRequest(_SMALL_CHUNKS))


class _LimitedParser(HTTPRequestParser):  # type: ignore[misc]
    """Parses one request, whose body is kept within the limits.

    Attributes:
        channel: the connection.
        refused: why the server does not wait for the rest of the body; None if it does.
        followed: whether more came before its answer: that is dropped, and the connection is closed.
    """

    channel: _LimitedChannel
    refused: BodyRefusal | None = None
    followed = False
    error: Any
    body_rcv: Any

    @property
    def refusal(self) -> BodyRefusal | None:
        """Why the body was not kept; None if it was."""
        return self.refused or (None if self.body_rcv is None else self.body_rcv.getbuf().refusal)

    @property
    def is_liveness(self) -> bool:
        """Whether it is a liveness probe."""
        return self.error is None and (self.command, self.path) == ("GET", "/health/liveness")

    def refuse(self, refusal: BodyRefusal) -> None:
        """Free the body, for a reason that the app answers with."""
        self.refused = refusal
        if self.body_rcv is not None:
            self.body_rcv.getbuf().drop()

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the head of the request, and prepare for its body."""
        settings = self.channel.server.settings
        if head_too_large(header_plus, settings.header_limit):
            limit = f"more than {settings.header_limit} fields (MUSTER_HEADER_LIMIT)"
            raise _RefusedError(RequestHeaderFieldsTooLarge(limit))
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # a Content-Length of thousands of digits
            raise ParsingError(str(error)) from None
        if self.body_rcv is not None:
            size = BodySize(settings.body_limit_bytes, self.channel.server.bodies)
            self.body_rcv.buf = _LimitedBody(self.adj.inbuf_overflow, size)
            if isinstance(self.body_rcv, ChunkedReceiver):
                self.body_rcv = _LimitedChunks(self.body_rcv.buf)

    def received(self, data: bytes) -> int:
        """Take bytes of the request; the number of bytes taken.

        Blank lines before it are taken together: waitress makes a parser for each.
        """
        if self.body_rcv is None and not self.header_plus:
            data, given = data.lstrip(b"\r\n"), data
            blank = len(given) - len(data)
            if blank:
                return blank + (self.received(data) if data else 0)
        try:
            taken: int = super().received(data)
        except _RefusedError as refused:
            self.error, self.completed = refused.answer, True
            return len(data)
        receiver = self.body_rcv
        if isinstance(self.error, RequestEntityTooLarge):
            self.error, self.refused = None, BodyRefusal.TOO_LARGE
        elif isinstance(receiver, ChunkedReceiver) and (fault := _fault(receiver)):
            self.error = BadRequest(fault)
            self.completed = True
        if self.completed and not self.empty and taken < len(data):
            # One packet can hold hundreds of requests, which a client that reads no answer would leave here.
            self.followed = True
            return len(data)
        return taken


def _fault(receiver: ChunkedReceiver) -> str:
    """Return the fault of a body's chunks so far; "" if they have none."""
    if max(len(receiver.control_line), len(receiver.trailer)) > CHUNK_LINE_BYTES:
        return "the line before or after a chunk is too long"
    buffer = receiver.getbuf()
    return _SMALL_CHUNKS if too_many_chunks(buffer.pieces, buffer.received) else ""


class _LimitedTask(WSGITask):  # type: ignore[misc]
    """Runs the app, which sees why a body was refused.

    It closes the connection after the answer to a refused body, or to a request that others followed at once.
    """

    def get_environment(self) -> dict[str, Any]:
        environment: dict[str, Any] = super().get_environment()
        refusal = self.request.refusal
        if refusal is not None:
            environment[REFUSAL] = refusal
        if refusal is not None or self.request.followed:
            self.set_close_on_finish()
        return environment


class _LimitedChannel(HTTPChannel):  # type: ignore[misc]
    """A connection.

    Attributes:
        waits_since: since when it waits for a request or the rest of one, in seconds of `time.monotonic`.
    """

    task_class = _LimitedTask
    request: Any

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.waits_since = time.monotonic()
        self._in_work = False
        super().__init__(*arguments, **named)

    def parser_class(self, adjustments: Any) -> _LimitedParser:
        """Return the parser of the next request."""
        self.waits_since = time.monotonic()
        parser = _LimitedParser(adjustments)
        parser.channel = self
        return parser

    @property
    def waits(self) -> bool:
        """Whether the connection waits for a request, the rest of one, or the client to read an answer."""
        return not (self.requests or self._in_work or self.will_close)

    def service(self) -> None:
        """Answer a request, in a worker's thread."""
        self._in_work = True
        super().service()
        self.waits_since = time.monotonic()
        self._in_work = False

    def give_up(self) -> None:
        """Answer a request whose body has not arrived in time; close a connection without a request."""
        request = self.request
        if request is None or not request.headers_finished or self.total_outbufs_len:
            # Not by `will_close`: waitress then waits until the client reads the rest of an answer.
            self.handle_close()
            return
        with self.requests_lock:
            request.refused = BodyRefusal.TOO_SLOW
            request.completed = True
            self.request = None
            self.requests.append(request)
        self.server.add_task(self)

    def handle_close(self) -> None:
        """Close the connection, and free the memory of a body that will not arrive."""
        request = self.request
        if request is not None:
            request.close()
        super().handle_close()
