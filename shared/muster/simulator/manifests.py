"""Put the objects of manifest files into an embedded API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster.objects import yaml_files
from muster.simulator.apiserver import ApiServer
from muster.simulator.apiserver.refusals import ApiError

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
ORDER = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
)
"""The kinds that come first, in this order; all others follow in the order of the files."""


class ManifestError(ValueError):
    """A manifest that cannot be loaded: `FILE:LINE: what is wrong`."""


@dataclass(frozen=True)
class Manifest:
    """An object in a file."""

    path: Path
    line: int
    object: Any

    @property
    def kind(self) -> str:
        """The kind of the object; empty if it is none."""
        return str(self.object.get("kind", "")) if isinstance(self.object, dict) else ""

    def error(self, message: str) -> ManifestError:
        """Return an error that names the file and the line."""
        return ManifestError(f"{self.path}:{self.line}: {message}")


_REPORTED = 100
"""`load` reports each so many objects."""


def load(
    server: ApiServer, paths: Iterable[Path], *, loading: Callable[[str], object] = lambda _step: None
) -> int:
    """Apply the objects of files and folders to a server; return their number."""
    found: list[Manifest] = []
    for file in (file for path in paths for file in _files(path)):
        loading(str(file))
        found += _objects(file)
    found = [manifest for manifest in found if manifest.kind not in {"Kustomization", "Component"}]
    found.sort(key=lambda manifest: ORDER.index(manifest.kind) if manifest.kind in ORDER else len(ORDER))
    found.reverse()
    total = len(found)
    for number in range(total):
        if number % _REPORTED == 0:
            loading(f"{number} of {total} objects")
        _apply(server, found.pop())  # which the server copies
    return total


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise ManifestError(f"{path}: No such file or folder")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise ManifestError(f"{path}: has no file that ends in .yaml, .yml or .json")
    return files


def _objects(path: Path) -> Iterator[Manifest]:
    """Yield the objects of a file, those of a List each."""
    try:
        documents = list(yaml_files.documents_with_lines(path.read_text(encoding="utf-8-sig")))
    except UnicodeDecodeError:
        raise ManifestError(f"{path}: is not UTF-8 text") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ManifestError(f"{place}: {getattr(error, 'problem', None) or error}") from None
    for line, document in documents:
        if isinstance(document, dict) and isinstance(document.get("items"), list):
            yield from (Manifest(path, line, obj) for obj in document["items"])
        else:
            yield Manifest(path, line, document)


def _apply(server: ApiServer, manifest: Manifest) -> None:
    obj = manifest.object
    if not isinstance(obj, dict) or not obj.get("apiVersion") or not manifest.kind:
        raise manifest.error("is no Kubernetes object: apiVersion or kind is missing")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise manifest.error(f"{manifest.kind}: metadata.name is missing")
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field, ""), str):
            raise manifest.error(f"{manifest.kind}: metadata.{field} is no string")
    try:
        server.apply(obj)
    except LookupError:
        kind = f"{manifest.kind} of {obj['apiVersion']}"
        raise manifest.error(f"{kind} is not served, and no CustomResourceDefinition defines it") from None
    except ApiError as error:
        raise manifest.error(" ".join(error.message.split())) from None
