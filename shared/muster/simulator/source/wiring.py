"""What the YAML of an ApiServerSource says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.manifests import Manifest, UnsupportedManifestError
from muster.objects.resources import Resource
from muster.simulator.source.events import Mode, guess_resource

_KNOWN = {"mode", "namespaceSelector", "resources", "serviceAccountName", "sink", "ceOverrides"}


@dataclass(frozen=True)
class WatchedKind:
    """One kind that a source watches; `selector` is a label selector as a query spells it, "" for all."""

    resource: Resource
    selector: str = ""


@dataclass(frozen=True)
class SourceSpec:
    """One ApiServerSource.

    Attributes:
        name: of the source.
        namespace: its own; sent with every event, and the only one watched without a selector.
        mode: what the data of its events is.
        kinds: what it watches.
        namespaces: label selector of the namespaces it watches; "" means all of them, None only its own.
        extensions: attributes put on every event.
    """

    name: str
    namespace: str
    mode: Mode
    kinds: tuple[WatchedKind, ...]
    namespaces: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> SourceSpec:
        """Read one ApiServerSource.

        Raises:
            UnsupportedManifestError: a field that this source does not act on, such as `owner` or `filters`.
        """
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        if unknown := sorted(set(spec) - _KNOWN):
            raise UnsupportedManifestError(
                f"ApiServerSource {name}: {', '.join(unknown)} is not understood by the local source"
            )
        chosen = spec.get("namespaceSelector")
        return cls(
            name=name,
            namespace=manifest["metadata"]["namespace"],
            mode=Mode(spec.get("mode", Mode.REFERENCE)),
            kinds=tuple(
                WatchedKind(
                    guess_resource(entry["apiVersion"], entry["kind"]),
                    selector_text(entry.get("selector") or {}),
                )
                for entry in spec["resources"]
            ),
            namespaces=None if chosen is None else selector_text(chosen),
            extensions=(spec.get("ceOverrides") or {}).get("extensions") or {},
        )


def selector_text(selector: Mapping[str, Any]) -> str:
    """A LabelSelector as the query parameter labelSelector spells it; empty selects everything."""
    labels = selector.get("matchLabels") or {}
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    parts += [
        _expression(one["key"], one["operator"], one.get("values") or [])
        for one in selector.get("matchExpressions") or []
    ]
    return ",".join(parts)


def _expression(key: str, operator: str, values: list[str]) -> str:
    texts = {
        "Exists": key,
        "DoesNotExist": f"!{key}",
        "In": f"{key} in ({','.join(values)})",
        "NotIn": f"{key} notin ({','.join(values)})",
    }
    return texts[operator]
