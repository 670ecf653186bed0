"""Build the kustomizations of eventing/ without kubectl.

The local stack is wired by the same files as a cluster. Only the kustomize fields that those files use are
implemented; any other field is refused, so that the result never differs from `kubectl kustomize`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, Field, StrictStr, ValidationError

from muster.data import EVENTING
from muster.objects import yaml_files
from muster.objects.faults import fault, path_of
from muster.objects.text import printable
from muster.overlay_patches import (
    MOST_OF_KUSTOMIZATION,
    Left,
    Operation,
    OverlayLimitError,
    PatchError,
    patched,
)
from muster.patterns import PatternError, has_match

Manifest = dict[str, Any]
"""A Kubernetes object as parsed YAML."""

CLUSTER = EVENTING / "overlays" / "cluster"
"""The overlay that `muster run` and `kubectl apply -k` share."""

_KUSTOMIZATION, _COMPONENT = "Kustomization", "Component"
_FILE = "kustomization.yaml"
KEPT_CHARACTERS = 64 * 1024
"""The most characters of a text whose documents are kept for the next load: those of eventing/ have 40 KB at
most, and each character of another's may take twenty bytes of memory."""
_CLUSTER_SCOPED = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
"""Kinds that get no namespace. Admission policies do get one, as from kustomize."""


class UnsupportedManifestError(ValueError):
    """A kustomization or manifest uses a feature that is not implemented here."""


class _Patch(BaseModel):
    """A patch; what is no JSON 6902 list or `$patch: delete` is refused when it is applied."""

    patch: StrictStr = ""
    target: dict[StrictStr, StrictStr] = {}


class _Image(BaseModel):
    name: StrictStr
    new_name: StrictStr = Field(alias="newName")
    new_tag: StrictStr = Field(alias="newTag")


class _Fields(BaseModel):
    """The fields of a kustomization that are implemented, with their types."""

    api_version: StrictStr | None = Field(None, alias="apiVersion")
    kind: StrictStr | None = None
    resources: list[StrictStr] | None = None
    components: list[StrictStr] | None = None
    patches: list[_Patch] | None = None
    namespace: StrictStr | None = None
    images: list[_Image] | None = None


class _Container(BaseModel):
    image: StrictStr | None = None


class _PodSpec(BaseModel):
    containers: list[_Container] | None = None


class _PodTemplate(BaseModel):
    spec: _PodSpec | None = None


class _Spec(BaseModel):
    template: _PodTemplate | None = None


class _Metadata(BaseModel):
    name: StrictStr
    namespace: StrictStr | None = None


class _Subject(BaseModel):
    name: StrictStr


class _Object(BaseModel):
    """The fields of an object that are read or changed here, with their types."""

    api_version: StrictStr | None = Field(None, alias="apiVersion")
    kind: StrictStr
    metadata: _Metadata
    spec: dict[str, Any] = {}
    subjects: list[_Subject] = []


def load(folder: Path = CLUSTER) -> list[Manifest]:
    """Return all objects that a kustomization folder builds, in the order of its files.

    Raises:
        UnsupportedManifestError: a file is no kustomization or manifest, or has a field that is not
            implemented; or folders include too many.
        OSError: a file cannot be read.
    """
    try:
        return _accumulated([], folder, 0, Left())
    except OverlayLimitError as error:
        raise UnsupportedManifestError(f"{folder}: {error}") from None


def _accumulated(
    objects: list[Manifest], folder: Path, depth: int, left: Left, *, kind: str = ""
) -> list[Manifest]:
    """Return the objects before a folder and those of it, as the fields of its kustomization leave them.

    Args:
        objects: those before, which a component changes too.
        folder: the folder.
        depth: the number of folders that include it.
        left: what may still be done.
        kind: the kind that the kustomization must have; "" for any.
    """
    left.enter(depth)
    left.take(1, _size(folder / _FILE))
    kustomization = _kustomization(folder)
    found = kustomization.get("kind") or _KUSTOMIZATION
    if kind and found != kind:
        field = "components" if kind == _COMPONENT else "resources"
        raise UnsupportedManifestError(f"{folder}: is no {kind}, so it cannot be one of the {field}")
    objects = [*objects, *_resources(folder, kustomization, depth, left)]
    for component in kustomization.get("components") or []:
        inner = _resolved(folder / component)
        objects = _accumulated(objects, inner, depth + 1, left, kind=_COMPONENT)
    return _customize(objects, folder, kustomization, left)


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
    """Yield a kustomization folder, and those that it includes, each once."""
    waiting, seen = [_resolved(folder)], set[Path]()
    while waiting:
        found = waiting.pop()
        if found in seen:
            continue
        seen.add(found)
        yield found
        kustomization = _kustomization(found)
        entries = [*(kustomization.get("resources") or []), *(kustomization.get("components") or [])]
        waiting += [_resolved(found / entry) for entry in entries if (found / entry).is_dir()]


def _kustomization(folder: Path) -> dict[str, Any]:
    path = folder / _FILE
    _check_inside(folder, path)
    if _size(path) > MOST_OF_KUSTOMIZATION:
        raise UnsupportedManifestError(f"{path}: has more than {MOST_OF_KUSTOMIZATION} bytes")
    documents = _documents(path)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UnsupportedManifestError(f"{path}: is not a kustomization")
    kustomization: dict[str, Any] = documents[0]
    known = {field.alias or name for name, field in _Fields.model_fields.items()}
    if unknown := sorted(set(map(str, kustomization)) - known):
        raise UnsupportedManifestError(f"{path}: {', '.join(unknown)} is not supported")
    _check(_Fields, kustomization, str(path))
    return kustomization


def _check(model: type[BaseModel], value: Any, place: str) -> None:
    """Check the types of fields.

    Raises:
        UnsupportedManifestError: one is missing or has another type; with its path.
    """
    try:
        model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ": ".join(filter(None, [place, path_of(first["loc"])]))
        raise UnsupportedManifestError(f"{where}: {fault(first)}") from None


def _size(path: Path) -> int:
    """Return the bytes of a file; none if it is no file, which its reader refuses."""
    return path.stat().st_size if path.is_file() else 0


def _resolved(path: Path) -> Path:
    """Return a path without symbolic links.

    Raises:
        UnsupportedManifestError: they lead to themselves, or the path has a character that no file can have.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise UnsupportedManifestError(f"{printable(str(path), 400)}: {error}") from None


def _check_inside(folder: Path, path: Path) -> None:
    """Check that a file is in its kustomization's folder or below, as kubectl does.

    Others may be of /proc, where files have no size, and reading some takes for ever.

    Raises:
        UnsupportedManifestError: it is elsewhere.
    """
    if not _resolved(path).is_relative_to(_resolved(folder)):
        raise UnsupportedManifestError(f"{path}: is not in {folder} or below")


def _documents(path: Path) -> list[Any]:
    """Return the documents of a YAML file."""
    if path.exists() and not path.is_file():
        raise UnsupportedManifestError(f"{path}: is no file")
    try:
        text = path.read_text()
        return copy.deepcopy(_parsed(text)) if len(text) <= KEPT_CHARACTERS else yaml_files.load_all(text)
    except (yaml.YAMLError, ValueError) as error:
        raise UnsupportedManifestError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None


@lru_cache(maxsize=256)
def _parsed(text: str) -> list[Any]:
    """Return the documents of a text, which are kept: tests start many clusters with the same files."""
    return yaml_files.load_all(text)


def _customize(
    objects: list[Manifest], folder: Path, kustomization: dict[str, Any], left: Left
) -> list[Manifest]:
    """Apply the fields of a kustomization to objects, in the order in which kustomize does."""
    for patch in kustomization.get("patches") or []:
        left.take(len(objects), len(patch.get("patch", "")))
        try:
            objects = _apply_patch(objects, patch, folder, left)
        except (PatchError, PatternError, yaml.YAMLError) as error:
            raise UnsupportedManifestError(f"{folder}/kustomization.yaml: patches: {error}") from None
    if namespace := kustomization.get("namespace"):
        left.take(len(objects))
        objects = _set_namespace(objects, namespace)
    for image in kustomization.get("images") or []:
        left.take(len(objects))
        objects = [_set_image(manifest, image, folder, left) for manifest in objects]
    return objects


def of_kind(objects: Iterable[Manifest], kind: str) -> list[Manifest]:
    """Return the objects of a kind; no two API groups in eventing/ share the name of a kind."""
    return [manifest for manifest in objects if manifest["kind"] == kind]


def _resources(folder: Path, kustomization: dict[str, Any], depth: int, left: Left) -> list[Manifest]:
    entries = kustomization.get("resources") or []
    return [manifest for entry in entries for manifest in _resource(folder, folder / entry, depth, left)]


def _resource(folder: Path, path: Path, depth: int, left: Left) -> list[Manifest]:
    if path.is_dir():
        return _accumulated([], _resolved(path), depth + 1, left, kind=_KUSTOMIZATION)
    _check_inside(folder, path)
    left.take(1, _size(path))
    documents = _documents(path)
    for manifest in documents:
        _check(_Object, manifest, str(path))
    return documents


def _apply_patch(objects: list[Manifest], patch: dict[str, Any], folder: Path, left: Left) -> list[Manifest]:
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
    place = f"{folder}/kustomization.yaml: patches"
    read = [Operation.of(operation) for operation in operations]
    return [
        _patched(manifest, read, left, place) if _is_target(manifest, target) else manifest
        for manifest in objects
    ]


def _patched(manifest: Manifest, operations: list[Operation], left: Left, place: str) -> Manifest:
    """Return a copy of an object after the operations of a patch.

    Raises:
        UnsupportedManifestError: they leave no object.
    """
    changed: Manifest = patched(manifest, operations, left)
    _check(_Object, changed, place)
    return changed


def _is_target(manifest: Manifest, target: dict[str, str]) -> bool:
    """Whether kind and name match in full; both are regular expressions."""
    values = {"kind": manifest["kind"], "name": manifest["metadata"]["name"]}
    return all(has_match(f"^(?:{pattern})$", values[field]) for field, pattern in target.items())


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


def _set_image(manifest: Manifest, image: dict[str, str], folder: Path, left: Left) -> Manifest:
    """Return the object with an image renamed in the containers of its pod template.

    Raises:
        UnsupportedManifestError: the pod template is none.
    """
    spec = manifest.get("spec", {})
    _check(_Spec, spec, f"{folder}/kustomization.yaml: images: {manifest['metadata']['name']}: spec")
    template = spec.get("template") or {}
    pod_spec = template.get("spec") or {}
    containers = pod_spec.get("containers") or []
    left.take(len(containers))
    if all(container.get("image") != image["name"] for container in containers):
        return manifest
    renamed = {"image": f"{image['newName']}:{image['newTag']}"}
    changed = [one | renamed if one.get("image") == image["name"] else one for one in containers]
    template = {**template, "spec": {**pod_spec, "containers": changed}}
    return {**manifest, "spec": {**spec, "template": template}}
