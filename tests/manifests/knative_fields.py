"""The fields of Knative's kinds that eventing/ uses: an API server drops a misspelt one silently.

From the CRDs of knative/eventing v0.47. The stories with Knative apply what eventing/ has to the real thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Fields = dict[str, Any]
"""Fields of an object, or of each object of a list, and those below them; a leaf has none."""

LEAF: Fields = {}
REFERENCE: Fields = dict.fromkeys(("apiVersion", "kind", "name", "namespace"), LEAF)
DESTINATION: Fields = {"ref": REFERENCE, "uri": LEAF}
DELIVERY: Fields = {
    **dict.fromkeys(("retry", "backoffPolicy", "backoffDelay", "timeout"), LEAF),
    "deadLetterSink": DESTINATION,
}
FILTER: Fields = dict.fromkeys(("exact", "prefix", "suffix"), LEAF)
FILTER |= {"all": FILTER, "any": FILTER}
RESOURCE: Fields = dict.fromkeys(("apiVersion", "kind", "selector"), LEAF)
SPECS: dict[tuple[str, str], Fields] = {
    ("eventing.knative.dev/v1", "Broker"): {"delivery": DELIVERY},
    ("eventing.knative.dev/v1", "Trigger"): {
        "broker": LEAF,
        "filters": FILTER,
        "subscriber": DESTINATION,
        "delivery": DELIVERY,
    },
    ("eventing.knative.dev/v1alpha1", "EventPolicy"): {
        "to": {"ref": REFERENCE},
        "from": {"ref": REFERENCE, "sub": LEAF},
    },
    ("sources.knative.dev/v1", "ApiServerSource"): {
        **dict.fromkeys(("mode", "namespaceSelector", "serviceAccountName"), LEAF),
        "resources": RESOURCE,
        "sink": DESTINATION,
    },
    ("sources.knative.dev/v1", "PingSource"): {"schedule": LEAF, "sink": DESTINATION},
}
"""The spec of each kind, by apiVersion and kind."""


def unknown_fields(manifest: dict[str, Any]) -> list[str]:
    """Return the paths of the fields of a spec that Knative does not know."""
    return list(_unknown(manifest["spec"], SPECS[manifest["apiVersion"], manifest["kind"]], "spec"))


def _unknown(value: Any, known: Fields, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for entry in value:
            yield from _unknown(entry, known, path)
    elif isinstance(value, dict) and known:
        for name, below in value.items():
            if name in known:
                yield from _unknown(below, known[name], f"{path}.{name}")
            else:
                yield f"{path}.{name}"
