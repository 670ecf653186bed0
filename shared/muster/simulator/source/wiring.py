"""The specification of an ApiServerSource, read from its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.kustomize import Manifest, UnsupportedManifestError
from muster.objects.resources import Resource
from muster.simulator.source.events import Mode, guess_resource

_KNOWN = {"mode", "namespaceSelector", "resources", "serviceAccountName", "sink", "ceOverrides"}


@dataclass(frozen=True)
class WatchedKind:
    """A kind that a source watches; `selector` is the labelSelector query parameter, "" for all."""

    resource: Resource
    selector: str = ""


@dataclass(frozen=True)
class SourceSpec:
    """The specification of an ApiServerSource.

    Attributes:
        name: the name of the source.
        namespace: its namespace, sent with every event.
        mode: the data of its events.
        kinds: the kinds to watch.
        namespaces: label selector of the namespaces to watch; "" means all, None its own namespace.
        extensions: attributes of every event.
    """

    name: str
    namespace: str
    mode: Mode
    kinds: tuple[WatchedKind, ...]
    namespaces: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> SourceSpec:
        """Parse the manifest of an ApiServerSource.

        Raises:
            UnsupportedManifestError: the spec has an unsupported field, such as `owner` or `filters`.
        """
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        if unknown := sorted(set(spec) - _KNOWN):
            raise UnsupportedManifestError(
                f"ApiServerSource {name}: {', '.join(unknown)} is not understood by the local source"
            )
        namespaces = spec.get("namespaceSelector")
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
            namespaces=None if namespaces is None else selector_text(namespaces),
            extensions=(spec.get("ceOverrides") or {}).get("extensions") or {},
        )


def selector_text(selector: Mapping[str, Any]) -> str:
    """Format a LabelSelector as the query parameter labelSelector; empty selects everything."""
    labels = selector.get("matchLabels") or {}
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    parts += [
        _expression(requirement["key"], requirement["operator"], requirement.get("values") or [])
        for requirement in selector.get("matchExpressions") or []
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
