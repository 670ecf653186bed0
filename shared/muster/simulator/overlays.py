"""The objects of a file of manifests, of a plain folder, or of a folder that `kubectl kustomize` builds."""

from __future__ import annotations

import copy
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from muster.data import EVENTING

Manifest = dict[str, Any]
"""A Kubernetes object as parsed YAML."""

_PLAIN = {"apiVersion", "kind", "resources", "images"}
"""The fields of a kustomization that changes nothing that matters on one machine."""


class UnsupportedManifestError(ValueError):
    """A file is no list of manifests, a folder cannot be built, or a manifest has an unsupported feature."""


def built(overlay: str) -> Path:
    """Return the file with what `kubectl kustomize` builds of an overlay of eventing/."""
    return EVENTING / "built" / f"{overlay}.yaml"


CLUSTER = built("cluster")
"""The overlay that `muster run` and `kubectl apply -k` share."""


def load(path: Path = CLUSTER) -> list[Manifest]:
    """Return the objects of a file or of a kustomization folder."""
    if not path.is_dir():
        return copy.deepcopy(_parsed(path.read_text(), str(path)))
    kustomization = _kustomization(path)
    if set(kustomization) <= _PLAIN:
        return [one for entry in kustomization.get("resources") or [] for one in load(path / entry)]
    return _parsed(_built(path), str(path))


def load_beside_muster(path: Path = CLUSTER) -> list[Manifest]:
    """Return the objects of a file or folder; those without a Broker beside the overlay cluster."""
    objects = load(path)
    return objects if of_kind(objects, "Broker") else [*load(), *objects]


def of_kind(objects: Iterable[Manifest], kind: str) -> list[Manifest]:
    """Return the objects of a kind; no two API groups in eventing/ share the name of a kind."""
    return [manifest for manifest in objects if manifest["kind"] == kind]


def step_files(path: Path) -> dict[str, Path]:
    """Return the step.py of each step of one's own, by the name of its Service.

    Args:
        path: a kustomization folder, with `function/step.py` in it or in a folder that it includes; or a
            file of manifests beside `function/`. The folder `label_racks` is of the Service `label-racks`.
    """
    folder = (path if path.is_dir() else path.parent).resolve()
    step = folder / "function" / "step.py"
    found = {folder.name.replace("_", "-"): step} if step.is_file() else {}
    if path.is_dir():
        fields = _kustomization(path)
        entries = [*(fields.get("resources") or []), *(fields.get("components") or [])]
        for inner in filter(Path.is_dir, (path / entry for entry in entries)):
            found |= step_files(inner)
    return found


def _kustomization(folder: Path) -> dict[str, Any]:
    path = folder / "kustomization.yaml"
    try:
        fields = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise UnsupportedManifestError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(fields, dict):
        raise UnsupportedManifestError(f"{path}: is not a kustomization")
    return fields


def _built(folder: Path) -> str:
    """Return what kubectl builds of a folder."""
    try:
        command = ["kubectl", "kustomize", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - of the user's own PATH
    except FileNotFoundError:
        message = "needs kubectl in PATH; or name a file that `kubectl kustomize` has built"
        raise UnsupportedManifestError(f"{folder}: {message}") from None
    if done.returncode:
        raise UnsupportedManifestError(f"{folder}: {done.stderr.strip()}")
    return done.stdout


@cache
def _parsed(text: str, source: str) -> list[Manifest]:
    """Return the manifests of a text."""
    try:
        documents = yaml.load_all(text, Loader=yaml.CSafeLoader)  # ten times as fast as safe_load_all
        objects = [document for document in documents if document is not None]
    except yaml.YAMLError as error:
        raise UnsupportedManifestError(f"{source}: is not YAML: {' '.join(str(error).split())}") from None
    for manifest in objects:
        metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
        if not isinstance(metadata, dict) or not (
            manifest.get("apiVersion") and manifest.get("kind") and metadata.get("name")
        ):
            raise UnsupportedManifestError(
                f"{source}: has a document without apiVersion, kind or metadata.name"
            )
    return objects
