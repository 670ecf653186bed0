"""CloudEvents as a broker handles them: attributes and opaque data.

The `cloudevents` package is not used, because it fills in missing attributes (id, time, specversion), which a
broker must refuse, and parses the data, which a broker must not change. The rules are those of the
CloudEvents 1.0 HTTP binding as github.com/cloudevents/sdk-go/v2 2.16.1 has them: reading an event
(`ToEvent`) and validating it (`Event.Validate`) are two steps, since Knative answers differently to replies
that fail them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.objects.text import json_bytes
from muster.simulator.broker import structured
from muster.simulator.broker.attributes import (
    VERSIONS,
    NotAnEventError,
    extension_name,
    media_type,
    parsed,
    problem,
    well_formed,
)

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"


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
        """Return the headers of binary mode, in Go's canonical form (`Ce-Id`)."""
        named = {f"Ce-{name.capitalize()}": value for name, value in self.attributes.items()}
        content_type = named.pop("Ce-Datacontenttype", "")
        return {**named, "Content-Type": content_type} if content_type else named

    def structured(self) -> dict[str, Any]:
        """Return the event as a JSON object, as in recordings and dead letters."""
        if not self.data:
            return dict(self.attributes)
        if structured.is_json(self["datacontenttype"]):
            return {**self.attributes, "data": json.loads(self.data)}
        return {**self.attributes, "data_base64": base64.b64encode(self.data).decode()}

    def validate(self) -> None:
        """Check that all required attributes are there and the others are valid.

        Raises:
            NotAnEventError: they are not.
        """
        if reason := problem(self.attributes):
            raise NotAnEventError(reason)

    @classmethod
    def read(cls, headers: Mapping[str, str], body: bytes) -> CloudEvent:
        """Parse the event of a request or response, in binary or structured mode, without validating it.

        Raises:
            NotAnEventError: neither mode, a batch, invalid JSON, or an attribute that cannot be parsed.
        """
        named = {name.lower(): value for name, value in headers.items()}
        kind = media_type(named.get("content-type", ""))
        if kind == BATCH:
            raise NotAnEventError("a batch of events: send them one by one")
        if kind == STRUCTURED:
            attributes, data = structured.read(body)
            return cls(parsed(attributes), data)
        if "ce-specversion" not in named:
            raise NotAnEventError(
                "neither a ce-specversion header nor content type application/cloudevents+json"
            )
        attributes = {
            extension_name(name[3:]): value for name, value in named.items() if name.startswith("ce-")
        }
        if named.get("content-type"):
            attributes["datacontenttype"] = named["content-type"]
        return cls(parsed(attributes), body)

    @classmethod
    def from_http(cls, headers: Mapping[str, str], body: bytes) -> CloudEvent:
        """Parse and validate the event of a request or response, in binary or structured mode.

        Raises:
            NotAnEventError: it cannot be read, or an attribute is missing or invalid.
        """
        event = cls.read(headers, body)
        event.validate()
        return event

    @classmethod
    def from_structured(cls, event: Mapping[str, Any]) -> CloudEvent:
        """Parse and validate the event of a JSON object (CloudEvents JSON format, section 3).

        Raises:
            NotAnEventError: an attribute is missing or invalid, or data_base64 is invalid.
        """
        members = {name: value for name, value in event.items() if name not in ("data", "data_base64")}
        attributes = parsed(structured.attributes_of(members))
        result = cls(attributes, _data(event, attributes.get("datacontenttype", "")))
        result.validate()
        return result


def is_event(headers: Mapping[str, str]) -> bool:
    """Whether the headers of a response are those of a CloudEvent; other responses must have no body."""
    named = {name.lower(): value for name, value in headers.items()}
    kind = media_type(named.get("content-type", ""))
    return kind in (STRUCTURED, BATCH) or named.get("ce-specversion", "") in VERSIONS


def _data(event: Mapping[str, Any], content_type: str) -> bytes:
    if "data_base64" in event:
        return structured.decoded(event["data_base64"])
    if "data" not in event:
        return b""
    if isinstance(event["data"], str) and not structured.is_json(content_type):
        return well_formed(event["data"]).encode()
    return json_bytes(event["data"])
