"""Both servers of functions on real sockets in this process, and raw requests to them."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import hypercorn.asyncio
from func_python.http import ASGIApplication
from hypercorn.config import Config
from waitress import wasyncore

from muster.runtime.http import func_server
from muster.runtime.http.bodies import BodyMemory
from muster.runtime.http.func_server import LimitedConnection
from muster.runtime.http.receiver import Receiver
from muster.runtime.http.waitress_server import LimitedServer
from muster.runtime.knative import Function
from muster.runtime.served import ServedFunctions


@dataclass(frozen=True)
class Served:
    """A receiver behind a server.

    Attributes:
        port: on 127.0.0.1.
        open_connections: returns the number of connections that the server has.
        bodies: the memory of the bodies that it keeps.
    """

    port: int
    open_connections: Callable[[], int]
    bodies: BodyMemory

    def connect(self) -> socket.socket:
        """A new connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def exchange(self, request: bytes) -> bytes:
        """Send bytes, and return the first answer, or b"" if there is none."""
        with self.connect() as connection:
            connection.sendall(request)
            return answer(connection)


def post(headers: dict[str, str], body: bytes, length: int | None = None) -> bytes:
    """The bytes of a POST, with a Content-Length of its own if given."""
    sized = {"Host": "muster", **headers, "Content-Length": str(len(body) if length is None else length)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in sized.items())
    return f"POST / HTTP/1.1\r\n{lines}\r\n".encode() + body


def answer(connection: socket.socket) -> bytes:
    """The next answer with its body, or b"" if the connection is closed before."""
    received = b""
    with connection.makefile("rb") as stream:
        length = 0
        for line in stream:
            received += line
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            if line == b"\r\n":
                return received + stream.read(length)
    return received


def status(received: bytes) -> int:
    """The status of an answer; 0 for none."""
    return int(received.split()[1]) if received else 0


def reason(received: bytes) -> str:
    """The reason in an answer of Muster."""
    return str(json.loads(received.partition(b"\r\n\r\n")[2])["reason"])


def wait_until(holds: Callable[[], Any], seconds: float) -> bool:
    """Wait until a condition holds; False if it does not in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def behind_waitress(receiver: Receiver, cluster: Any) -> Iterator[Served]:
    """Serve as `python -m muster.runtime.serve` does."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = LimitedServer(ServedFunctions((receiver, cluster)).app, receiver.settings, listener)
    thread = threading.Thread(target=server.run, name="waitress")
    thread.start()
    try:
        yield Served(port, lambda: len(server.active_channels), server.bodies)
    finally:
        with suppress(OSError):  # the server may have closed all before it is woken for that
            server.trigger.pull_trigger(lambda: wasyncore.close_all(server._map))
        thread.join(10)
        server.task_dispatcher.shutdown()


@contextmanager
def behind_func(receiver: Receiver, cluster: Any) -> Iterator[Served]:
    """Serve as func's middleware does."""
    func_server.set_limits(receiver.settings)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        loop = asyncio.new_event_loop()
        stop = asyncio.Event()
        function = Function(ServedFunctions((receiver, cluster)))
        config = Config()
        config.bind = [f"fd://{listener.detach()}"]
        config.graceful_timeout = 0.2

        async def serve() -> None:
            asyncio.set_event_loop(loop)
            await hypercorn.asyncio.serve(ASGIApplication(function), config, shutdown_trigger=stop.wait)

        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), name="func")
        thread.start()
        try:
            yield Served(port, lambda: len(LimitedConnection.opened), function._bodies)
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(10)
            function._asgi.executor.shutdown()
            loop.close()


SERVERS = [behind_waitress, behind_func]
