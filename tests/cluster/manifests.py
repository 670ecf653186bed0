"""Reads manifests from files and applies them, whatever their kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api import Api

Object = dict[str, Any]


def documents(files: Iterable[Path]) -> Iterator[Object]:
    """Yields every object of YAML files, kustomizations left out."""
    for file in files:
        for document in yaml.safe_load_all(file.read_text()):
            if document and document.get("kind") != "Kustomization":
                yield document


def collection(one: Mapping[str, Any]) -> str:
    """Returns the path of the collection that an object belongs to."""
    api_version, kind, metadata = one["apiVersion"], one["kind"].lower(), one["metadata"]
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{namespace}/{_plural(kind)}"


def path(one: Mapping[str, Any]) -> str:
    """Returns the path of an object."""
    return f"{collection(one)}/{one['metadata']['name']}"


def apply(api: Api, objects: Iterable[Mapping[str, Any]]) -> list[Object]:
    """Creates or updates objects in the order given; returns them as stored."""
    return [api.apply(collection(one), one) for one in objects]


def _plural(kind: str) -> str:
    if kind.endswith("y"):
        return kind[:-1] + "ies"
    return kind + ("es" if kind.endswith("ss") else "s")
