"""CloudEvents in structured mode: one JSON object with attributes and data.

As `event_unmarshal.go` of github.com/cloudevents/sdk-go/v2 2.16.1: JSON data is passed on as it was written.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from muster.objects.json_members import Member, members_of
from muster.simulator.broker.attributes import (
    NotAnEventError,
    extension_name,
    media_type,
    text_of,
    well_formed,
)

OWN_NAMES = frozenset(
    {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema"}
)
"""The attributes that must be strings."""

JSON_TYPES = frozenset({"", "application/json", "text/json"})
"""Media types of data that need not be a string in structured mode; the SDK leaves out those with +json."""


def read(body: bytes) -> tuple[dict[str, str], bytes]:
    """Return the attributes and data of an event in structured mode.

    Raises:
        NotAnEventError: the body is no JSON object, or an attribute or the data has an invalid type.
    """
    if body.lstrip()[:1] != b"{":
        raise NotAnEventError("a structured event is one JSON object")
    try:
        members = list(members_of(body.decode()))
    except ValueError as error:
        raise NotAnEventError(f"broken JSON: {error}") from error
    data = {member.name: member for member in members if member.name in ("data", "data_base64")}
    attributes = attributes_of({member.name: member.value for member in members if member.name not in data})
    return attributes, _data(data, attributes)


def attributes_of(members: dict[str, Any]) -> dict[str, str]:
    """Return the members of an event other than its data as text; those that are null are left out.

    Raises:
        NotAnEventError: a name or a value is invalid.
    """
    attributes = {}
    for name, value in members.items():
        if name in OWN_NAMES and not isinstance(value, str | None):
            raise NotAnEventError(f"{name}: {value!r} is no string")
        if value is not None:
            attributes[extension_name(name)] = text_of(name, value)
    return attributes


def is_json(content_type: str) -> bool:
    """Whether data of this content type is JSON by the CloudEvents JSON format."""
    kind = media_type(content_type)
    return kind in JSON_TYPES or kind.endswith("+json")


def decoded(text: Any) -> bytes:
    """Return the data of `data_base64`.

    Raises:
        NotAnEventError: it is no base64 text.
    """
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise NotAnEventError(f"data_base64: {error}") from error


def _data(data: dict[str, Member], attributes: dict[str, str]) -> bytes:
    if "data_base64" in data:
        return decoded(data["data_base64"].value)
    if "data" not in data:
        return b""
    if attributes.get("specversion") == "0.3" and attributes.pop("datacontentencoding", "") == "base64":
        return decoded(data["data"].value)
    if media_type(attributes.get("datacontenttype", "")) in JSON_TYPES:
        return data["data"].raw.encode()
    if not isinstance(data["data"].value, str):
        raise NotAnEventError("data: not a string, though its content type is not JSON")
    return well_formed(data["data"].value).encode()
