"""Reading of events: the change of an object, a sweep, or another event.

Types and data are those of Knative's ApiServerSource (v0.47, pkg/adapter/apiserver/events/events.go).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.http import HTTPMessage, from_binary, from_structured
from cloudevents.core.exceptions import CloudEventValidationError
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from muster.objects.meta import ObjectRef
from muster.objects.resources import NAME

STRUCTURED = JSONFormat.CONTENT_TYPE
SWEEP = re.compile(r"dev\.muster\.sweep|dev\.knative\.sources\.ping|dev\.muster\.\w+\.swept")
"""The types of sweep events, and of replies to a sweep after which the next step sweeps; no data is read."""

RESOURCE_TYPE = re.compile(r"dev\.knative\.apiserver\.(resource|ref)\.(add|update|delete)")

# What gets into a URL path must be a valid name of Kubernetes, so that it cannot change the path.
API_VERSION = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[a-z0-9]+")
KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
NAMESPACE = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?")
UID = re.compile(r"[A-Za-z0-9-]{0,64}")


class Happened(StrEnum):
    """The last part of the type of an ApiServerSource event."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class ResourceEvent:
    """A change of an object. Only a hint: the object may have changed again since.

    In Reference mode `ref` is without UID, and `object`, its state at the time of the event, is None.
    """

    id: str
    happened: Happened
    ref: ObjectRef
    object: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Sweep:
    """A request to run the step on all objects of its kinds."""

    id: str


@dataclass(frozen=True)
class OtherEvent:
    """A CloudEvent of another type, such as a reply event; `data` is parsed if it is JSON."""

    id: str
    type: str
    data: Any = None


Event = ResourceEvent | Sweep | OtherEvent


class UnreadableEvent(ValueError):
    """The request is no valid CloudEvent, or has invalid data; sending it again would not help."""

    def __init__(self, message: str, path: str) -> None:
        """Create the error about a header or field as the sender wrote it: `ce-id`, `data.metadata.name`."""
        super().__init__(f"{path}: {message}")


def receive(headers: Mapping[str, str], body: bytes) -> BaseCloudEvent:
    """Return the CloudEvent of a request, in binary or structured mode."""
    message = HTTPMessage({name.lower(): value for name, value in headers.items()}, body)
    # from_http looks for ce- headers, not at the content type (cloudevents/sdk-python issue 63).
    is_structured = message.headers.get("content-type", "").lower().startswith(STRUCTURED)
    read, prefix = (from_structured, "") if is_structured else (from_binary, "ce-")
    try:
        return read(message, JSONFormat(), CloudEvent)
    except CloudEventValidationError as error:
        name, failures = next(iter(error.errors.items()))
        raise UnreadableEvent(str(failures[0]), f"{prefix}{name}") from None
    except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError) as error:
        # What is no JSON object or no time is not checked there (cloudevents/sdk-python issue 116).
        path = "body" if is_structured else "ce-time"
        raise UnreadableEvent(f"cannot be read: {error}", path) from None


def parse(headers: Mapping[str, str], body: bytes) -> Event:
    """Return the event of a request, in binary or structured mode.

    The object is taken from the data, not from the extensions `kind`, `name`, `namespace` and `apiversion`,
    which a source's ceOverrides may have replaced.

    Raises:
        UnreadableEvent: the request is no CloudEvent 1.0, or an ApiServerSource event without its object.
    """
    event = receive(headers, body)
    if SWEEP.fullmatch(event.get_type()):
        return Sweep(event.get_id())
    matched = RESOURCE_TYPE.fullmatch(event.get_type())
    if matched is None:
        return OtherEvent(event.get_id(), event.get_type(), event.get_data())
    mode, happened = matched.groups()
    data = metadata = _object(event.get_data(), "data")
    path = "data"
    if mode == "resource":
        path = "data.metadata"
        metadata = _object(data.get("metadata"), path)
    ref = _ref(data, metadata, "data", path)
    return ResourceEvent(event.get_id(), Happened(happened), ref, data if mode == "resource" else None)


def owner_of(event: OtherEvent) -> ObjectRef:
    """Return the object that a reply event of a step is about: `owner` of its data."""
    owner = _object(_object(event.data, "data").get("owner"), "data.owner")
    return _ref(owner, owner, "data.owner", "data.owner")


def _ref(kinds: Mapping[str, Any], names: dict[str, Any], kinds_path: str, names_path: str) -> ObjectRef:
    return ObjectRef(
        _text(kinds, kinds_path, "apiVersion", API_VERSION),
        _text(kinds, kinds_path, "kind", KIND),
        _text({"namespace": ""} | names, names_path, "namespace", NAMESPACE),
        _text(names, names_path, "name", NAME),
        _text({"uid": ""} | names, names_path, "uid", UID),
    )


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableEvent("is missing" if value is None else "must be a JSON object", path)
    return value


def _text(holder: Mapping[str, Any], holder_path: str, field: str, pattern: re.Pattern[str]) -> str:
    value, path = holder.get(field), f"{holder_path}.{field}"
    if value is None:
        raise UnreadableEvent("is missing", path)
    shown = json.dumps(value)[:80]
    if not isinstance(value, str):
        raise UnreadableEvent(f"must be a string, not {shown}", path)
    if not pattern.fullmatch(value):
        raise UnreadableEvent(f"{shown} cannot be the {field} of a Kubernetes object", path)
    return value
