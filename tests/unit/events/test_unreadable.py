"""Bad input: what is refused, in which words, and where the fault is said to be."""

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


def complaint(headers: dict[str, str], body: bytes) -> tuple[str, str]:
    """Path and message of the refusal."""
    with pytest.raises(UnreadableEvent) as refused:
        parse(headers, body)
    assert str(refused.value) == f"{refused.value.path}: {refused.value.message}"
    return refused.value.path, refused.value.message


def test_the_unchanged_event_is_fine() -> None:
    """The event that the cases below break is readable, in both modes."""
    parse(HEADERS, json.dumps(POD).encode())
    parse(STRUCTURED, json.dumps(ENVELOPE).encode())


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({"ce-id": None}, ("ce-id", "is missing"), id="no id: none is invented"),
        pytest.param({"ce-id": ""}, ("ce-id", "is empty"), id="an empty id"),
        pytest.param({"ce-source": None}, ("ce-source", "is missing"), id="no source"),
        pytest.param({"ce-type": None}, ("ce-type", "is missing"), id="no type"),
        pytest.param(
            {"ce-specversion": None}, ("ce-specversion", "is missing"), id="no specversion: none is assumed"
        ),
        pytest.param(
            {"ce-specversion": "0.3"},
            ("ce-specversion", 'must be "1.0", not "0.3"'),
            id="CloudEvents 0.3, which the SDK would take",
        ),
        pytest.param(
            {"ce-specversion": "1.0.2"},
            ("ce-specversion", 'must be "1.0", not "1.0.2"'),
            id="a specversion that does not exist",
        ),
        pytest.param(
            {"ce-time": "yesterday"}, ("ce-time", "is not a time as in RFC 3339"), id="no time at all"
        ),
        pytest.param(
            {"ce-time": "2026-11-21T08:17:25"},
            ("ce-time", "is not a time as in RFC 3339"),
            id="a time without zone",
        ),
        pytest.param(
            {"ce-id": "a%0Ab"},
            ("ce-id", "holds a control character or half a character"),
            id="a line break in the id, which would forge a line of the log",
        ),
        pytest.param(
            {"ce-my-team": "x"},
            ("ce-my-team", "Extension attribute 'my-team' should only contain lowercase letters and numbers"),
            id="an attribute name that CloudEvents forbids",
        ),
        pytest.param(
            {"content-type": "application/cloudevents-batch+json"},
            ("content-type", "a batch of events is not accepted, send them one by one"),
            id="a batch",
        ),
        pytest.param(
            {"content-type": "application/cloudevents+avro"},
            ("content-type", "events are read in JSON format only, application/cloudevents+json"),
            id="a format other than JSON",
        ),
        pytest.param(
            {"content-type": "text/plain"}, ("data", "must be a JSON object"), id="an object that is no JSON"
        ),
    ],
)
def test_binary_headers(change: dict[str, str | None], want: tuple[str, str]) -> None:
    """A header that breaks CloudEvents is named as it was sent."""
    headers = {name: value for name, value in (HEADERS | change).items() if value is not None}
    assert complaint(headers, json.dumps(POD).encode()) == want


def test_no_event_at_all() -> None:
    """A request that is no CloudEvent in any mode is told what was looked for."""
    assert complaint({"content-type": "application/json"}, json.dumps(ENVELOPE).encode()) == (
        "content-type",
        "no CloudEvent: there are no ce- headers, and the content type is not application/cloudevents+json",
    )


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({"id": None}, ("id", "is missing"), id="no id"),
        pytest.param({"id": 7}, ("id", "must be a string, not 7"), id="an id that is a number"),
        pytest.param(
            {"specversion": 1.0}, ("specversion", 'must be "1.0", not 1.0'), id="a specversion that is one"
        ),
        pytest.param({"time": 5}, ("time", "must be a string, not 5"), id="a time that is a number"),
        pytest.param(
            {"team": {"a": 1}},
            ("team", "an attribute is a string, an integer or a boolean"),
            id="an extension that is an object",
        ),
        pytest.param(
            {"subject": ""}, ("subject", "Attribute 'subject' must not be empty"), id="an empty subject"
        ),
        pytest.param(
            {"id": "\ud800"},
            ("id", "holds a control character or half a character"),
            id="half a character, which no encoder can write again",
        ),
        pytest.param(
            {"data_base64": "e30="},
            ("data_base64", "data and data_base64 exclude each other"),
            id="data twice",
        ),
        pytest.param(
            {"data": None, "data_base64": "?"}, ("data_base64", "is not base64"), id="base64 that is none"
        ),
        pytest.param(
            {"data": None, "data_base64": "ew=="},
            (
                "data_base64",
                "is not JSON: Expecting property name enclosed in double quotes at character 1",
            ),
            id="base64 of broken JSON",
        ),
    ],
)
def test_structured_envelope(change: dict[str, Any], want: tuple[str, str]) -> None:
    """A member that breaks CloudEvents is named without prefix."""
    assert complaint(STRUCTURED, json.dumps(ENVELOPE | change).encode()) == want


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(b"", ("body", "is not JSON: Expecting value at character 0"), id="an empty body"),
        pytest.param(
            b'{"specversion":',
            ("body", "is not JSON: Expecting value at character 15"),
            id="JSON that breaks off",
        ),
        pytest.param(b"\xff\xfe{}", ("body", "is not UTF-8 at byte 0"), id="bytes that are no UTF-8"),
        pytest.param(
            b"[]", ("body", "a structured CloudEvent is one JSON object"), id="a list, as of a batch"
        ),
        pytest.param(
            b"[" * 100_000,
            ("body", "is nested too deeply"),
            id="nesting that would exhaust the stack",
        ),
    ],
)
def test_structured_body(body: bytes, want: tuple[str, str]) -> None:
    """A body that is no JSON object is refused with the place of the fault."""
    assert complaint(STRUCTURED, body) == want


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({"apiVersion": None}, ("data.apiVersion", "is missing"), id="no apiVersion"),
        pytest.param(
            {"kind": ["Pod"]}, ("data.kind", 'must be a string, not ["Pod"]'), id="a kind that is a list"
        ),
        pytest.param({"metadata": None}, ("data.metadata", "is missing"), id="no metadata"),
        pytest.param(
            {"metadata": "x"}, ("data.metadata", "must be a JSON object"), id="metadata that is a word"
        ),
        pytest.param(
            {"metadata": {"namespace": "n"}},
            ("data.metadata.name", "is missing"),
            id="an object without name",
        ),
        pytest.param(
            {"metadata": {"name": "p/../../secrets/s"}},
            ("data.metadata.name", '"p/../../secrets/s" cannot be the name of a Kubernetes object'),
            id="a name that would lead to another URL",
        ),
        pytest.param(
            {"metadata": {"name": "p", "namespace": "a?b"}},
            ("data.metadata.namespace", '"a?b" cannot be the namespace of a Kubernetes object'),
            id="a namespace that would lead to another URL",
        ),
        pytest.param(
            {"metadata": {"name": "x" * 300}},
            (
                "data.metadata.name",
                f'"{"x" * 76}... cannot be the name of a Kubernetes object',
            ),
            id="a name that is too long is cut in the message",
        ),
    ],
)
def test_object_in_resource_mode(change: dict[str, Any], want: tuple[str, str]) -> None:
    """In Resource mode the object must say what it is; the path leads to what is wrong."""
    data = {name: value for name, value in (POD | change).items() if value is not None}
    assert complaint(HEADERS, json.dumps(data).encode()) == want


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(b"", ("data", "is missing"), id="no data"),
        pytest.param(b'"Pod"', ("data", "must be a JSON object"), id="data that is a word"),
        pytest.param(
            b'{"kind":',
            ("data", "is not JSON: Expecting value at character 8"),
            id="broken JSON, which the SDK would take for a string",
        ),
        pytest.param(b'{"apiVersion":"v1","kind":"Pod"}', ("data.name", "is missing"), id="no name"),
    ],
)
def test_data_in_reference_mode(body: bytes, want: tuple[str, str]) -> None:
    """In Reference mode the name stands in the data itself."""
    assert complaint(HEADERS | {"ce-type": "dev.knative.apiserver.ref.add"}, body) == want
