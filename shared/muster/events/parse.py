"""Parsing of events: the change of an object, a sweep, or another event.

Types and data as Knative's ApiServerSource sends them (knative/eventing v0.47,
pkg/adapter/apiserver/events/events.go): `dev.knative.apiserver.resource.*` carries the whole object,
`dev.knative.apiserver.ref.*` its apiVersion, kind, namespace and name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from muster.events.cloudevent import (
    PARSED,
    UNLIMITED,
    EventLimits,
    JsonReader,
    Received,
    UnreadableEvent,
    receive,
    shown,
)
from muster.events.model import Event, Happened, OtherEvent, ResourceEvent, Sweep
from muster.objects.meta import ObjectRef
from muster.objects.resources import NAME

__all__ = ["SWEEPS", "UnreadableEvent", "owner_of", "parse"]

SWEEPS = frozenset({"dev.muster.sweep", "dev.knative.sources.ping"})
"""The types of sweep events; their data is not read."""

RESOURCE_TYPE = re.compile(r"dev\.knative\.apiserver\.(resource|ref)\.(add|update|delete)")

# Everything that gets into a URL path must be a valid name of Kubernetes, so that it cannot change the path.
API_VERSION = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[a-z0-9]+")
KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
NAMESPACE = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?")
UID = re.compile(r"[A-Za-z0-9-]{0,64}")


def parse(
    headers: Mapping[str, str], body: bytes, limits: EventLimits = UNLIMITED, reader: JsonReader = PARSED
) -> Event:
    """Return the event of a request, in binary or structured mode.

    The object is taken from the data, not from the extensions `kind`, `name`, `namespace` and `apiversion`,
    which a source's ceOverrides may have replaced.

    Raises:
        UnreadableEvent: the request is no CloudEvent 1.0, or an ApiServerSource event without its object.
    """
    event = receive(headers, body, limits, reader)
    if event.type in SWEEPS:
        return Sweep(event.id)
    matched = RESOURCE_TYPE.fullmatch(event.type)
    if matched is None:
        return OtherEvent(event.id, event.type, event.data)
    mode, happened = matched.groups()
    return _resource_event(event, Happened(happened), with_object=mode == "resource")


def owner_of(event: OtherEvent) -> ObjectRef:
    """Return the object that a reply event of a step is about: `owner` of its data (`muster.events.reply`).

    Raises:
        UnreadableEvent: the event has no such data.
    """
    owner = _object(_object(event.data, "data").get("owner"), "data.owner")
    return _ref(owner, owner, "data.owner", "data.owner")


def _resource_event(event: Received, happened: Happened, *, with_object: bool) -> ResourceEvent:
    data = metadata = _object(event.data, "data")
    metadata_path = "data"
    if with_object:
        metadata_path = "data.metadata"
        metadata = _object(data.get("metadata"), metadata_path)
    ref = _ref(data, metadata, "data", metadata_path)
    return ResourceEvent(event.id, happened, ref, data if with_object else None)


def _ref(kinds: Mapping[str, Any], names: Mapping[str, Any], kinds_path: str, names_path: str) -> ObjectRef:
    return ObjectRef(
        api_version=_text(kinds, kinds_path, "apiVersion", API_VERSION),
        kind=_text(kinds, kinds_path, "kind", KIND),
        namespace=_text(names, names_path, "namespace", NAMESPACE, optional=True),
        name=_text(names, names_path, "name", NAME),
        uid=_text(names, names_path, "uid", UID, optional=True),
    )


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        raise UnreadableEvent("is missing", path)
    if not isinstance(value, dict):
        raise UnreadableEvent("must be a JSON object", path)
    return value


def _text(
    holder: Mapping[str, Any],
    holder_path: str,
    field: str,
    pattern: re.Pattern[str],
    *,
    optional: bool = False,
) -> str:
    value = holder.get(field)
    path = f"{holder_path}.{field}"
    if value is None:
        if optional:
            return ""
        raise UnreadableEvent("is missing", path)
    if not isinstance(value, str):
        raise UnreadableEvent(f"must be a string, not {shown(value)}", path)
    if not pattern.fullmatch(value):
        raise UnreadableEvent(f"{shown(value)} cannot be the {field} of a Kubernetes object", path)
    return value
