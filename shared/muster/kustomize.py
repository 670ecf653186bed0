"""Build the kustomizations of eventing/ without kubectl.

The local stack is wired by the same files as a cluster. Only the kustomize fields that those files use are
implemented; any other field is refused, so that the result never differs from `kubectl kustomize`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonpatch

from muster.files import EVENTING
from muster.objects import yaml_files

Manifest = dict[str, Any]
"""A Kubernetes object as parsed YAML."""

CLUSTER = EVENTING / "overlays" / "cluster"
"""The overlay that `muster run` and `kubectl apply -k` share."""

_KNOWN = {"apiVersion", "kind", "resources", "components", "patches", "namespace", "images"}
_CLUSTER_SCOPED = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
"""Kinds that get no namespace. Admission policies do get one, as from kustomize."""


class UnsupportedManifestError(ValueError):
    """A kustomization or manifest uses a feature that is not implemented here."""


def load(folder: Path = CLUSTER) -> list[Manifest]:
    """Return all objects that a kustomization folder builds, in the order of its files.

    Raises:
        UnsupportedManifestError: the kustomization has a field that is not implemented.
    """
    kustomization = _kustomization(folder)
    # A component adds its resources itself, below.
    objects = [] if kustomization.get("kind") == "Component" else _resources(folder, kustomization)
    for component in kustomization.get("components") or []:
        objects = _customize(objects, folder / component, _kustomization(folder / component))
    return _customize(objects, folder, kustomization)


def load_beside_muster(folder: Path = CLUSTER) -> list[Manifest]:
    """Return the objects of a folder; if there is no Broker among them, beside those of Muster's own overlay.

    So the folder of one step can be run as it is.

    Raises:
        UnsupportedManifestError: the kustomization has a field that is not implemented.
    """
    objects = load(folder)
    return objects if of_kind(objects, "Broker") else [*load(), *objects]


def step_files(folder: Path) -> dict[str, Path]:
    """Return the step.py of each step of one's own in a kustomization folder, by the name of its Service.

    It is in `function/` beside a kustomization.yaml that the folder includes; the folder `label_racks` is the
    step of the Service `label-racks`.
    """
    files = {path.name.replace("_", "-"): path / "function" / "step.py" for path in _folders(folder)}
    return {service: path for service, path in files.items() if path.is_file()}


def _folders(folder: Path) -> Iterator[Path]:
    """Yield a kustomization folder, and those that it includes."""
    folder = folder.resolve()
    yield folder
    kustomization = _kustomization(folder)
    for entry in [*(kustomization.get("resources") or []), *(kustomization.get("components") or [])]:
        if (folder / entry).is_dir():
            yield from _folders(folder / entry)


def _kustomization(folder: Path) -> dict[str, Any]:
    kustomization = yaml_files.load((folder / "kustomization.yaml").read_text())
    if not isinstance(kustomization, dict):
        raise UnsupportedManifestError(f"{folder}/kustomization.yaml: is not a YAML mapping")
    if unknown := sorted(set(kustomization) - _KNOWN):
        raise UnsupportedManifestError(f"{folder}/kustomization.yaml: {', '.join(unknown)} is not supported")
    return kustomization


def _customize(objects: list[Manifest], folder: Path, kustomization: dict[str, Any]) -> list[Manifest]:
    """Apply the fields of a kustomization to objects, in the order in which kustomize does."""
    if kustomization.get("kind") == "Component":  # kustomize takes a file without kind as a Kustomization
        objects = [*objects, *_resources(folder, kustomization)]
    for patch in kustomization.get("patches") or []:
        objects = _apply_patch(objects, patch, folder)
    if namespace := kustomization.get("namespace"):
        objects = _set_namespace(objects, namespace)
    for image in kustomization.get("images") or []:
        objects = [_set_image(manifest, image) for manifest in objects]
    return objects


def of_kind(objects: Iterable[Manifest], kind: str) -> list[Manifest]:
    """Return the objects of a kind; no two API groups in eventing/ share the name of a kind."""
    return [manifest for manifest in objects if manifest["kind"] == kind]


def _resources(folder: Path, kustomization: dict[str, Any]) -> list[Manifest]:
    entries = kustomization.get("resources") or []
    return [manifest for entry in entries for manifest in _resource(folder / entry)]


def _resource(path: Path) -> list[Manifest]:
    if path.is_dir():
        return load(path.resolve())
    return yaml_files.load_all(path.read_text())


def _apply_patch(objects: list[Manifest], patch: dict[str, Any], folder: Path) -> list[Manifest]:
    operations: Any = yaml_files.load(patch["patch"]) if "patch" in patch else None
    target = patch.get("target") or {}
    deletes = isinstance(operations, dict) and operations.get("$patch") == "delete"
    if not (deletes or isinstance(operations, list)) or not target or set(target) - {"kind", "name"}:
        raise UnsupportedManifestError(
            f"{folder}/kustomization.yaml: a patch is a list of JSON 6902 operations or `$patch: delete`,"
            " for a kind and a name"
        )
    if deletes:
        return [manifest for manifest in objects if not _is_target(manifest, target)]
    return [
        jsonpatch.apply_patch(manifest, operations) if _is_target(manifest, target) else manifest
        for manifest in objects
    ]


def _is_target(manifest: Manifest, target: dict[str, str]) -> bool:
    """Whether kind and name match in full; both are regular expressions."""
    values = {"kind": manifest["kind"], "name": manifest["metadata"]["name"]}
    return all(re.fullmatch(pattern, values[field]) for field, pattern in target.items())


def _set_namespace(objects: list[Manifest], namespace: str) -> list[Manifest]:
    """Set the namespace of objects, and of the subjects of bindings that are among them."""
    accounts = {manifest["metadata"]["name"] for manifest in of_kind(objects, "ServiceAccount")}
    changed = []
    for manifest in objects:
        copy = dict(manifest)
        if manifest["kind"] not in _CLUSTER_SCOPED:
            copy["metadata"] = {**manifest["metadata"], "namespace": namespace}
        if "subjects" in manifest:
            copy["subjects"] = [
                {**subject, "namespace": namespace} if subject["name"] in accounts else subject
                for subject in manifest["subjects"]
            ]
        changed.append(copy)
    return changed


def _set_image(manifest: Manifest, image: dict[str, str]) -> Manifest:
    """Return the object with an image renamed in the containers of its pod template."""
    pod_spec = manifest.get("spec", {}).get("template", {}).get("spec", {})
    containers = pod_spec.get("containers", [])
    operations = [
        {
            "op": "replace",
            "path": f"/spec/template/spec/containers/{number}/image",
            "value": f"{image['newName']}:{image['newTag']}",
        }
        for number, container in enumerate(containers)
        if container["image"] == image["name"]
    ]
    patched: Manifest = jsonpatch.apply_patch(manifest, operations)
    return patched
