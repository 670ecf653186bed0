"""EventLimits of an event hold before its JSON is parsed, and say which setting they are."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any
from urllib.parse import quote

import pytest

from muster.events import dead_letters
from muster.events.cloudevent import EventLimits, UnreadableEvent, receive
from tests.unit.events.test_dead_letters import EVENT, binary, structured

LIMITS = EventLimits(values=1000, attribute=100)
HEADERS = binary(EVENT)[0]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" + b"{}," * 1_000_000 + b"{}]", id="a batch of empty objects"),
        pytest.param(b'{"a": [' + b"1," * 1_000_000 + b"1]}", id="numbers in an object"),
        pytest.param(b'{"' + b'":0,"' * 1_000_000, id="an object that is broken off"),
        pytest.param(b"[" * 1_000_000, id="depth"),
        pytest.param(b'"' + b'\\"' * 1_000_000 + b'",' * 2000, id="quotes in strings"),
    ],
)
def test_many_values_are_not_parsed(body: bytes) -> None:
    """They would take a hundred times the memory of the body, and counting them takes next to none."""
    tracemalloc.start()
    for headers in (HEADERS, {"content-type": "application/cloudevents+json"}):
        with pytest.raises(UnreadableEvent, match="MUSTER_BODY_LIMIT_VALUES"):
            receive(headers, body, LIMITS)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("dense", [b"[{}],", b"[" * 97 + b"]" * 97 + b","], ids=["pairs", "deep lists"])
@pytest.mark.parametrize("mode", [binary, structured])
def test_events_of_lists_alone_are_not_parsed(mode: Any, dense: bytes) -> None:
    """48 KB of them take up to 14 ms: 195 a second kept probes from being answered."""
    data = json.loads(b"[" + dense * (48_000 // len(dense)) + b"0]")
    headers, body = mode(EVENT | {"data": data})
    with pytest.raises(UnreadableEvent):
        receive(headers, body)


def test_brackets_in_strings_are_no_lists() -> None:
    """A tenant may write any text into an annotation."""
    data: dict[str, Any] = {"annotation": "[" * 48_000}
    assert receive(HEADERS, json.dumps(data).encode()).data == data


@pytest.mark.thorough
def test_the_managed_fields_of_an_object_are_read() -> None:
    """They have the most objects for their bytes."""
    data: dict[str, Any] = {"fieldsV1": {f"f:{number:x}": {} for number in range(50_000)}}
    assert receive(HEADERS, json.dumps(data, separators=(",", ":")).encode()).data == data


def test_strings_count_as_one_value() -> None:
    """Whatever characters they have; the next value is one too many."""
    texts = [",[{" * 1000, 'a quote \\" and another "', "\\\\"]
    data: dict[str, Any] = {"texts": texts, "numbers": list(range(LIMITS.values - 6))}
    assert receive(HEADERS, json.dumps(data).encode(), LIMITS).data == data
    data["numbers"] += [0, 0, 0]
    with pytest.raises(UnreadableEvent):
        receive(HEADERS, json.dumps(data).encode(), LIMITS)


@pytest.mark.parametrize("mode", [binary, structured])
@pytest.mark.parametrize("name", ["id", "source", "type", "subject", "team"])
def test_long_attributes_are_refused(mode: Any, name: str) -> None:
    """At the door, so that no log line, reply or dead letter has them."""
    headers, body = mode(EVENT | {name: "x" * 100})
    assert receive(headers, body, LIMITS)
    headers, body = mode(EVENT | {name: "x" * 101})
    with pytest.raises(UnreadableEvent, match="MUSTER_ATTRIBUTE_LIMIT") as refused:
        receive(headers, body, LIMITS)
    assert refused.value.path.endswith(name)


def test_long_names_of_attributes_are_refused() -> None:
    """And cut in the message."""
    headers, body = structured(EVENT | {"x" * 100_000: "1"})
    with pytest.raises(UnreadableEvent, match="MUSTER_ATTRIBUTE_LIMIT") as refused:
        receive(headers, body, LIMITS)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("mode", [binary, structured])
def test_thousands_of_attributes_are_refused(mode: Any) -> None:
    """60,000 fit into a body, and take 0.15 s to read."""
    headers, body = mode(EVENT | {f"a{number}": "x" for number in range(80)})
    assert receive(headers, body, LIMITS)
    headers, body = mode(EVENT | {f"a{number}": "x" for number in range(100)})
    with pytest.raises(UnreadableEvent, match="more than 100"):
        receive(headers, body, LIMITS)


def test_thousands_of_percent_signs_are_not_decoded() -> None:
    """Each that two hexadecimal digits do not follow takes half a microsecond, and 16 KB of them 8 ms."""
    name = "喵" * 300
    headers = HEADERS | {"ce-subject": quote(name)}
    assert receive(headers, b"").id == EVENT["id"]
    assert dead_letters.of_request(headers, b"").event["subject"] == name
    headers |= {f"ce-a{number}": "%" * 20 for number in range(6)}
    with pytest.raises(UnreadableEvent, match="percent") as refused:
        receive(headers, b"")
    assert refused.value.path == "ce-subject"
