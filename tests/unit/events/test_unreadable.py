"""Unreadable events are refused, and the error names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.events.parse import UnreadableEvent, parse

STRUCTURED = {"content-type": "application/cloudevents+json"}
HEADERS = {
    "ce-specversion": "1.0",
    "ce-id": "7",
    "ce-source": "https://10.96.0.1:443",
    "ce-type": "dev.knative.apiserver.resource.update",
    "content-type": "application/json",
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "n", "uid": "4bac6118"},
}
ENVELOPE: dict[str, Any] = {
    "specversion": "1.0",
    "id": "7",
    "source": "/s",
    "type": "dev.knative.apiserver.resource.update",
    "data": POD,
}


def complaint(headers: dict[str, str], body: bytes) -> UnreadableEvent:
    """The refusal, whose text has its path and its message."""
    with pytest.raises(UnreadableEvent) as refused:
        parse(headers, body)
    assert refused.value.path in str(refused.value)
    assert refused.value.message in str(refused.value)
    return refused.value


def test_the_unchanged_event_is_fine() -> None:
    """The event that the cases below break is readable, in both modes."""
    parse(HEADERS, json.dumps(POD).encode())
    parse(STRUCTURED, json.dumps(ENVELOPE).encode())


@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param({"ce-id": None}, "ce-id", id="no id: none is invented"),
        pytest.param({"ce-id": ""}, "ce-id", id="an empty id"),
        pytest.param({"ce-source": None}, "ce-source", id="no source"),
        pytest.param({"ce-type": None}, "ce-type", id="no type"),
        pytest.param({"ce-specversion": None}, "ce-specversion", id="no specversion: none is assumed"),
        pytest.param(
            {"ce-specversion": "0.3"},
            "ce-specversion",
            id="CloudEvents 0.3, which the SDK would take",
        ),
        pytest.param(
            {"ce-specversion": "1.0.2"},
            "ce-specversion",
            id="a specversion that does not exist",
        ),
        pytest.param({"ce-time": "yesterday"}, "ce-time", id="no time at all"),
        pytest.param(
            {"ce-time": "2026-11-21T08:17:25"},
            "ce-time",
            id="a time without zone",
        ),
        pytest.param(
            {"ce-id": "a%0Ab"},
            "ce-id",
            id="a line break in the id, which would forge a line of the log",
        ),
        pytest.param(
            {"ce-my-team": "x"},
            "ce-my-team",
            id="an attribute name that CloudEvents forbids",
        ),
        pytest.param(
            {"content-type": "application/cloudevents-batch+json"},
            "content-type",
            id="a batch",
        ),
        pytest.param(
            {"content-type": "application/cloudevents+avro"},
            "content-type",
            id="a format other than JSON",
        ),
        pytest.param({"content-type": "text/plain"}, "data", id="an object that is no JSON"),
    ],
)
def test_binary_headers(change: dict[str, str | None], path: str) -> None:
    """A header that breaks CloudEvents is named as it was sent."""
    headers = {name: value for name, value in (HEADERS | change).items() if value is not None}
    refused = complaint(headers, json.dumps(POD).encode())
    assert refused.path == path


def test_no_event_at_all() -> None:
    """A request that is no CloudEvent in any mode gets the attributes that were looked for."""
    refused = complaint({"content-type": "application/json"}, json.dumps(ENVELOPE).encode())
    assert refused.path == "content-type"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param({"id": None}, "id", id="no id"),
        pytest.param({"id": 7}, "id", id="an id that is a number"),
        pytest.param({"specversion": 1.0}, "specversion", id="a specversion that is one"),
        pytest.param({"time": 5}, "time", id="a time that is a number"),
        pytest.param(
            {"team": {"a": 1}},
            "team",
            id="an extension that is an object",
        ),
        pytest.param({"subject": ""}, "subject", id="an empty subject"),
        pytest.param(
            {"id": "\ud800"},
            "id",
            id="half a character, which no encoder can write again",
        ),
        pytest.param(
            {"data_base64": "e30="},
            "data_base64",
            id="data twice",
        ),
        pytest.param({"data": None, "data_base64": "?"}, "data_base64", id="base64 that is none"),
        pytest.param(
            {"data": None, "data_base64": "ew=="},
            "data_base64",
            id="base64 of broken JSON",
        ),
    ],
)
def test_structured_envelope(change: dict[str, Any], path: str) -> None:
    """A member that breaks CloudEvents is named without prefix."""
    refused = complaint(STRUCTURED, json.dumps(ENVELOPE | change).encode())
    assert refused.path == path


@pytest.mark.parametrize(
    ("body", "path"),
    [
        pytest.param(b"", "body", id="an empty body"),
        pytest.param(
            b'{"specversion":',
            "body",
            id="JSON that breaks off",
        ),
        pytest.param(b"\xff\xfe{}", "body", id="bytes that are no UTF-8"),
        pytest.param(b"[]", "body", id="a list, as of a batch"),
        pytest.param(
            b"[" * 5_000,
            "body",
            id="nesting that would exhaust the stack",
        ),
    ],
)
def test_structured_body(body: bytes, path: str) -> None:
    """A body that is no JSON object is refused with the place of the fault."""
    refused = complaint(STRUCTURED, body)
    assert refused.path == path


@pytest.mark.parametrize(
    ("change", "path"),
    [
        pytest.param({"apiVersion": None}, "data.apiVersion", id="no apiVersion"),
        pytest.param({"kind": ["Pod"]}, "data.kind", id="a kind that is a list"),
        pytest.param({"metadata": None}, "data.metadata", id="no metadata"),
        pytest.param({"metadata": "x"}, "data.metadata", id="metadata that is a word"),
        pytest.param(
            {"metadata": {"namespace": "n"}},
            "data.metadata.name",
            id="an object without name",
        ),
        pytest.param(
            {"metadata": {"name": "p/../../secrets/s"}},
            "data.metadata.name",
            id="a name that would lead to another URL",
        ),
        pytest.param(
            {"metadata": {"name": "p", "namespace": "a?b"}},
            "data.metadata.namespace",
            id="a namespace that would lead to another URL",
        ),
        pytest.param(
            {"metadata": {"name": "x" * 300}},
            "data.metadata.name",
            id="a name that is too long is cut in the message",
        ),
    ],
)
def test_object_in_resource_mode(change: dict[str, Any], path: str) -> None:
    """In Resource mode the object must say what it is; the path leads to what is wrong."""
    data = {name: value for name, value in (POD | change).items() if value is not None}
    refused = complaint(HEADERS, json.dumps(data).encode())
    assert refused.path == path


@pytest.mark.parametrize(
    ("body", "path"),
    [
        pytest.param(b"", "data", id="no data"),
        pytest.param(b'"Pod"', "data", id="data that is a word"),
        pytest.param(
            b'{"kind":',
            "data",
            id="broken JSON, which the SDK would take for a string",
        ),
        pytest.param(b'{"apiVersion":"v1","kind":"Pod"}', "data.name", id="no name"),
    ],
)
def test_data_in_reference_mode(body: bytes, path: str) -> None:
    """In Reference mode the name stands in the data itself."""
    refused = complaint(HEADERS | {"ce-type": "dev.knative.apiserver.ref.add"}, body)
    assert refused.path == path
