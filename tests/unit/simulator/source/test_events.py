"""The local source sends the same events about an object as the real adapter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.objects.resources import guess_plural
from muster.simulator.broker import CloudEvent
from muster.simulator.source import ChangeType, Mode, to_event
from tests.support.recorded_events import recorded, title

EACH_SENDING = {"id", "time"}


@pytest.mark.parametrize("event", [pytest.param(event, id=title(event)) for event in recorded("resource")])
def test_an_object_is_sent_as_by_the_adapter(event: dict[str, Any]) -> None:
    """From the recorded object come the recorded attributes and data, but for id and time."""
    verb = ChangeType(event["type"].rpartition(".")[2])
    headers, body = to_event(verb, event["data"], Mode.RESOURCE, event["source"])
    assert _attributes(headers) == _without_sending(event)
    assert json.loads(body) == event["data"]


@pytest.mark.parametrize("event", [pytest.param(event, id=title(event)) for event in recorded("reference")])
def test_a_reference_is_sent_as_by_the_adapter(event: dict[str, Any]) -> None:
    """A reference has kind, name, apiVersion and a namespace where there is one; the header has it anyway."""
    obj = {
        "apiVersion": event["apiversion"],
        "kind": event["kind"],
        "metadata": {"name": event["name"], "uid": "not told", **_namespace(event)},
    }
    verb = ChangeType(event["type"].rpartition(".")[2])
    headers, body = to_event(verb, obj, Mode.REFERENCE, event["source"])
    assert _attributes(headers) == _without_sending(event)
    assert json.loads(body) == event["data"]


def test_the_recordings_hold_cluster_scoped_objects() -> None:
    """An empty namespace is sent, and doubled slashes come with it: the case is among the recorded ones."""
    runtimes = [event for event in recorded("resource") if event["kind"] == "ClusterTrainingRuntime"]
    assert {event["namespace"] for event in runtimes} == {""}
    assert all("/namespaces//clustertrainingruntimes/" in event["subject"] for event in runtimes)


def test_the_same_object_gives_the_same_event() -> None:
    """Nothing of the clock or of chance is in it, and the object is left as it was."""
    event = recorded("resource")[0]
    before = json.dumps(event["data"])
    first = to_event(ChangeType.ADD, event["data"], Mode.RESOURCE, "https://10.96.0.1:443")
    assert to_event(ChangeType.ADD, event["data"], Mode.RESOURCE, "https://10.96.0.1:443") == first
    assert json.dumps(event["data"]) == before


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        pytest.param("PodGroup", "podgroups", id="most kinds take an s"),
        pytest.param("PriorityClass", "priorityclasses", id="an s takes es"),
        pytest.param("MutatingAdmissionPolicy", "mutatingadmissionpolicies", id="a y becomes ies"),
        pytest.param("Endpoints", "endpoints", id="endpoints are one and many"),
    ],
)
def test_plurals_are_guessed(kind: str, plural: str) -> None:
    """The plural in a subject is a guess by spelling, the adapter's own."""
    assert guess_plural(kind) == plural


def _attributes(headers: dict[str, str]) -> dict[str, str]:
    """What a broker reads from the headers; id and time are the sender's to add."""
    sent = {**headers, "Ce-Id": "some", "Ce-Time": "2026-11-21T08:00:00Z"}
    attributes = CloudEvent.from_http(sent, b"{}").attributes
    return {name: value for name, value in attributes.items() if name not in EACH_SENDING}


def _without_sending(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in EACH_SENDING | {"data"}}


def _namespace(event: dict[str, Any]) -> dict[str, str]:
    return {"namespace": event["namespace"]} if event["namespace"] else {}
