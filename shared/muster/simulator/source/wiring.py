"""The specification of an ApiServerSource, read from its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.objects.resources import Resource, guess_plural
from muster.simulator.overlays import Manifest, UnsupportedManifestError
from muster.simulator.source.events import Mode

_KNOWN = {"mode", "namespaceSelector", "resources", "serviceAccountName", "sink", "ceOverrides"}


@dataclass(frozen=True)
class WatchedKind:
    """A kind that a source watches; `selector` is the labelSelector query parameter, "" for all."""

    resource: Resource
    selector: str = ""

    def is_of(self, group: str, plural: str) -> bool:
        """Whether this is the kind of a resource."""
        return (self.resource.group, self.resource.plural) == (group, plural)


@dataclass(frozen=True)
class SourceSpec:
    """The specification of an ApiServerSource."""

    name: str
    namespace: str
    mode: Mode
    kinds: tuple[WatchedKind, ...]
    namespaces: str | None = None  # label selector; "" means all, None its own namespace
    extensions: Mapping[str, str] = field(default_factory=dict)  # attributes of every event

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> SourceSpec:
        """Parse the manifest of an ApiServerSource."""
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        if unknown := sorted(set(spec) - _KNOWN):
            raise UnsupportedManifestError(
                f"ApiServerSource {name}: {', '.join(unknown)} is not understood by the local source"
            )
        mode, namespaces = spec.get("mode", Mode.REFERENCE), spec.get("namespaceSelector")
        if mode not in set(Mode):
            raise UnsupportedManifestError(
                f"ApiServerSource {name}: mode {mode!r} is not {' or '.join(Mode)}"
            )
        return cls(
            name=name,
            namespace=manifest["metadata"]["namespace"],
            mode=Mode(mode),
            kinds=tuple(map(_watched, spec["resources"])),
            namespaces=None if namespaces is None else selector_text(namespaces),
            extensions=(spec.get("ceOverrides") or {}).get("extensions") or {},
        )


def guess_resource(api_version: str, kind: str, *, namespaced: bool = True) -> Resource:
    """Return the resource of a kind, guessing the plural as the controller of ApiServerSource does."""
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, guess_plural(kind), kind, namespaced=namespaced)


def selector_text(selector: Mapping[str, Any]) -> str:
    """Return a LabelSelector as the query parameter labelSelector; empty selects everything."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    parts += map(_expression, selector.get("matchExpressions") or [])
    return ",".join(parts)


def _watched(entry: Mapping[str, Any]) -> WatchedKind:
    resource = guess_resource(entry["apiVersion"], entry["kind"])
    return WatchedKind(resource, selector_text(entry.get("selector") or {}))


def _expression(requirement: Mapping[str, Any]) -> str:
    key, operator, values = (
        requirement["key"],
        requirement["operator"],
        ",".join(requirement.get("values", [])),
    )
    texts: dict[str, str] = {
        "Exists": key,
        "DoesNotExist": f"!{key}",
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
    }
    if operator not in texts:
        raise UnsupportedManifestError(f"selector: operator {operator!r} is not one of {', '.join(texts)}")
    return texts[operator]
