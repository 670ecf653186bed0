"""Objects of Knative Eventing, read from manifests as an API server would store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.kustomize import Manifest, UnsupportedManifestError
from muster.objects.text import cut_to
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.validation.names import dns_label
from muster.simulator.typed import faults

_STRING: Schema = {"type": "string"}
_STRINGS: Schema = {"type": "object", "additionalProperties": _STRING}
_SELECTOR: Schema = {
    "type": "object",
    "properties": {
        "matchLabels": _STRINGS,
        "matchExpressions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["key", "operator"],
                "properties": {
                    **dict.fromkeys(("key", "operator"), _STRING),
                    "values": {"type": "array", "items": _STRING},
                },
            },
        },
    },
}
_DESTINATION: Schema = {"type": "object", "properties": {"ref": _STRINGS, "uri": _STRING}}
_OVERRIDES: Schema = {"type": "object", "properties": {"extensions": _STRINGS}}
_DELIVERY: Schema = {
    "type": "object",
    "properties": {
        "retry": {"type": "integer", "format": "int32"},
        **dict.fromkeys(("backoffPolicy", "backoffDelay", "timeout", "retryAfterMax", "format"), _STRING),
        "deadLetterSink": _DESTINATION,
    },
}
_FILTER: Schema = {
    "type": "object",
    "properties": {**dict.fromkeys(("exact", "prefix", "suffix"), _STRINGS), "cesql": _STRING},
}
_FILTERS: Schema = {"type": "array", "items": _FILTER}
_FILTER["properties"].update({"all": _FILTERS, "any": _FILTERS, "not": _FILTER})


def _of_spec(**properties: Schema) -> Schema:
    return {"properties": {"spec": {"type": "object", "properties": properties}}}


_SCHEMAS: Mapping[str, Schema] = {
    "Broker": _of_spec(delivery=_DELIVERY),
    "Trigger": _of_spec(
        broker=_STRING,
        subscriber=_DESTINATION,
        delivery=_DELIVERY,
        filter={"type": "object", "properties": {"attributes": _STRINGS}},
        filters=_FILTERS,
    ),
    "PingSource": _of_spec(
        **dict.fromkeys(("schedule", "timezone", "data", "contentType"), _STRING),
        sink=_DESTINATION,
        ceOverrides=_OVERRIDES,
    ),
    "ApiServerSource": _of_spec(
        **dict.fromkeys(("mode", "serviceAccountName"), _STRING),
        sink=_DESTINATION,
        ceOverrides=_OVERRIDES,
        namespaceSelector=_SELECTOR,
        resources={
            "type": "array",
            "items": {
                "type": "object",
                "required": ["apiVersion", "kind"],
                "properties": {**dict.fromkeys(("apiVersion", "kind"), _STRING), "selector": _SELECTOR},
            },
        },
    ),
}
"""What is read of each kind, as in config/core/resources of knative.dev/eventing v0.47.0."""

_REQUIRED: Mapping[str, Mapping[str, type]] = {
    "Broker": {},
    "Trigger": {"broker": str, "subscriber": dict},
    "PingSource": {"sink": dict},
    "ApiServerSource": {"resources": list},
}
"""The fields that the specs of these kinds must have."""
_WORDS: Mapping[type, str] = {str: "string", dict: "mapping", list: "list"}


def stored(manifest: Manifest) -> Manifest:
    """Return a Broker, Trigger, PingSource or ApiServerSource with a spec and without fields that are null.

    Raises:
        UnsupportedManifestError: a field is missing or has a wrong type, or its namespace is none.
    """
    kind, metadata = manifest["kind"], manifest.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(name := metadata.get("name"), str):
        raise UnsupportedManifestError(f"{kind}: metadata.name: must be a string")
    about = f"{kind} {cut_to(name, 253)}"
    namespace = metadata.get("namespace")
    if not isinstance(namespace, str):
        raise UnsupportedManifestError(f"{about}: metadata.namespace: must be a string")
    if wrong := dns_label(namespace):
        raise UnsupportedManifestError(f"{about}: metadata.namespace: {wrong[0]}")
    result: Manifest = {**_without_nulls(manifest)}
    spec = result.setdefault("spec", {})
    for field, wanted in _REQUIRED[kind].items():
        if not isinstance(spec, dict) or not isinstance(spec.get(field), wanted):
            raise UnsupportedManifestError(f"{about}: spec.{field}: must be a {_WORDS[wanted]}")
    for path, message in faults(result, _SCHEMAS[kind], ""):
        raise UnsupportedManifestError(f"{about}: {path}: {message}")
    return result


def _without_nulls(value: Any) -> Any:
    """Return data without fields that are null, and with {} for null in a list, as Go reads them."""
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [{} if entry is None else _without_nulls(entry) for entry in value]
    return value
