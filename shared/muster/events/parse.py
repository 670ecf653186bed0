"""What an event means: something happened to an object, sweep, or none of our business.

Types and data as Knative's ApiServerSource sends them (knative/eventing v0.47,
pkg/adapter/apiserver/events/events.go): `dev.knative.apiserver.resource.*` carries the whole object,
`dev.knative.apiserver.ref.*` its apiVersion, kind, namespace and name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from muster.events.cloudevent import Received, UnreadableEvent, receive, shown
from muster.events.model import Event, Foreign, Happened, ResourceEvent, Sweep
from muster.objects.meta import ObjectRef
from muster.objects.resources import NAME

__all__ = ["SWEEPS", "UnreadableEvent", "parse"]

SWEEPS = frozenset({"dev.muster.sweep", "dev.knative.sources.ping"})
"""The types that mean: look at everything you are responsible for. Their data is not read."""

RESOURCE_TYPE = re.compile(r"dev\.knative\.apiserver\.(resource|ref)\.(add|update|delete)")

# What ends up in a URL path is held to what Kubernetes lets be a name, so that no event leads elsewhere.
API_VERSION = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[a-z0-9]+")
KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
NAMESPACE = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?")
UID = re.compile(r"[A-Za-z0-9-]{0,64}")


def parse(headers: Mapping[str, str], body: bytes) -> Event:
    """The event in a request, in binary or structured mode.

    The extensions `kind`, `name`, `namespace` and `apiversion` are not read: brokers filter by them, and a
    source's ceOverrides may have replaced them, while the data is what the API server said. Where they
    disagree the data is right, and a step reads the live object before it writes anyway.

    Raises:
        UnreadableEvent: the request is no CloudEvent 1.0, or an ApiServerSource event without its object.
    """
    event = receive(headers, body)
    if event.type in SWEEPS:
        return Sweep(event.id)
    matched = RESOURCE_TYPE.fullmatch(event.type)
    if matched is None:
        return Foreign(event.id, event.type)
    mode, happened = matched.groups()
    return _resource_event(event, Happened(happened), whole=mode == "resource")


def _resource_event(event: Received, happened: Happened, *, whole: bool) -> ResourceEvent:
    data = named = _object(event.data, "data")
    place = "data"
    if whole:
        place = "data.metadata"
        named = _object(data.get("metadata"), place)
    ref = ObjectRef(
        api_version=_text(data, "data", "apiVersion", API_VERSION),
        kind=_text(data, "data", "kind", KIND),
        namespace=_text(named, place, "namespace", NAMESPACE, optional=True),
        name=_text(named, place, "name", NAME),
        uid=_text(named, place, "uid", UID, optional=True),
    )
    return ResourceEvent(event.id, happened, ref, data if whole else None)


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        raise UnreadableEvent("is missing", path)
    if not isinstance(value, dict):
        raise UnreadableEvent("must be a JSON object", path)
    return value


def _text(
    holder: Mapping[str, Any], place: str, field: str, pattern: re.Pattern[str], *, optional: bool = False
) -> str:
    value = holder.get(field)
    path = f"{place}.{field}"
    if value is None:
        if optional:
            return ""
        raise UnreadableEvent("is missing", path)
    if not isinstance(value, str):
        raise UnreadableEvent(f"must be a string, not {shown(value)}", path)
    if not pattern.fullmatch(value):
        raise UnreadableEvent(f"{shown(value)} cannot be the {field} of a Kubernetes object", path)
    return value
