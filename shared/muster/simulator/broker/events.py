"""CloudEvents as a broker handles them: attributes and opaque data.

The `cloudevents` package is not used, because it fills in missing attributes (id, time, specversion), which a
broker must refuse, and parses the data, which a broker must not change. The rules are those of the
CloudEvents 1.0 HTTP binding; the mode of a message is detected as in github.com/cloudevents/sdk-go/v2
`Message.ReadEncoding`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REQUIRED = ("specversion", "id", "source", "type")
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"


class NotAnEventError(ValueError):
    """The message is not a valid CloudEvent."""


@dataclass(frozen=True)
class CloudEvent:
    """A CloudEvent.

    Attributes:
        attributes: context attributes and extensions by lower-case name, with the values of HTTP headers.
        data: the body in binary mode, unparsed.
    """

    attributes: Mapping[str, str]
    data: bytes = b""

    def __getitem__(self, name: str) -> str:
        return self.attributes.get(name, "")

    def with_attributes(self, **changed: str) -> CloudEvent:
        """Return a copy with these attributes set."""
        return CloudEvent({**self.attributes, **changed}, self.data)

    def without(self, name: str) -> CloudEvent:
        """Return a copy without an attribute."""
        return CloudEvent({key: value for key, value in self.attributes.items() if key != name}, self.data)

    def headers(self) -> dict[str, str]:
        """The headers of binary mode, in Go's canonical form (`Ce-Id`)."""
        named = {f"Ce-{name.capitalize()}": value for name, value in self.attributes.items()}
        content_type = named.pop("Ce-Datacontenttype", "")
        return {**named, "Content-Type": content_type} if content_type else named

    def structured(self) -> dict[str, Any]:
        """The event as a JSON object, as in recordings and dead letters."""
        if not self.data:
            return dict(self.attributes)
        if _is_json(self["datacontenttype"]):
            return {**self.attributes, "data": json.loads(self.data)}
        return {**self.attributes, "data_base64": base64.b64encode(self.data).decode()}

    @classmethod
    def from_http(cls, headers: Mapping[str, str], body: bytes) -> CloudEvent:
        """Parse the event of a request or response, in binary or structured mode.

        Raises:
            NotAnEventError: neither mode, a batch, invalid JSON, or a required attribute is missing or empty.
        """
        named = {name.lower(): value for name, value in headers.items()}
        content_type = named.get("content-type", "").partition(";")[0].strip().lower()
        if content_type == BATCH:
            raise NotAnEventError("a batch of events: send them one by one")
        if content_type == STRUCTURED:
            return cls.from_structured(_json_object(body))
        if "ce-specversion" not in named:
            raise NotAnEventError(
                "neither a ce-specversion header nor content type application/cloudevents+json"
            )
        attributes = {name[3:]: value for name, value in named.items() if name.startswith("ce-")}
        if named.get("content-type"):
            attributes["datacontenttype"] = named["content-type"]
        return cls(_checked(attributes), body)

    @classmethod
    def from_structured(cls, event: Mapping[str, Any]) -> CloudEvent:
        """Parse the event of a JSON object (CloudEvents JSON format, section 3).

        Raises:
            NotAnEventError: a required attribute is missing or empty, or data_base64 is invalid.
        """
        attributes = {
            name: _text(value)
            for name, value in event.items()
            if name not in ("data", "data_base64") and value is not None
        }
        return cls(_checked(attributes), _data(event, attributes.get("datacontenttype", "")))


def is_event(headers: Mapping[str, str]) -> bool:
    """Whether the headers of a response are those of a CloudEvent; other responses must have no body."""
    named = {name.lower(): value for name, value in headers.items()}
    content_type = named.get("content-type", "").lower()
    return "ce-specversion" in named or content_type.startswith("application/cloudevents")


def _checked(attributes: dict[str, str]) -> dict[str, str]:
    if missing := [name for name in REQUIRED if not attributes.get(name)]:
        raise NotAnEventError(f"no {', '.join(missing)}")
    if attributes["specversion"] != "1.0":
        raise NotAnEventError(f"specversion {attributes['specversion']!r} is not 1.0")
    return attributes


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError as error:
        raise NotAnEventError(f"broken JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise NotAnEventError("a structured event is one JSON object")
    return parsed


def _data(event: Mapping[str, Any], content_type: str) -> bytes:
    if "data_base64" in event:
        try:
            return base64.b64decode(event["data_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise NotAnEventError(f"data_base64: {error}") from error
    if "data" not in event:
        return b""
    if isinstance(event["data"], str) and not _is_json(content_type):
        return event["data"].encode()
    return json.dumps(event["data"], separators=(",", ":"), ensure_ascii=False).encode()


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type in ("", "application/json", "text/json") or media_type.endswith("+json")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
