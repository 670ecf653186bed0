"""Reads the folders of eventing/ the way `kubectl kustomize` does, as far as they use it.

The local stack is wired by the same files as a cluster, and must not need kubectl for it. Only what those
files use is known here; anything else is refused, so that the two can never quietly differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

Manifest = dict[str, Any]
"""One Kubernetes object as YAML holds it."""

EVENTING = Path(__file__).resolve().parents[1]
"""The folder eventing/, in a checkout and in an installed package alike."""

CLUSTER = EVENTING / "overlays" / "cluster"
"""The overlay that `muster run` and `kubectl apply -k` share."""

_KNOWN = {"apiVersion", "kind", "resources", "patches"}


class UnsupportedManifestError(ValueError):
    """A kustomization or manifest uses something that only the real thing understands."""


def load(folder: Path = CLUSTER) -> list[Manifest]:
    """All objects that a kustomization folder builds, in the order in which its files name them.

    Raises:
        UnsupportedManifestError: the kustomization has a field other than `resources` and JSON 6902
            `patches`.
    """
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    if unknown := sorted(set(kustomization) - _KNOWN):
        raise UnsupportedManifestError(f"{folder}/kustomization.yaml: {', '.join(unknown)} is not read here")
    objects = [found for entry in kustomization["resources"] for found in _resource(folder / entry)]
    for patch in kustomization.get("patches") or []:
        objects = _patched(objects, patch, folder)
    return objects


def of_kind(objects: Iterable[Manifest], kind: str) -> list[Manifest]:
    """The objects of one kind; kinds of eventing/ are told apart by name alone."""
    return [found for found in objects if found["kind"] == kind]


def _resource(path: Path) -> list[Manifest]:
    if path.is_dir():
        return load(path.resolve())
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def _patched(objects: list[Manifest], patch: dict[str, Any], folder: Path) -> list[Manifest]:
    operations = yaml.safe_load(patch["patch"]) if "patch" in patch else None
    target = patch.get("target") or {}
    if not isinstance(operations, list) or not target or set(target) - {"kind", "name"}:
        raise UnsupportedManifestError(
            f"{folder}/kustomization.yaml: a patch is a list of JSON 6902 operations for a kind and a name"
        )
    return [
        jsonpatch.apply_patch(found, operations) if _is_target(found, target) else found for found in objects
    ]


def _is_target(found: Manifest, target: dict[str, str]) -> bool:
    has = {"kind": found["kind"], "name": found["metadata"]["name"]}
    return target.items() <= has.items()
