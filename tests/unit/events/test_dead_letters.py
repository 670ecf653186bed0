"""A dead letter is stored in a ConfigMap, and the event is read from it unchanged."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from muster.events.dead_letters import MOST_BYTES, DeadLetter, from_config_map, of_request, to_config_map

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "421c",
    "source": "https://10.96.0.1:443",
    "type": "dev.knative.apiserver.resource.add",
    "time": "2026-11-21T08:00:00Z",
    "subject": "/apis/batch/v1/namespaces/team-a/jobs/llama",
    "kind": "Job",
    "namespace": "team-a",
    "name": "llama",
    "datacontenttype": "application/json",
    "data": {"kind": "Job", "metadata": {"name": "llama"}},
}
FAILURE = {
    "knativeerrordest": "http://create-workload.muster-system.svc.cluster.local",
    "knativeerrorcode": "500",
    "knativeerrordata": base64.b64encode(b'{"reason": "Invalid"}').decode(),
    "knativearrivaltime": "2026-11-21T08:00:00Z",
}


def binary(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """The event in binary mode, as a broker sends it."""
    attributes = {name: value for name, value in event.items() if name not in {"data", "datacontenttype"}}
    headers = {f"Ce-{name.capitalize()}": value for name, value in attributes.items()}
    return headers | {"Content-Type": "application/json"}, json.dumps(event["data"]).encode()


def structured(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """The event in structured mode."""
    return {"content-type": "application/cloudevents+json"}, json.dumps(event).encode()


@pytest.mark.parametrize("mode", [binary, structured])
def test_who_failed_stands_beside_the_event(mode: Any) -> None:
    """The event is as it was; after a time-out Knative says nothing."""
    letter = of_request(*mode(EVENT | FAILURE))
    assert letter == DeadLetter(EVENT, "create-workload", "500", '{"reason": "Invalid"}')
    assert letter.about == "Job team-a/llama"
    assert of_request(*mode(EVENT)) == DeadLetter(EVENT)


def test_config_map_and_back() -> None:
    """Nothing of a letter is lost in its ConfigMap, data that are no JSON included."""
    headers, _ = binary(EVENT | FAILURE)
    for letter in (
        of_request(*binary(EVENT | FAILURE)),
        of_request(headers | {"Content-Type": "image/png"}, b"\x89PNG"),
    ):
        stored = to_config_map(letter, "muster-system")
        assert from_config_map(stored) == letter
        assert stored["metadata"]["labels"]["muster.dev/dead-letter"] == "true"
        assert (stored["data"]["about"], stored["data"]["code"]) == ("Job team-a/llama", "500")


def test_a_large_event_keeps_its_attributes_only() -> None:
    """A ConfigMap holds a mebibyte, and a hundred of them are listed at once."""
    letter = of_request(*binary(EVENT | FAILURE | {"data": {"words": "x" * MOST_BYTES}}))
    assert not letter.whole
    assert letter.event == {name: value for name, value in EVENT.items() if name != "data"}
    assert from_config_map(to_config_map(letter, "n")) == letter


def test_each_failure_of_an_event_has_one_name() -> None:
    """A broker that delivers a letter twice makes one of it; an event that fails once more makes another."""
    first = of_request(*binary(EVENT | FAILURE))
    assert first.name == of_request(*structured(EVENT | FAILURE)).name == "dead-letter-b03c7a2269fd"
    second = of_request(*structured({**first.again(), **FAILURE}))
    assert (second.event["musterredrive"], second.again()["musterredrive"]) == ("1", "2")
    service = "http://muster.muster-system.svc.cluster.local"
    other = of_request(*binary(EVENT | FAILURE | {"knativeerrordest": f"{service}/patch-pods"}))
    assert other.function == "muster/patch-pods"
    assert len({first.name, second.name, other.name}) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": "1"}'])
def test_a_config_map_that_a_user_changed_is_not_sent(text: str) -> None:
    """What holds no event any more is named."""
    with pytest.raises(ValueError, match=r"dead-letter-1: event\.json"):
        from_config_map({"metadata": {"name": "dead-letter-1"}, "data": {"event.json": text}})
