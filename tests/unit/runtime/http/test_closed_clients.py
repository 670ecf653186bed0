"""func's server and clients that close their connection before they have an answer, or while they send."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from muster.objects.meta import ObjectRef
from muster.runtime.knative import Function
from muster.runtime.served import ServedFunctions
from tests.unit.runtime.fakes import FakeCluster, a_handler, a_step, an_event, observe
from tests.unit.runtime.http.servers import answer, behind_func, post, status, wait_until
from tests.unit.runtime.test_knative import Caller, sized, wait_for_answers

HEADERS, BODY = an_event()
PROBE = b"GET /health/liveness HTTP/1.1\r\nHost: muster\r\n\r\n"


class _Step:
    """A step whose events stay in work until `finish`; `begun` counts them."""

    def __init__(self) -> None:
        self.begun = 0
        self.finish = threading.Event()

    def observe(self, cluster: Any, subject: ObjectRef) -> ObjectRef:
        """Wait."""
        self.begun += 1
        self.finish.wait(5)
        return observe(cluster, subject)


@pytest.fixture
def step() -> Iterator[_Step]:
    """A step that is finished in the end."""
    step = _Step()
    yield step
    step.finish.set()


def test_requests_of_clients_that_have_gone_close_no_connection(step: _Step) -> None:
    """Two seconds of them closed the connections of probes and of other senders."""
    cluster = FakeCluster()
    handler = a_handler(a_step(observe=step.observe), cluster, connection_limit=5)
    with behind_func(handler, cluster) as served, ExitStack() as clients:
        waits = clients.enter_context(served.connect())
        for _ in range(6):
            with served.connect() as gone:
                assert wait_until(lambda: served.open_connections() == 2, 5)
                gone.sendall(post(HEADERS, BODY))
            assert wait_until(lambda: served.open_connections() == 1, 5)
        assert wait_until(lambda: step.begun >= 4, 5)
        assert status(served.exchange(PROBE)) == 200
        waits.sendall(PROBE)
        assert status(answer(waits)) == 200
        step.finish.set()


class _Gone(Caller):
    """A client that closes its connection after the body."""

    async def receive(self) -> dict[str, Any]:
        """The body, and then the end."""
        return await super().receive() if self._chunks else {"type": "http.disconnect"}


class _Waits(Caller):
    """A client that waits for its answer."""

    async def receive(self) -> dict[str, Any]:
        """The body, and then nothing."""
        if not self._chunks:
            await asyncio.Event().wait()
        return await super().receive()


def test_a_request_whose_client_has_gone_waits_for_no_thread(step: _Step) -> None:
    """Clients that do not wait for answers can send more than all threads handle."""
    cluster = FakeCluster()
    handler = a_handler(a_step(observe=step.observe), cluster)
    function = Function(ServedFunctions((handler, cluster)))
    function._threads = asyncio.Semaphore(1)

    async def story() -> tuple[list[dict[str, Any]], int]:
        first, gone, waits = (kind(sized(HEADERS, BODY), BODY) for kind in (_Waits, _Gone, _Waits))
        in_work = asyncio.create_task(first.call(function))
        await asyncio.to_thread(wait_until, lambda: step.begun, 5)
        dropped = asyncio.create_task(function.handle(gone.scope, gone.receive, gone.send))
        waiting = asyncio.create_task(waits.call(function))
        await asyncio.sleep(0.05)
        step.finish.set()
        await dropped
        await in_work
        return gone.sent, (await waiting)[0]

    assert asyncio.run(story()) == ([], 200)
    assert step.begun == 2
    wait_for_answers(function)
    function._asgi.executor.shutdown()


def test_a_client_is_told_that_its_body_is_not_read() -> None:
    """Go's proxy would use the connection for the request of another client, which then fails with 502."""
    cluster = FakeCluster()
    probe = PROBE.replace(b"\r\n\r\n", b"\r\nContent-Length: 300000\r\n\r\n")
    with behind_func(a_handler(None, cluster), cluster) as served:
        received = served.exchange(probe)
    assert status(received) == 200
    assert b"connection: close" in received.lower()
