"""The dead-letter function stores events on the embedded API server, up to a limit."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest

from muster.cluster.errors import ClusterError, Forbidden, Gone, Unavailable
from muster.cluster.http.client import Client
from muster.events.dead_letters import LABEL, SELECTOR, from_config_map
from muster.kustomize import load
from muster.objects.resources import CONFIGMAPS, NAMESPACES
from muster.policy.model import Action, Verb
from muster.runtime.config import Settings
from muster.runtime.dead_letter import DeadLetters
from muster.simulator.apiserver import ApiServer
from muster.simulator.broker import Answer, Broker, CloudEvent, NoAnswerError, Wiring
from tests.unit.events.test_dead_letters import EVENT, FAILURE, binary, structured
from tests.unit.runtime.fakes import NOW, FakeCluster

HOME = "muster-system"


@pytest.fixture
def client() -> Iterator[Client]:
    """An embedded API server with Muster's namespace."""
    with ApiServer() as server:
        made = Client.for_server(server.url)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
        made.create(NAMESPACES, body, manager="test")
        yield made


def keeper(client: Any, limit: int = 100) -> DeadLetters:
    """What keeps dead letters."""
    return DeadLetters(client, Settings(dead_letter_limit=limit, dead_letter_namespace=HOME), lambda: NOW)


def kept(client: Client) -> list[str]:
    """The ids of the events that are kept, sorted."""
    config_maps = client.list(CONFIGMAPS, HOME, labels=SELECTOR)
    return sorted(str(from_config_map(config_map).event["id"]) for config_map in config_maps)


def send(letters: DeadLetters, **change: Any) -> int:
    """Give it one event; the status of the answer."""
    return letters.handle(*binary(EVENT | change)).status


def test_letter_is_kept_once(client: Client) -> None:
    """202 without a body, also when the broker delivers it a second time."""
    letters = keeper(client)
    for _ in range(2):
        answer = letters.handle(*binary(EVENT | FAILURE))
        assert (answer.status, answer.body) == (202, b"")
    assert kept(client) == ["421c"]
    assert b'muster_dead_letters_total{code="500",function="dead_letter"} 2.0' in letters.metrics.exposition()


def test_letter_without_a_cause_is_kept(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """Knative gives none after a time-out; log and metrics say that much."""
    caplog.set_level("INFO", "muster")
    letters = keeper(client)
    assert send(letters) == 202
    assert kept(client) == ["421c"]
    assert len(caplog.messages) == 1
    assert b'muster_dead_letters_total{code="none"' in letters.metrics.exposition()


def test_oldest_make_room(client: Client) -> None:
    """No more than the limit are kept, counted over a restart too; what is no dead letter stays."""
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": HOME}}
    client.create(CONFIGMAPS, other, manager="test")
    for number in range(4):
        assert send(keeper(client, limit=3) if number == 3 else keeper(client), id=str(number)) == 202
    assert len(kept(client)) == 3
    letters = keeper(client, limit=3)
    for number in range(10, 13):
        send(letters, id=str(number))
    assert kept(client) == ["10", "11", "12"]
    assert client.get(CONFIGMAPS, "other", HOME) is not None


@pytest.mark.parametrize(
    ("cluster", "request_", "status", "reason"),
    [
        pytest.param(FakeCluster(on_read=Unavailable("refused")), binary(EVENT), 503, "Unavailable",
                     id="with the API server away the broker comes again"),
        pytest.param(FakeCluster(on_write=Gone("no such namespace")), binary(EVENT), 503, "Unavailable",
                     id="without the namespace it is kept in, the broker comes again"),
        pytest.param(FakeCluster(on_write=KeyError("uid")), binary(EVENT), 500, "UnexpectedError",
                     id="a bug is reported too"),
        pytest.param(FakeCluster(), ({}, b"{}"), 400, "UnreadableEvent", id="no event at all"),
        pytest.param(FakeCluster(), structured({"id": "1"}), 400, "UnreadableEvent", id="half an event"),
    ],
)  # fmt: skip
def test_events_that_cannot_be_stored(cluster: FakeCluster, request_: Any, status: int, reason: str) -> None:
    """Each failure has its answer and its reason; nothing is raised."""
    answer = keeper(cluster).handle(*request_)
    assert (answer.status, json.loads(answer.body)["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(Answer(400, {}, b"no"), "400", id="a function that refuses"),
        pytest.param(NoAnswerError("slow", timed_out=True), "", id="a function that is too slow"),
    ],
)
def test_behind_the_broker_of_eventing(client: Client, answer: Answer | NoAnswerError, code: str) -> None:
    """The broker and triggers of eventing/ bring what a function did not take, with or without a cause."""
    wiring = Wiring.from_manifests(load()).without_timers()
    letters = keeper(client)

    def fails(_headers: Any, _body: bytes, _timeout: float | None) -> Answer:
        if isinstance(answer, NoAnswerError):
            raise answer
        return answer

    def buries(headers: Any, body: bytes, _timeout: float | None) -> Answer:
        answer = letters.handle(headers, body)
        return Answer(answer.status, answer.headers, answer.body)

    services = {trigger.subscriber: fails for trigger in wiring.triggers}
    broker = Broker(wiring, {**services, "dead-letter": buries}, workers=0)
    job_added = EVENT | {"apiversion": "batch/v1"}
    broker.publish(CloudEvent.from_structured(job_added))
    broker.pump()
    letters_left = [from_config_map(obj) for obj in client.list(CONFIGMAPS, HOME, labels=SELECTOR)]
    heard = {"create-workload", "create-pod-groups"}
    assert {letter.function for letter in letters_left} == (heard if code else {""})
    assert {letter.code for letter in letters_left} == {code}
    assert all(letter.event == job_added for letter in letters_left)


@pytest.mark.thorough
def test_letters_that_wait_keep_no_parsed_data() -> None:
    """160 of 64 KiB that wait for the API server had 300 MiB: a parsed body has many times its size."""
    marker, kept_values = "muster-marker", []

    class Looking(FakeCluster):
        def write(self, *_: Any, **__: Any) -> Any:
            gc.collect()
            kept_values.append(sum(isinstance(one, dict) and marker in one for one in gc.get_objects()))
            return {}

    letters = DeadLetters(Looking(), Settings(dead_letter_namespace=HOME), lambda: NOW)
    body = json.dumps([{marker: {}}] * 100).encode()
    headers, _ = binary(EVENT)
    assert letters.handle(headers, body).status == 202
    assert kept_values == [0]


def test_letters_are_stored_side_by_side() -> None:
    """As many as events may be in work: one after the other, 40 a second held all threads."""
    together = Barrier(5)

    class Together(FakeCluster):
        def write(self, action: Action, manager: str) -> Any:
            together.wait(timeout=0.5)
            return super().write(action, manager)

    letters = keeper(Together())
    with ThreadPoolExecutor(5) as senders:
        answers = [senders.submit(send, letters, id=str(number)) for number in range(5)]
        assert [answer.result() for answer in answers] == [202] * 5


class CountingCluster(FakeCluster):
    """Remembers which ConfigMaps there are, and how many there were at most; `fails` are not deleted once."""

    def __init__(self, fails: int = 0, error: ClusterError | None = None) -> None:
        super().__init__()
        self.error = error or Unavailable("refused")
        self.names: set[str] = set()
        self.most = 0
        self.fails = fails

    def list(self, *_: Any, **__: Any) -> Any:
        """None."""
        return []

    def write(self, action: Action, manager: str) -> Any:
        """Create or delete one."""
        Event().wait(0.001)
        if action.verb is Verb.CREATE:
            self.names.add(action.target.name)
            self.most = max(self.most, len(self.names))
        elif self.fails:
            self.fails -= 1
            raise self.error
        else:
            self.names.remove(action.target.name)
        return super().write(action, manager)


def test_a_config_map_with_the_label_alone_stays(client: Client) -> None:
    """The account policy refuses to delete it, and in a shared namespace a team may write it."""
    metadata = {"name": "mine", "namespace": HOME, "labels": {LABEL: "true"}}
    client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, manager="test")
    letters = keeper(client, limit=2)
    assert [send(letters, id=str(number)) for number in range(4)] == [202] * 4
    labelled = client.list(CONFIGMAPS, HOME, labels=SELECTOR)
    assert len(labelled) == 3
    assert "mine" in {config_map["metadata"]["name"] for config_map in labelled}


def test_a_letter_that_may_not_be_deleted_keeps_no_others() -> None:
    """It is tried once; the letter that was stored meanwhile is known when it comes again."""
    cluster = CountingCluster(fails=1, error=Forbidden("protected"))
    letters = keeper(cluster, limit=1)
    assert [send(letters, id=str(number)) for number in range(4)] == [202, 503, 202, 202]
    assert len(cluster.names) == 2


def test_a_letter_that_was_not_deleted_is_deleted_later() -> None:
    """The letter for which it should make room is stored, and known when it comes again."""
    cluster = CountingCluster(fails=2)
    letters = keeper(cluster, limit=1)
    assert [send(letters, id=str(number)) for number in range(4)] == [202, 503, 503, 202]
    assert len(cluster.names) == 1
