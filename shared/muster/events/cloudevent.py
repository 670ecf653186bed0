"""Strict decoding of a CloudEvent from an HTTP request.

The checks below come before those of the SDK (cloudevents.core, v2.2.0), because by itself it fills in a
missing id, specversion and time, detects the mode by any `ce-` header instead of the content type, and takes
broken JSON for a string.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.http import HTTPMessage, from_binary
from cloudevents.core.exceptions import CloudEventValidationError
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from muster.objects.text import brackets_of, is_deeper, separators, structure_of

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch"
JSON_TYPE = re.compile(r"(application|text)/([a-z0-9.-]+\+)?json")
REQUIRED = ("specversion", "id", "source", "type")
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that CloudEvents 1.0 forbids in strings (spec.md, type system)."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.IGNORECASE)
"""RFC 3339; Python's parser accepts more of ISO 8601."""
MEDIA_TYPE = re.compile(r"[^\s/;]+/[^\s/;]+\s*(;.*)?")
INTEGERS = range(-(2**31), 2**31)
"""The integers of CloudEvents 1.0 (spec.md, type system)."""
MOST_ATTRIBUTES = 100
"""Knative's events have up to fifteen. 60,000 of them fit into a structured event and take 0.15 s to read."""
MOST_ESCAPES = 1000
"""The percent signs in all `ce-` headers of an event: each takes up to half a microsecond. Events in
structured mode need none, and a name of 250 Chinese characters has 750."""
DEPTH_LIMIT = 100
"""Levels of an event's JSON; objects of Kubernetes have some 30, and Python copies no more than about 300."""
FREE_CONTAINERS, BYTES_OF_CONTAINER = 5_000, 8
"""The objects and lists that the JSON of an event may have, and the bytes for each further one: they take
most of its time. In an object of Kubernetes one has nine bytes at least, `"f:a":{},` of its managedFields."""
TEXT_ATTRIBUTES = (*REQUIRED, "subject", "time", "datacontenttype", "dataschema")


@dataclass(frozen=True)
class EventLimits:
    """The limits of an event; the settings of a function have their defaults and reasons.

    Attributes:
        values: the most JSON values in the body (MUSTER_BODY_LIMIT_VALUES).
        attribute: the most characters of an attribute (MUSTER_ATTRIBUTE_LIMIT).
    """

    values: int
    attribute: int


class FloatText(str):
    """The text of a number with a fraction or an exponent, which nobody reads.

    `float` takes five times as long for numbers such as `7e-311`.
    """

    __slots__ = ()


UNLIMITED = EventLimits(sys.maxsize, sys.maxsize)
"""For events from the user's own files."""


class UnreadableEvent(ValueError):
    """The request is no valid CloudEvent, or has invalid data; sending it again would not help.

    Attributes:
        message: what is wrong.
        path: the header or field as the sender wrote it: `ce-id`, `content-type`, `data.metadata.name`.
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(f"{path}: {message}")
        self.message = message
        self.path = path


@dataclass(frozen=True)
class Received:
    """A valid CloudEvent: the attributes that Muster reads, and the data.

    Attributes:
        id: the attribute of that name.
        type: the attribute of that name.
        data: parsed JSON; bytes if the content type is not JSON; None without data.
        members: those of the JSON object in structured mode that are not null; none in binary mode.
    """

    id: str
    type: str
    data: Any
    members: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JsonReader:
    """Makes values of JSON.

    Attributes:
        envelope: makes the value of a structured event.
        data: makes that of data.
    """

    envelope: Callable[[str], Any] = json.loads
    data: Callable[[str], Any] = json.loads


PARSED = JsonReader()
"""Makes all values."""
_WITHOUT_FLOATS = json.JSONDecoder(parse_float=FloatText).decode
WITHOUT_FLOATS = JsonReader(_WITHOUT_FLOATS, _WITHOUT_FLOATS)
"""Makes FloatText of numbers with a fraction or an exponent, which no field of Kubernetes has."""


def receive(
    headers: Mapping[str, str], body: bytes, limits: EventLimits = UNLIMITED, reader: JsonReader = PARSED
) -> Received:
    """Return the CloudEvent of a request, in binary or structured mode by its content type.

    The number of values is compared with the limit before the JSON is parsed.

    Args:
        headers: of the request.
        body: of the request.
        limits: of the event.
        reader: makes values of its JSON; raises ValueError for what is no JSON.

    Raises:
        UnreadableEvent: there is none, or it breaks a rule of CloudEvents 1.0 (HTTP binding, JSON format).
    """
    lower_case = {name.lower(): value for name, value in headers.items()}
    media_type = _media_type(lower_case.get("content-type", ""))
    if media_type.startswith(BATCH):
        raise UnreadableEvent("a batch of events is not accepted, send them one by one", "content-type")
    if media_type == STRUCTURED:
        return _structured(body, limits, reader)
    if media_type.startswith("application/cloudevents"):
        raise UnreadableEvent(f"events are read in JSON format only, {STRUCTURED}", "content-type")
    return _binary(lower_case, media_type, body, limits, reader)


def _binary(
    headers: Mapping[str, str], media_type: str, body: bytes, limits: EventLimits, reader: JsonReader
) -> Received:
    attributes = {name: value for name, value in headers.items() if name.startswith("ce-")}
    if not attributes:
        raise UnreadableEvent(
            f"not a CloudEvent: no ce- headers, and the content type is not {STRUCTURED}",
            "content-type",
        )
    _check_lengths(attributes, limits)
    _check_escapes(attributes)
    for name in REQUIRED:
        _check_required(attributes.get(f"ce-{name}"), name, f"ce-{name}")
    _check_time(attributes.get("ce-time"), "ce-time")
    event = _checked(lambda: from_binary(HTTPMessage(attributes, b""), JSONFormat(), CloudEvent), "ce-")
    is_json = not media_type or JSON_TYPE.fullmatch(media_type)
    data: Any = None
    if body:
        data = _json(body, "data", limits, reader.data) if is_json else body
    return Received(event.get_id(), event.get_type(), data)


def _structured(body: bytes, limits: EventLimits, reader: JsonReader) -> Received:
    envelope = _json(body, "body", limits, reader.envelope)
    if not isinstance(envelope, dict):
        raise UnreadableEvent("a structured CloudEvent is one JSON object", "body")
    members = {name: value for name, value in envelope.items() if value is not None}
    if "data" in members and "data_base64" in members:
        raise UnreadableEvent("cannot be set together with data", "data_base64")
    attributes = {name: value for name, value in members.items() if name not in {"data", "data_base64"}}
    _check_lengths(attributes, limits)
    for name in REQUIRED:
        _check_required(attributes.get(name), name, name)
    for name, value in attributes.items():
        _check_type(name, value)
    _check_time(attributes.get("time"), "time")
    media_type = attributes.get("datacontenttype")
    if media_type and not MEDIA_TYPE.fullmatch(media_type):
        raise UnreadableEvent(f"{shown(media_type)} is not a media type", "datacontenttype")
    # Without the data, which is parsed already and may be large.
    event = _checked(lambda: JSONFormat().read(CloudEvent, json.dumps(attributes)), "")
    return Received(event.get_id(), event.get_type(), _structured_data(members, limits, reader), members)


def _structured_data(members: Mapping[str, Any], limits: EventLimits, reader: JsonReader) -> Any:
    if "data_base64" not in members:
        return members.get("data")
    try:
        data = base64.b64decode(members["data_base64"], validate=True)
    except (ValueError, TypeError):
        raise UnreadableEvent("is not base64", "data_base64") from None
    media_type = _media_type(members.get("datacontenttype", "application/json"))
    return _json(data, "data_base64", limits, reader.data) if JSON_TYPE.fullmatch(media_type) else data


def _check_required(value: Any, name: str, path: str) -> None:
    if value is None:
        raise UnreadableEvent("is missing", path)
    if not value:
        raise UnreadableEvent("is empty", path)
    if name == "specversion" and value != "1.0":
        raise UnreadableEvent(f'must be "1.0", not {shown(value)}', path)


def _check_lengths(attributes: Mapping[str, Any], limits: EventLimits) -> None:
    if len(attributes) > MOST_ATTRIBUTES:
        name = next(iter(attributes))
        raise UnreadableEvent(
            f"is one of {len(attributes)} attributes, more than {MOST_ATTRIBUTES}", name[:64]
        )
    for name, value in attributes.items():
        if max(len(name), len(value) if isinstance(value, str) else 0) > limits.attribute:
            raise UnreadableEvent(
                f"is longer than {limits.attribute} characters (MUSTER_ATTRIBUTE_LIMIT)", name[:64]
            )


def _check_escapes(headers: Mapping[str, str]) -> None:
    escapes = {name: value.count("%") for name, value in headers.items()}
    if (total := sum(escapes.values())) > MOST_ESCAPES:
        name = max(escapes, key=escapes.__getitem__)
        raise UnreadableEvent(
            f"is one of the headers with {total} percent signs together, more than {MOST_ESCAPES}", name[:64]
        )


def _check_type(name: str, value: Any) -> None:
    if name in TEXT_ATTRIBUTES and not isinstance(value, str):
        raise UnreadableEvent(f"must be a string, not {shown(value)}", name)
    if not isinstance(value, str | int) or isinstance(value, FloatText):
        raise UnreadableEvent("an attribute is a string, an integer or a boolean", name)
    if isinstance(value, int) and value not in INTEGERS:
        raise UnreadableEvent("an integer has 32 bits", name)


def _check_time(value: str | None, path: str) -> None:
    if value and not TIME.fullmatch(value):
        raise UnreadableEvent("is not an RFC 3339 time", path)


def _checked(read: Callable[[], BaseCloudEvent], prefix: str) -> BaseCloudEvent:
    try:
        event = read()
    except CloudEventValidationError as error:
        name, failures = next(iter(error.errors.items()))
        raise UnreadableEvent(str(failures[0]), f"{prefix}{name}") from None
    except (ValueError, OverflowError):
        # The time is the only attribute that the SDK parses; 9999-12-31T24:00:00Z is in the year 10,000.
        raise UnreadableEvent("is not an RFC 3339 time", f"{prefix}time") from None
    for name, value in event.get_attributes().items():
        if isinstance(value, str) and FORBIDDEN.search(value):
            raise UnreadableEvent("has a control character or an unpaired surrogate", f"{prefix}{name}")
    return event


def _json(body: bytes, path: str, limits: EventLimits, read: Callable[[str], Any]) -> Any:
    structure = structure_of(body, limits.values)
    if separators(structure) >= limits.values:
        raise UnreadableEvent(
            f"has more than {limits.values} JSON values (MUSTER_BODY_LIMIT_VALUES)",
            path,
        )
    brackets, most = brackets_of(structure), FREE_CONTAINERS + len(body) // BYTES_OF_CONTAINER
    if brackets.count(b"[") > most:
        raise UnreadableEvent(f"has more than {most} objects and lists in {len(body)} bytes", path)
    try:
        value = read(body.decode())
    except UnicodeDecodeError as error:
        raise UnreadableEvent(f"is not UTF-8 at byte {error.start}", path) from None
    except json.JSONDecodeError as error:
        raise UnreadableEvent(f"is not JSON: {error.msg} at character {error.pos}", path) from None
    except RecursionError:
        raise UnreadableEvent("is nested too deeply", path) from None
    except ValueError as error:
        # An integer of thousands of digits, which Python refuses to convert.
        raise UnreadableEvent(f"is not valid JSON: {error}", path) from None
    if is_deeper(brackets, DEPTH_LIMIT):
        raise UnreadableEvent("is nested too deeply", path)
    return value


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def shown(value: Any) -> str:
    """Return a value as JSON for a message, cut to 80 characters."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - the width of a terminal
