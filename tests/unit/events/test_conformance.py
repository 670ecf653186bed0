"""The cases of the CloudEvents conformance suite hold for our receiver.

Retold from cloudevents/conformance: features/http-protocol-binding.feature, yaml/v1.yaml,
yaml/v1.0/v1_minimum.yaml and format/json/{valid,invalid}-{events,batches}.json, whose cases stand in the ids.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.events.cloudevent import UnreadableEvent, receive

ABSENT = object()
"""Stands for an attribute that is missing."""

HELLO = {"message": "Hello World!"}
SOME_EVENT = {
    "specversion": "1.0",
    "type": "com.example.someevent",
    "time": "2018-04-05T03:56:24Z",
    "id": "1234-1234-1234",
    "source": "/mycontext/subcontext",
}
TEST_EVENT = {
    "specversion": "1.0",
    "id": "1",
    "type": "io.cloudevents.test",
    "source": "https://cloudevents.io",
}


def in_headers(attributes: dict[str, str], content_type: str = "") -> dict[str, str]:
    """Attributes as binary mode sends them."""
    headers = {f"ce-{name}": value for name, value in attributes.items()}
    return headers | ({"Content-Type": content_type} if content_type else {})


def structured(envelope: Any, content_type: str = "application/cloudevents+json") -> Any:
    """The event in a structured request."""
    return receive({"Content-Type": content_type}, json.dumps(envelope).encode())


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
def test_binary_mode(content_type: str) -> None:
    """HTTP binding, scenario Binary content mode: attributes from headers, data from the body."""
    body = b'{\n    "message": "Hello World!"\n}'
    event = receive({"Host": "example.com", **in_headers(SOME_EVENT, content_type)}, body)
    assert (event.id, event.type, event.data) == ("1234-1234-1234", "com.example.someevent", HELLO)


@pytest.mark.parametrize(
    "content_type", ["application/cloudevents+json", "application/cloudevents+json; charset=utf-8"]
)
def test_structured_mode(content_type: str) -> None:
    """HTTP binding, scenario Structured content mode: all of it from the body."""
    event = structured({**SOME_EVENT, "datacontenttype": "application/json", "data": HELLO}, content_type)
    assert (event.id, event.type, event.data) == ("1234-1234-1234", "com.example.someevent", HELLO)


@pytest.mark.parametrize(
    ("content_type", "body", "data"),
    [
        pytest.param("text/plain; charset=us-ascii", "Hello, World!", b"Hello, World!", id="text in ASCII"),
        pytest.param("text/plain; charset=utf-8", "Hello, 🌎!", "Hello, 🌎!".encode(), id="text in UTF-8"),
        pytest.param("application/json; charset=utf-8", '"Hello, 🌎!"', "Hello, 🌎!", id="a JSON string"),
        pytest.param(
            "application/json; charset=utf-8",
            '{"msg":"Hello, 🌎!"}',
            {"msg": "Hello, 🌎!"},
            id="a JSON object",
        ),
        pytest.param(
            "application/json; charset=utf-8", '["Hello","🌎!"]', ["Hello", "🌎!"], id="a JSON array"
        ),
        pytest.param(
            "application/xml; charset=utf-8",
            "<msg>Hello, 🌎!</msg>",
            "<msg>Hello, 🌎!</msg>".encode(),
            id="XML",
        ),
        pytest.param("", '{"world":"hello"}', {"world": "hello"}, id="no content type, which means JSON"),
    ],
)
def test_data_in_binary_mode(content_type: str, body: str, data: Any) -> None:
    """JSON is parsed, anything else stays bytes; extensions and other headers do no harm."""
    extensions = {"comexampleextension1": "value", "comexampleextension2": '{"othervalue": 5}'}
    headers = in_headers(SOME_EVENT | extensions, content_type) | {"user-agent": "foo"}
    assert receive(headers, body.encode()).data == data


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({}, id="validMinimal: the required attributes alone"),
        pytest.param(
            dict.fromkeys(("datacontenttype", "dataschema", "subject", "time")),
            id="validMinimalWithNullForOptional: null where optional",
        ),
        pytest.param(
            {
                "datacontenttype": "text/plain",
                "dataschema": "https://cloudevents.io/dataschema",
                "subject": "tests",
                "time": "2018-04-05T17:31:00Z",
            },
            id="validAllCoreAttributes: all of the core attributes",
        ),
        pytest.param({"time": "2018-04-05T17:31:00Z"}, id="validMinimalWithTimeUtc: a time in UTC"),
        pytest.param(
            {"time": "2018-04-05T17:31:00.000000000Z"},
            id="validMinimalWithTimeToNanosecondsUtc: a time with nanoseconds",
        ),
        pytest.param(
            {"time": "2018-04-05T18:31:00+01:00"},
            id="validMinimalWithTimeUsingPositiveOffset: a time east of Greenwich",
        ),
        pytest.param(
            {"time": "2018-04-05T16:31:00-01:00"},
            id="validMinimalWithTimeUsingNegativeOffset: a time west of Greenwich",
        ),
        pytest.param({"source": "#fragment"}, id="validRelativeSource: a relative source"),
        pytest.param(
            {"datacontenttype": "text/plain", "data": "Simple text"}, id="validSimpleTextData: text as data"
        ),
        pytest.param(
            {
                "extinteger": 10,
                "extboolean": True,
                "extstring": "text",
                "exturi": "https://cloudevents.io",
                "exturiref": "//authority/path",
                "exttimestamp": "2023-03-31T15:12:00Z",
                "extbinary": "TWE=",
            },
            id="validAllExtensionTypes: extensions of all types",
        ),
    ],
)
def test_valid_events(more: dict[str, Any]) -> None:
    """JSON format, valid single events."""
    event = structured(TEST_EVENT | more)
    assert (event.id, event.type, event.data) == ("1", "io.cloudevents.test", more.get("data"))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"specversion": ABSENT}, id="invalidNoSpecVersion: no specversion"),
        pytest.param({"id": ABSENT}, id="invalidNoId: no id"),
        pytest.param({"type": ABSENT}, id="invalidNoType: no type"),
        pytest.param({"source": ABSENT}, id="invalidNoSource: no source"),
        pytest.param({"time": "lunchtime"}, id="invalidTimeGarbage: a time that is none"),
        pytest.param({"time": "2018-04-05T18:31Z"}, id="invalidTimeToMinute: a time without seconds"),
        pytest.param({"time": "9999-12-31T24:00:00Z"}, id="a time in the year 10,000"),
        pytest.param({"time": "2018-04-05T18:31:00X"}, id="invalidTimeOffsetX: an unknown zone"),
        pytest.param(
            {"time": "2018-04-05T18:31:00+25:00"}, id="invalidTimeOffsetOutOfRange: a zone beyond the day"
        ),
        pytest.param(
            {"time": "2018-04-05T18:31:00+xx:00"}, id="invalidTimeOffsetNonInteger: a zone in letters"
        ),
        pytest.param(
            {"time": "2018-04-05T18:31:00+05"}, id="invalidTimeOffsetHourOnly: a zone of hours alone"
        ),
        pytest.param({"id": ""}, id="invalidEmptyId: an empty id"),
        pytest.param({"type": ""}, id="invalidEmptyType: an empty type"),
        pytest.param({"source": ""}, id="invalidEmptySource: an empty source"),
        pytest.param({"specversion": ""}, id="invalidEmptySpecVersion: an empty specversion"),
        pytest.param({"specversion": "0.9"}, id="invalidUnknownSpecVersion: an unknown specversion"),
        pytest.param(
            {"datacontenttype": "xyz"},
            id="invalidNonRfc2046DataContentType: a content type that is no media type",
        ),
        pytest.param({"datacontenttype": ""}, id="invalidEmptyDataContentType: an empty content type"),
        pytest.param({"dataschema": ""}, id="invalidEmptyDataSchema: an empty schema"),
        pytest.param({"subject": ""}, id="invalidEmptySubject: an empty subject"),
        pytest.param({"id": 25}, id="invalidNumericId: an id that is a number"),
        pytest.param({"id": {"xyz": "abc"}}, id="invalidObjectId: an id that is an object"),
        pytest.param({"MyExtension": "bad"}, id="invalidCapitalizedExtension: an extension in capitals"),
        pytest.param({"my.extension": "bad"}, id="invalidPunctuatedExtension: an extension with a dot"),
        pytest.param(
            {"myextension": 1.5}, id="invalidNonIntegerExtensionValue: an extension that is a fraction"
        ),
        pytest.param(
            {"data": "text", "data_base64": "eyAieHl6IjogMTIzIH0="},
            id="invalidBothDataAndDataBase64: data twice",
        ),
    ],
)
def test_invalid_events(change: dict[str, Any]) -> None:
    """JSON format, invalid single events: each is refused, none ends as a bug."""
    with pytest.raises(UnreadableEvent):
        structured({name: value for name, value in (TEST_EVENT | change).items() if value is not ABSENT})


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param([], id="an empty one"),
        pytest.param([TEST_EVENT], id="one event"),
        pytest.param([TEST_EVENT, TEST_EVENT | {"id": "2"}], id="two events"),
        pytest.param(
            [TEST_EVENT, TEST_EVENT | {"specversion": "0.9"}],
            id="invalidBatchMixedSpecVersions: of two specversions",
        ),
        pytest.param(
            [{**TEST_EVENT, "id": ""}], id="invalidBatchContainingInvalidCloudEvent: an event without an id"
        ),
        pytest.param(
            ["not an object", TEST_EVENT], id="invalidBatchContainingNonObject: something that is no event"
        ),
    ],
)
@pytest.mark.parametrize(
    "content_type",
    ["application/cloudevents-batch+json", "application/cloudevents+json"],
    ids=["said to be one", "said to be one event"],
)
def test_batches_are_refused(batch: list[Any], content_type: str) -> None:
    """JSON format, batches: one answer cannot be about several events, so a valid one is refused as well."""
    with pytest.raises(UnreadableEvent):
        structured(batch, content_type)
