"""The CloudEvents that ApiServerSource sends about Kubernetes objects.

Headers and body are those of `pkg/adapter/apiserver/events/events.go` of knative.dev/eventing v0.47.0.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from muster.objects.resources import Resource, guess_plural

Object = dict[str, Any]


class Mode(StrEnum):
    """The data of an event: the object, or a reference to it (`spec.mode`)."""

    RESOURCE = "Resource"
    REFERENCE = "Reference"


class ChangeType(StrEnum):
    """The last part of an event's type."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


_TYPES = {Mode.RESOURCE: "dev.knative.apiserver.resource", Mode.REFERENCE: "dev.knative.apiserver.ref"}


def to_event(change: ChangeType, item: Object, mode: Mode, source: str) -> tuple[dict[str, str], bytes]:
    """Return the headers and body of the event about an object, in binary mode.

    The sender adds `Ce-Id` and `Ce-Time`. For cluster-scoped objects `Ce-Namespace` is empty and the subject
    contains `namespaces//`, as the adapter sends them.

    Args:
        change: the type of the change.
        item: the object as a watch returns it.
        mode: whether the data is the object or a reference to it.
        source: URL of the API server.
    """
    api_version, kind = item["apiVersion"], item["kind"]
    name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "")
    headers = {
        "Ce-Specversion": "1.0",
        "Ce-Type": f"{_TYPES[mode]}.{change}",
        "Ce-Source": source,
        "Ce-Subject": f"/apis/{api_version}/namespaces/{namespace}/{guess_plural(kind)}/{name}",
        "Ce-Apiversion": api_version,
        "Ce-Kind": kind,
        "Ce-Name": name,
        "Ce-Namespace": namespace,
        "Content-Type": "application/json",
    }
    data = item if mode is Mode.RESOURCE else _reference(api_version, kind, name, namespace)
    return headers, json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()


def guess_resource(api_version: str, kind: str, *, namespaced: bool = True) -> Resource:
    """Return the resource of a kind, guessing the plural as the controller of ApiServerSource does."""
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, guess_plural(kind), kind, namespaced=namespaced)


def _reference(api_version: str, kind: str, name: str, namespace: str) -> dict[str, str]:
    namespaced = {"namespace": namespace} if namespace else {}
    return {"kind": kind, **namespaced, "name": name, "apiVersion": api_version}
