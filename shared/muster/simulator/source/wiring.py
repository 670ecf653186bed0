"""The specification of an ApiServerSource, read from its manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.kustomize import Manifest, UnsupportedManifestError
from muster.objects.resources import Resource
from muster.objects.text import cut_to
from muster.simulator.knative import stored
from muster.simulator.source.events import Mode, guess_resource

_LABEL = re.compile(r"[A-Za-z0-9._/-]*")
"""The characters of keys and values of labels."""
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_API_VERSION = re.compile(rf"(?:{_DNS_LABEL}(?:\.{_DNS_LABEL})*+/)?{_DNS_LABEL}")
"""A version, which may follow its group; in the path of a URL `../` would lead to other objects."""
_KNOWN = {"mode", "namespaceSelector", "resources", "serviceAccountName", "sink", "ceOverrides"}


@dataclass(frozen=True)
class WatchedKind:
    """A kind that a source watches; `selector` is the labelSelector query parameter, "" for all."""

    resource: Resource
    selector: str = ""

    def is_of(self, group: str, plural: str) -> bool:
        """Whether this is the kind of a resource, however the source spells its name."""
        return (self.resource.group, self.resource.plural) == (group, plural)


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
            UnsupportedManifestError: a field has a wrong type; the spec has an unsupported field, such as
                `owner` or `filters`, or a mode, selector or kind that Knative or the API server refuses.
        """
        manifest = stored(manifest)
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        if unknown := sorted(set(spec) - _KNOWN):
            raise UnsupportedManifestError(
                f"ApiServerSource {name}: {', '.join(unknown)} is not understood by the local source"
            )
        namespaces = spec.get("namespaceSelector")
        return cls(
            name=name,
            namespace=manifest["metadata"]["namespace"],
            mode=_mode(name, spec.get("mode")),
            kinds=tuple(_watched(name, *entry) for entry in enumerate(spec.get("resources") or [])),
            namespaces=None if namespaces is None else selector_text(namespaces),
            extensions=(spec.get("ceOverrides") or {}).get("extensions") or {},
        )


def _mode(source: str, mode: str | None) -> Mode:
    try:
        return Mode(mode or Mode.REFERENCE)
    except ValueError:
        known = " or ".join(Mode)
        raise UnsupportedManifestError(f"ApiServerSource {source}: mode {mode!r} is not {known}") from None


def _watched(source: str, number: int, entry: Mapping[str, Any]) -> WatchedKind:
    for name, pattern in (("apiVersion", _API_VERSION), ("kind", _KIND)):
        if not pattern.fullmatch(entry[name]):
            text = cut_to(entry[name], 60)
            raise UnsupportedManifestError(
                f"ApiServerSource {source}: spec.resources[{number}].{name} cannot be {text!r}"
            )
    resource = guess_resource(entry["apiVersion"], entry["kind"])
    return WatchedKind(resource, selector_text(entry.get("selector") or {}))


def selector_text(selector: Mapping[str, Any]) -> str:
    """Format a LabelSelector as the query parameter labelSelector; empty selects everything.

    Raises:
        UnsupportedManifestError: it has an unknown operator, or characters that no label has.
    """
    labels = selector.get("matchLabels") or {}
    requirements = selector.get("matchExpressions") or []
    words = [*labels, *labels.values(), *(word for one in requirements for word in _words(one))]
    if strange := [word for word in words if not _LABEL.fullmatch(str(word))]:
        raise UnsupportedManifestError(f"selector: {strange[0]!r} is neither a key nor a value of a label")
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    parts += [
        _expression(requirement["key"], requirement["operator"], requirement.get("values") or [])
        for requirement in requirements
    ]
    return ",".join(parts)


def _words(requirement: Mapping[str, Any]) -> list[str]:
    """Return the key and the values of a requirement."""
    return [requirement["key"], *(requirement.get("values") or [])]


def _expression(key: str, operator: str, values: list[str]) -> str:
    texts = {
        "Exists": key,
        "DoesNotExist": f"!{key}",
        "In": f"{key} in ({','.join(values)})",
        "NotIn": f"{key} notin ({','.join(values)})",
    }
    if operator not in texts:
        raise UnsupportedManifestError(f"selector: operator {operator!r} is not one of {', '.join(texts)}")
    return texts[operator]
