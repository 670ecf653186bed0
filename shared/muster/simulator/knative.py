"""Objects of Knative Eventing, read from manifests as an API server would store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.kustomize import Manifest, UnsupportedManifestError
from muster.objects.text import cut_to
from muster.simulator.apiserver.validation.names import dns_label
from muster.simulator.typed import OF_KNATIVE, faults

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
        UnsupportedManifestError: a field is missing or has a wrong type, or the namespace is no DNS label.
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
    result: Manifest = _without_nulls(manifest)
    spec = result.setdefault("spec", {})
    for field, wanted in _REQUIRED[kind].items():
        if not isinstance(spec, dict) or not isinstance(spec.get(field), wanted):
            raise UnsupportedManifestError(f"{about}: spec.{field}: must be a {_WORDS[wanted]}")
    for path, message in faults(result, OF_KNATIVE[kind], ""):
        raise UnsupportedManifestError(": ".join(filter(None, (about, path, message))))
    return result


def _without_nulls(value: Any) -> Any:
    """Return data without fields that are null, and with {} for null in a list, as Go reads them."""
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [{} if entry is None else _without_nulls(entry) for entry in value]
    return value
