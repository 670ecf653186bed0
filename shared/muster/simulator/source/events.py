"""What ApiServerSource sends about a Kubernetes object, byte for byte where bytes matter.

As `pkg/adapter/apiserver/events/events.go` of knative.dev/eventing v0.47.0 makes it.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from muster.objects.resources import Resource, guess_plural

Object = dict[str, Any]


class Mode(StrEnum):
    """What the data of an event is: the whole object, or only what finds it."""

    RESOURCE = "Resource"
    REFERENCE = "Reference"


class Verb(StrEnum):
    """What happened, as the event's type says it."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


_TYPES = {Mode.RESOURCE: "dev.knative.apiserver.resource", Mode.REFERENCE: "dev.knative.apiserver.ref"}


def to_event(verb: Verb, found: Object, mode: Mode, source: str) -> tuple[dict[str, str], bytes]:
    """The headers and body of the event about an object, in binary mode.

    `Ce-Id` and `Ce-Time` are left to the sender, since each sending has its own. `Ce-Namespace` is there and
    empty for cluster-scoped objects, and the subject then has `namespaces//`, as the adapter sends it.

    Args:
        verb: what happened.
        found: the object as a watch gives it.
        mode: whether the data is the object or a reference to it.
        source: URL of the API server.
    """
    api_version, kind = found["apiVersion"], found["kind"]
    name, namespace = found["metadata"]["name"], found["metadata"].get("namespace", "")
    headers = {
        "Ce-Specversion": "1.0",
        "Ce-Type": f"{_TYPES[mode]}.{verb}",
        "Ce-Source": source,
        "Ce-Subject": f"/apis/{api_version}/namespaces/{namespace}/{guess_plural(kind)}/{name}",
        "Ce-Apiversion": api_version,
        "Ce-Kind": kind,
        "Ce-Name": name,
        "Ce-Namespace": namespace,
        "Content-Type": "application/json",
    }
    data = found if mode is Mode.RESOURCE else _reference(api_version, kind, name, namespace)
    return headers, json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()


def guess_resource(api_version: str, kind: str, *, namespaced: bool = True) -> Resource:
    """Where objects of a kind live, by the same naive rule by which the source's controller finds them."""
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, guess_plural(kind), kind, namespaced=namespaced)


def _reference(api_version: str, kind: str, name: str, namespace: str) -> dict[str, str]:
    where = {"namespace": namespace} if namespace else {}
    return {"kind": kind, **where, "name": name, "apiVersion": api_version}
