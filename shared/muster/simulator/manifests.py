"""Put the objects of manifest files into an embedded API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    """A manifest that cannot be loaded: `FILE: what is wrong`."""


def load(server: ApiServer, paths: Iterable[Path]) -> int:
    """Apply the objects of files and folders to a server; return their number."""
    found = [(file, obj) for path in paths for file in _files(path) for obj in _objects(file)]
    found.sort(key=lambda entry: [*ORDER, entry[1]["kind"]].index(entry[1]["kind"]))
    for file, obj in found:
        try:
            server.apply(obj)
        except LookupError as error:
            raise ManifestError(f"{file}: {error}, and no CustomResourceDefinition defines it") from None
        except ApiError as error:
            name = f"{obj['kind']} {obj['metadata']['name']}"
            raise ManifestError(f"{file}: {name}: {' '.join(error.message.split())}") from None
    return len(found)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise ManifestError(f"{path}: No such file or folder")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise ManifestError(f"{path}: has no file that ends in .yaml, .yml or .json")
    return files


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, those of a List each."""
    try:
        documents = yaml_files.load_all(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ManifestError(f"{path}: {' '.join(str(error).split())}") from None
    for document in documents:
        items = document.get("items") if isinstance(document, dict) else None
        for obj in items if isinstance(items, list) else [document]:
            kind = obj.get("kind") if isinstance(obj, dict) else None
            if kind in {"Kustomization", "Component"}:
                continue
            metadata = obj.get("metadata") if kind and obj.get("apiVersion") else None
            if not isinstance(metadata, dict) or not metadata.get("name"):
                raise ManifestError(f"{path}: has a document without apiVersion, kind or metadata.name")
            yield obj
