"""CloudEvents as a broker handles them: attributes and opaque data.

The `cloudevents` package is not used, because it fills in missing attributes, which a broker must refuse, and
parses the data, which a broker must not change. Reading an event and validating it are two steps, since
Knative answers differently to replies that fail them. Not there: batches, and binary data in structured mode.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

STRUCTURED = "application/cloudevents+json"


class NotAnEventError(ValueError):
    """The message is not a valid CloudEvent."""


@dataclass(frozen=True)
class CloudEvent:
    """A CloudEvent: attributes by lower-case name with the values of HTTP headers, and the unparsed body."""

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
        kind = media_type(self["datacontenttype"])
        if not kind or kind.endswith(("/json", "+json")):
            return {**self.attributes, "data": json.loads(self.data)}
        return {**self.attributes, "data_base64": base64.b64encode(self.data).decode()}

    def validate(self) -> None:
        """Raise NotAnEventError unless all required attributes are there."""
        if missing := [name for name in ("id", "source", "type") if not self[name]]:
            raise NotAnEventError(f"no {', '.join(missing)}")

    @classmethod
    def read(cls, headers: Mapping[str, str], body: bytes) -> Self:
        """Parse the event of a request or response, in binary or structured mode, without validating it."""
        named = {name.lower(): value for name, value in headers.items()}
        if media_type(named.get("content-type", "")) == STRUCTURED:
            try:
                return cls._of_json(json.loads(body))
            except ValueError as error:
                raise NotAnEventError(f"broken JSON: {error}") from error
        attributes = {name[3:]: value for name, value in named.items() if name.startswith("ce-")}
        if content_type := named.get("content-type"):
            attributes["datacontenttype"] = content_type
        return cls(_checked(attributes), body)

    @classmethod
    def from_http(cls, headers: Mapping[str, str], body: bytes) -> Self:
        """Parse and validate the event of a request or response, in binary or structured mode."""
        event = cls.read(headers, body)
        event.validate()
        return event

    @classmethod
    def _of_json(cls, event: Any) -> Self:
        if not isinstance(event, Mapping):
            raise NotAnEventError("a structured event is one JSON object")
        members = {name: value for name, value in event.items() if value is not None}
        data = members.pop("data", None)
        attributes = _checked({name.lower(): str(value) for name, value in members.items()})
        return cls(attributes, b"" if data is None else json.dumps(data, separators=(",", ":")).encode())


def is_event(headers: Mapping[str, str]) -> bool:
    """Whether the headers of a response are those of a CloudEvent; other responses must have no body."""
    named = {name.lower(): value for name, value in headers.items()}
    is_structured = media_type(named.get("content-type", "")) == STRUCTURED
    return is_structured or named.get("ce-specversion") == "1.0"


def media_type(content_type: str) -> str:
    """Return the media type of a content type in lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def _checked(attributes: dict[str, str]) -> dict[str, str]:
    """Return attributes of a known version without empty optional ones."""
    if attributes.get("specversion") != "1.0":
        raise NotAnEventError("no specversion 1.0, and no content type application/cloudevents+json")
    return {name: value for name, value in attributes.items() if value or name != "subject"}
