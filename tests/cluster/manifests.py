"""Reads and applies manifests, and returns the API paths of objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from muster.objects import yaml_files
from tests.cluster.api import KubernetesApi

Object = dict[str, Any]


def documents(files: Iterable[Path]) -> Iterator[Object]:
    """Yield every object in YAML files except Kustomizations."""
    for file in files:
        for document in yaml_files.load_all(file.read_text()):
            if document and document.get("kind") != "Kustomization":
                yield document


def collection(obj: Mapping[str, Any]) -> str:
    """Return the API path of an object's collection."""
    api_version, kind, metadata = obj["apiVersion"], obj["kind"].lower(), obj["metadata"]
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{namespace}/{_plural(kind)}"


def path(obj: Mapping[str, Any]) -> str:
    """Return the API path of an object."""
    return f"{collection(obj)}/{obj['metadata']['name']}"


def apply(api: KubernetesApi, objects: Iterable[Mapping[str, Any]]) -> list[Object]:
    """Create or update objects in this order; return them as stored."""
    return [api.apply(collection(obj), obj) for obj in objects]


def _plural(kind: str) -> str:
    if kind.endswith("y"):
        return kind[:-1] + "ies"
    return kind + ("es" if kind.endswith("ss") else "s")
