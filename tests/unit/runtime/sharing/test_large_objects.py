"""How many large objects events read at once, one by one or as answers of writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from muster.cluster.http.answer_json import LARGE_ANSWER, parse_answer, parsed, wait_before_large_answer
from muster.cluster.http.client import Client
from muster.cluster.interface import Object
from muster.cluster.versioned import Versioned
from muster.objects.resources import PODS, Resource
from muster.policy.model import Action, Verb
from muster.runtime.sharing import deadline_client
from muster.runtime.sharing.deadline_client import LARGE_PAGE, DeadlineClient, DeadlineExceeded
from muster.runtime.sharing.list_memory import LARGE_OBJECTS_AT_ONCE, SharedListMemory, TooManyObjects
from tests.unit.cluster.scripted import ScriptedResponse, serving
from tests.unit.runtime.fakes import BODY, POD, FakeCluster

MEMORY = 2**20

Call = Callable[[DeadlineClient], object]


def _get(client: DeadlineClient) -> object:
    return client.get(PODS, "llama-0", "team-a")


def _write(client: DeadlineClient) -> object:
    return client.write(Action(Verb.CREATE, POD, BODY), "muster")


class LargeObjects(FakeCluster):
    """Reads large answers slowly, several for each call; notes how many are read at once."""

    def __init__(self, answers: int = 1) -> None:
        super().__init__()
        self._answers = answers
        self.content = b"{}"
        self.reading = self.most = 0

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The pod, after a while."""
        self._read()
        return super().get(resource, name, namespace)

    def write(self, action: Action, manager: str) -> Object:
        """The pod, after a while."""
        self._read()
        return super().write(action, manager)

    def _read(self) -> None:
        for _ in range(self._answers):
            wait_before_large_answer()
            self.reading += 1
            self.most = max(self.most, self.reading)
            time.sleep(0.02)
            self.reading -= 1
            parse_answer(self.content)


def _begun(cluster: Any, shared: SharedListMemory, seconds: float = 10) -> DeadlineClient:
    """The client of an event in work."""
    client = DeadlineClient(cluster, seconds, memory=shared)
    client.begin()
    return client


def _take_all(shared: SharedListMemory) -> bool:
    """Read as many large objects as may be read at once; False if others read some."""
    return all(shared.large_objects.acquire(blocking=False) for _ in range(LARGE_OBJECTS_AT_ONCE))


def _give_all_back(shared: SharedListMemory) -> None:
    shared.large_objects.release(LARGE_OBJECTS_AT_ONCE)


@pytest.mark.parametrize("call", [_get, _write])
def test_few_large_objects_are_read_at_once(call: Call) -> None:
    """37 events that each read 8 MiB took 400 MiB that counted nowhere."""
    cluster, shared = LargeObjects(), SharedListMemory(MEMORY)
    with ThreadPoolExecutor(37) as events:
        assert all(events.map(lambda _: call(_begun(cluster, shared)), range(37)))
    assert 1 < cluster.most <= LARGE_OBJECTS_AT_ONCE


@pytest.mark.parametrize("call", [_get, _write])
def test_the_wait_for_other_large_objects_ends_at_the_deadline(call: Call) -> None:
    """The broker delivers the event again."""
    shared = SharedListMemory(MEMORY)
    assert _take_all(shared)
    with pytest.raises(DeadlineExceeded, match="large objects of other events"):
        call(_begun(LargeObjects(), shared, 0.05))
    _give_all_back(shared)


def test_usual_objects_wait_for_no_large_ones() -> None:
    """Those of others are read while large ones are, and parsed while a large one is."""
    shared = SharedListMemory(MEMORY)
    assert _take_all(shared)
    with serving(ScriptedResponse(body=BODY)) as server, shared.page_lock:
        client = _begun(Versioned(Client.for_server(server.url)), shared)
        assert _get(client) == BODY
        assert _write(client) == BODY


def test_a_large_object_of_an_api_server_waits() -> None:
    """It is read when others are parsed."""
    shared = SharedListMemory(MEMORY)
    assert _take_all(shared)
    body = {**BODY, "x": "x" * 2 * LARGE_ANSWER}
    with serving(ScriptedResponse(body=body)) as server:
        cluster = Versioned(Client.for_server(server.url))
        with pytest.raises(DeadlineExceeded, match="large objects of other events"):
            _get(_begun(cluster, shared, 0.3))
        _give_all_back(shared)
        assert _get(_begun(cluster, shared)) == body


def test_one_call_waits_for_no_object_of_its_own() -> None:
    """A call may read several answers: the second version of a kind, or what the server serves."""
    cluster, shared = LargeObjects(LARGE_OBJECTS_AT_ONCE + 1), SharedListMemory(MEMORY)
    assert _get(_begun(cluster, shared, 1)) == BODY


def test_an_event_that_pauses_or_was_refused_holds_up_no_large_object() -> None:
    """Those of others are read meanwhile."""
    cluster, shared = LargeObjects(), SharedListMemory(MEMORY)
    client = _begun(cluster, shared)

    def pause(_seconds: float) -> bool:
        free = _take_all(shared)
        _give_all_back(shared)
        return free

    client.pause_with(pause)
    assert _get(client)
    assert _write(client)
    cluster.content = b'{"a": "' + b"x" * 4 * MEMORY + b'"}'
    with pytest.raises(TooManyObjects):
        _get(client)
    assert not shared.page_lock.locked()
    assert _take_all(shared)


def test_large_objects_are_parsed_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An odd one takes several times its text, as a large page does."""
    cluster, shared = LargeObjects(), SharedListMemory(100 * MEMORY)
    cluster.content = b'{"a": "' + b"x" * LARGE_PAGE + b'"}'
    locked: list[bool] = []

    def noting(content: bytes) -> Any:
        locked.append(shared.page_lock.locked())
        return parsed(content)

    monkeypatch.setattr(deadline_client, "parsed", noting)
    assert _get(_begun(cluster, shared))
    assert locked == [True]
    assert not shared.page_lock.locked()
    with shared.page_lock, pytest.raises(DeadlineExceeded, match="large pages of other events"):
        _get(_begun(cluster, shared, 0.05))
    assert _take_all(shared)
