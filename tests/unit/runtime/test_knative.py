"""A step under func's middleware: ASGI on one event loop, and the Flask app in threads."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from muster.objects.meta import ObjectRef
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.knative import Function
from muster.runtime.served import ServedFunctions
from tests.unit.runtime.fakes import NOW, FakeCluster, a_step, an_event, observe
from tests.unit.runtime.http.test_readiness import wait_for_answer


class Caller:
    """What an ASGI server does for one request."""

    def __init__(self, headers: dict[str, str], *chunks: bytes, method: str = "POST") -> None:
        self.scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": "/",
            "root_path": "",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        self._chunks = list(chunks)
        self.unread = len(chunks)
        self.sent: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        """The next part of the body."""
        chunk = self._chunks.pop(0) if self._chunks else b""
        return {"type": "http.request", "body": chunk, "more_body": bool(self._chunks)}

    async def send(self, message: dict[str, Any]) -> None:
        """Remember a part of the answer, and how much of the body was unread when it began."""
        if not self.sent:
            self.unread = len(self._chunks)
        self.sent.append(message)

    async def call(self, function: Function) -> tuple[int, dict[bytes, bytes], bytes]:
        """Status, headers and body of the answer."""
        await function.handle(self.scope, self.receive, self.send)
        body = b"".join(message.get("body", b"") for message in self.sent[1:])
        return self.sent[0]["status"], dict(self.sent[0]["headers"]), body


def sized(headers: dict[str, str], body: bytes) -> dict[str, str]:
    """The headers of a request that says how long its body is."""
    return headers | {"content-length": str(len(body))}


def wait_for_answers(function: Function) -> None:
    """Wait until the checks of readiness under way are answered."""
    for readiness in function._served._readiness.values():
        wait_for_answer(readiness)


@pytest.fixture
def made() -> Iterator[Any]:
    """A maker of functions that stops their threads in the end."""
    functions: list[Function] = []

    def make(cluster: Any = None, **parts: Any) -> Function:
        settings = Settings(
            **{name: parts.pop(name) for name in ("deadline_seconds", "body_limit_bytes") if name in parts}
        )
        cluster = cluster or FakeCluster()
        handler = Handler(a_step(**parts), cluster, settings, lambda: NOW)
        functions.append(Function(ServedFunctions((handler, cluster))))
        return functions[-1]

    yield make
    for function in functions:
        wait_for_answers(function)
        function._asgi.executor.shutdown()


def test_event_goes_through(made: Any) -> None:
    """An event in binary mode is answered with the step's reply."""
    headers, body = an_event()
    status, answered, reply = asyncio.run(Caller(sized(headers, body), body).call(made()))
    assert (status, answered[b"ce-type"]) == (200, b"dev.muster.patch_pods.gates_lifted")
    assert json.loads(reply)["pods"] == 2


def test_body_in_chunks_is_read_whole(made: Any) -> None:
    """A body of unknown length, as intermediaries send it, is not taken for an empty one."""
    headers, body = an_event()
    caller = Caller(headers | {"transfer-encoding": "chunked"}, body[:10], body[10:20], body[20:])
    assert asyncio.run(caller.call(made()))[0] == 200


def test_endless_body_is_refused(made: Any) -> None:
    """The limit holds without a Content-Length as well."""
    headers, _ = an_event()
    caller = Caller(headers, *[b"x" * 100_000] * 5)
    status, _, body = asyncio.run(caller.call(made(body_limit_bytes=20_000)))
    assert status == 413
    assert json.loads(body)["reason"] == "BodyTooLarge"
    assert caller.unread == 0, "hypercorn keeps a connection for ever whose request nobody reads to its end"


def test_loop_is_free_while_a_step_works(made: Any) -> None:
    """As many events as there are workers are worked on at once, and probes are answered meanwhile."""
    workers = Settings().workers
    all_of_them = threading.Barrier(workers + 1)
    may_finish = threading.Event()

    def wait(bounded: Any, subject: ObjectRef) -> ObjectRef:
        all_of_them.wait(5)
        may_finish.wait(5)
        return observe(bounded, subject)

    function = made(observe=wait)
    headers, body = an_event()

    async def story() -> list[int]:
        callers = [Caller(sized(headers, body), body) for _ in range(workers)]
        events = [asyncio.create_task(caller.call(function)) for caller in callers]
        await asyncio.to_thread(all_of_them.wait, 5)
        assert function.alive() == (True, "OK")
        assert not any(event.done() for event in events)
        may_finish.set()
        return [(await event)[0] for event in events]

    assert asyncio.run(story()) == [200] * workers


def test_stop_waits_for_the_writes(made: Any) -> None:
    """`stop`, called on the event loop that then ends, returns when the writes are done, threads too."""
    writing, may_finish, written = threading.Event(), threading.Event(), []

    def execute(_cluster: Any, plan: Any, _manager: str) -> Any:
        writing.set()
        may_finish.wait(5)
        written.append(plan)
        return plan

    function = made(execute=execute)
    headers, body = an_event()

    async def story() -> None:
        event = asyncio.create_task(Caller(sized(headers, body), body).call(function))
        await asyncio.to_thread(writing.wait, 5)
        event.cancel()
        threading.Timer(0.05, may_finish.set).start()
        function.stop()
        assert len(written) == 1

    loop = asyncio.new_event_loop()
    loop.run_until_complete(story())
    threads = function._asgi.executor._threads
    function._asgi.executor.shutdown(wait=False)
    for thread in threads:
        thread.join(5)
    assert not any(thread.is_alive() for thread in threads)
    loop.close()


def test_stop_does_not_wait_for_ever(made: Any) -> None:
    """A step that hangs delays a stop by its deadline at most."""
    writing, may_finish, written = threading.Event(), threading.Event(), []

    def execute(_cluster: Any, plan: Any, _manager: str) -> Any:
        writing.set()
        may_finish.wait(2)
        written.append(plan)
        return plan

    function = made(execute=execute, deadline_seconds=0.05)
    headers, body = an_event()

    async def story() -> None:
        event = asyncio.create_task(Caller(sized(headers, body), body).call(function))
        await asyncio.to_thread(writing.wait, 5)
        function.stop()
        assert written == []
        may_finish.set()
        with pytest.raises(ConnectionAbortedError):
            await event

    asyncio.run(story())


def test_ready_reports_the_cluster(made: Any) -> None:
    """The API server is asked when the function is made, ahead of the first probe."""
    cluster = FakeCluster()
    function = made(cluster)
    wait_for_answers(function)
    assert cluster.calls == ["discover scheduling.k8s.io"]
    assert function.ready() == (True, "OK")


def test_the_loop_is_due_while_an_event_is_in_work(made: Any) -> None:
    """So that those that compute know when it is late."""
    due: list[bool] = []
    made_functions: list[Function] = []

    def look(cluster: Any, subject: ObjectRef) -> ObjectRef:
        loop = made_functions[0]._served.loop
        due.append(loop._due is not None)
        loop.end()
        due.append(loop._due is not None)
        return observe(cluster, subject)

    made_functions.append(made(observe=look))
    headers, body = an_event()
    asyncio.run(Caller(sized(headers, body), body).call(made_functions[0]))
    assert due == [True, False]


def test_a_function_that_stops_waits_for_no_loop(made: Any) -> None:
    """`stop` is called on the loop, and waits there for the events in work."""
    function = made()
    function.stop()
    assert function._served.loop._ended
