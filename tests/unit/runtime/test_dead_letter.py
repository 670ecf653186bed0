"""Undelivered events are kept as ConfigMaps, up to a limit, and each once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.cluster.errors import Gone, Unavailable
from muster.cluster.http.client import Client
from muster.events.dead_letters import LABEL, SELECTOR, from_config_map
from muster.objects.resources import CONFIGMAPS, NAMESPACES
from muster.runtime.config import Settings
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.telemetry.metrics import exposition_of
from muster.simulator.apiserver import ApiServer
from muster.simulator.direct import Direct
from tests.unit.events.test_dead_letters import EVENT, FAILURE, binary
from tests.unit.runtime.fakes import NOW, FakeCluster

HOME = "muster-system"


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


def test_the_oldest_make_room() -> None:
    """A letter that came twice is one, those from before a restart count, a mere label does not."""
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    with ApiServer() as server:
        client = Direct.to(server)
        client.create(NAMESPACES, home, manager="test")
        metadata = {"name": "mine", "namespace": HOME, "labels": {LABEL: "true"}}
        client.create(
            CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, manager="test"
        )
        first = keeper(client)
        assert [send(first, id=str(number), **FAILURE) for number in (0, 0, 1, 2, 3)] == [202] * 5
        assert b'muster_dead_letters_total{code="500",function="dead_letter"} 5.0' in exposition_of(
            [first.metrics]
        )
        assert kept(client) == ["0", "1", "2", "3"]
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
