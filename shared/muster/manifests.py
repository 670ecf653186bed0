"""Reads the folders of eventing/ the way `kubectl kustomize` does, as far as they use it.

The local stack is wired by the same files as a cluster, and must not need kubectl for it. Only what those
files use is known here; anything else is refused, so that the two can never quietly differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonpatch

from muster import yaml_files
from muster.files import EVENTING

Manifest = dict[str, Any]
"""One Kubernetes object as YAML holds it."""

CLUSTER = EVENTING / "overlays" / "cluster"
"""The overlay that `muster run` and `kubectl apply -k` share."""

_KNOWN = {"apiVersion", "kind", "resources", "components", "patches", "namespace", "images"}
_CLUSTER_SCOPED = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
"""Kinds that `namespace` leaves where they are. Admission policies are not among those kustomize knows."""


class UnsupportedManifestError(ValueError):
    """A kustomization or manifest uses something that only the real thing understands."""


def load(folder: Path = CLUSTER) -> list[Manifest]:
    """All objects that a kustomization folder builds, in the order in which its files name them.

    Raises:
        UnsupportedManifestError: the kustomization has a field that is not read here.
    """
    kustomization = _kustomization(folder)
    objects = [found for entry in kustomization.get("resources") or [] for found in _resource(folder / entry)]
    for component in kustomization.get("components") or []:
        objects = _changed(objects, folder / component, _kustomization(folder / component))
    return _changed(objects, folder, kustomization)


def _kustomization(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml_files.load((folder / "kustomization.yaml").read_text())
    if unknown := sorted(set(read) - _KNOWN):
        raise UnsupportedManifestError(f"{folder}/kustomization.yaml: {', '.join(unknown)} is not read here")
    return read


def _changed(objects: list[Manifest], folder: Path, kustomization: dict[str, Any]) -> list[Manifest]:
    """What a kustomization makes of objects, in the order in which kustomize applies its fields."""
    if kustomization.get("kind") == "Component":  # kustomize takes a file without kind as a Kustomization
        objects = [
            *objects,
            *(found for entry in kustomization.get("resources") or [] for found in _resource(folder / entry)),
        ]
    for patch in kustomization.get("patches") or []:
        objects = _patched(objects, patch, folder)
    if namespace := kustomization.get("namespace"):
        objects = _moved(objects, namespace)
    for image in kustomization.get("images") or []:
        objects = [_with_image(found, image) for found in objects]
    return objects


def of_kind(objects: Iterable[Manifest], kind: str) -> list[Manifest]:
    """The objects of one kind; kinds of eventing/ are told apart by name alone."""
    return [found for found in objects if found["kind"] == kind]


def _resource(path: Path) -> list[Manifest]:
    if path.is_dir():
        return load(path.resolve())
    return yaml_files.load_all(path.read_text())


def _patched(objects: list[Manifest], patch: dict[str, Any], folder: Path) -> list[Manifest]:
    operations: Any = yaml_files.load(patch["patch"]) if "patch" in patch else None
    target = patch.get("target") or {}
    deletes = isinstance(operations, dict) and operations.get("$patch") == "delete"
    if not (deletes or isinstance(operations, list)) or not target or set(target) - {"kind", "name"}:
        raise UnsupportedManifestError(
            f"{folder}/kustomization.yaml: a patch is a list of JSON 6902 operations or `$patch: delete`,"
            " for a kind and a name"
        )
    if deletes:
        return [found for found in objects if not _is_target(found, target)]
    return [
        jsonpatch.apply_patch(found, operations) if _is_target(found, target) else found for found in objects
    ]


def _is_target(found: Manifest, target: dict[str, str]) -> bool:
    """Whether kind and name match; both are regular expressions over the whole word."""
    has = {"kind": found["kind"], "name": found["metadata"]["name"]}
    return all(re.fullmatch(pattern, has[field]) for field, pattern in target.items())


def _moved(objects: list[Manifest], namespace: str) -> list[Manifest]:
    accounts = {found["metadata"]["name"] for found in of_kind(objects, "ServiceAccount")}
    moved = []
    for found in objects:
        if found["kind"] not in _CLUSTER_SCOPED:
            found = {**found, "metadata": {**found["metadata"], "namespace": namespace}}  # noqa: PLW2901 - a copy
        if "subjects" in found:
            subjects = [
                {**one, "namespace": namespace} if one["name"] in accounts else one
                for one in found["subjects"]
            ]
            found = {**found, "subjects": subjects}  # noqa: PLW2901 - a copy
        moved.append(found)
    return moved


def _with_image(found: Manifest, image: dict[str, str]) -> Manifest:
    """The object with an image renamed, where it is a pod template that has it."""
    template = found.get("spec", {}).get("template", {}).get("spec", {})
    if not any(one["image"] == image["name"] for one in template.get("containers", [])):
        return found
    renamed = f"{image['newName']}:{image['newTag']}"
    operations = [
        {"op": "replace", "path": f"/spec/template/spec/containers/{number}/image", "value": renamed}
        for number, one in enumerate(template["containers"])
        if one["image"] == image["name"]
    ]
    patched: Manifest = jsonpatch.apply_patch(found, operations)
    return patched
