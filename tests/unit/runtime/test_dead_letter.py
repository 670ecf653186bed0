"""Undelivered events are kept as ConfigMaps, up to a limit, and each once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from muster.cluster.errors import Gone, Unavailable
from muster.cluster.http.client import Client
from muster.events.dead_letters import LABEL, SELECTOR, from_config_map
from muster.objects.resources import CONFIGMAPS, NAMESPACES
from muster.runtime.config import Settings
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.http.app import app_of
from muster.runtime.telemetry.metrics import exposition_of
from muster.simulator.apiserver import ApiServer
from muster.simulator.broker import Answer, Broker, CloudEvent, NoAnswerError, Wiring
from muster.simulator.overlays import load
from tests.unit.events.test_dead_letters import EVENT, FAILURE, binary
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
    """The function, with a limit."""
    return DeadLetters(client, Settings(dead_letter_limit=limit, dead_letter_namespace=HOME), lambda: NOW)


def kept(client: Client) -> list[str]:
    """The ids of the events that are kept, sorted."""
    config_maps = client.list(CONFIGMAPS, HOME, labels=SELECTOR)
    return sorted(str(from_config_map(body).event["id"]) for body in config_maps if "data" in body)


def send(letters: DeadLetters, **change: Any) -> int:
    """Give it one event; the status of the answer."""
    return letters.handle(*binary(EVENT | change)).status


def test_a_letter_is_kept_once(client: Client) -> None:
    """202 without a body, also when the broker delivers it a second time."""
    letters = keeper(client)
    for _ in range(2):
        answer = letters.handle(*binary(EVENT | FAILURE))
        assert (answer.status, answer.body) == (202, b"")
    assert kept(client) == ["421c"]
    assert b'muster_dead_letters_total{code="500",function="dead_letter"} 2.0' in exposition_of(
        [letters.metrics]
    )


def test_the_oldest_make_room(client: Client) -> None:
    """Letters stored before a restart count too; a ConfigMap that only has the label stays."""
    metadata = {"name": "mine", "namespace": HOME, "labels": {LABEL: "true"}}
    client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, manager="test")
    first = keeper(client)
    assert [send(first, id=str(number)) for number in range(4)] == [202] * 4
    restarted = keeper(client, limit=3)
    assert [send(restarted, id=str(number)) for number in range(10, 13)] == [202] * 3
    assert kept(client) == ["10", "11", "12"]
    assert client.get(CONFIGMAPS, "mine", HOME) is not None


@pytest.mark.parametrize(
    ("cluster", "request_", "status", "reason"),
    [
        (FakeCluster(on_read=Unavailable("refused")), binary(EVENT), 503, "Unavailable"),
        (FakeCluster(on_write=Gone("no such namespace")), binary(EVENT), 503, "Unavailable"),
        (FakeCluster(on_write=KeyError("uid")), binary(EVENT), 500, "UnexpectedError"),
        (FakeCluster(), ({}, b"{}"), 400, "UnreadableEvent"),
    ],
)
def test_events_that_cannot_be_stored(cluster: FakeCluster, request_: Any, status: int, reason: str) -> None:
    """Each failure has its answer and its reason; with 503 the broker comes again."""
    answer = keeper(cluster).handle(*request_)
    assert (answer.status, json.loads(answer.body)["reason"]) == (status, reason)


def test_it_is_served_as_a_function_is() -> None:
    """At the same paths as a step."""
    cluster = FakeCluster()
    app = app_of([keeper(cluster)], lambda: (True, "ready")).test_client()
    headers, body = binary(EVENT)
    assert app.post("/", headers=headers, data=body).status_code == 202
    assert app.get("/health/readiness").status_code == 200
    assert "muster_dead_letters_total" in app.get("/metrics").text


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

    def fail(_headers: Any, _body: bytes, _timeout: float | None) -> Answer:
        if isinstance(answer, NoAnswerError):
            raise answer
        return answer

    def bury(headers: Any, body: bytes, _timeout: float | None) -> Answer:
        return Answer(letters.handle(headers, body).status)

    services = {trigger.subscriber: fail for trigger in wiring.triggers}
    broker = Broker(wiring, {**services, "dead-letter": bury}, workers=0)
    job_added = EVENT | {"apiversion": "batch/v1"}
    broker.publish(CloudEvent.from_structured(job_added))
    broker.pump()
    stored = [from_config_map(body) for body in client.list(CONFIGMAPS, HOME, labels=SELECTOR)]
    heard = {"create-workload", "create-pod-groups"}
    assert {letter.function for letter in stored} == (heard if code else {""})
    assert {letter.code for letter in stored} == {code}
    assert all(letter.event == job_added for letter in stored)
