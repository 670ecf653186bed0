"""The OpenAPI v3 schemas of the real server, as data files: loaded on first use, with references resolved.

`regenerate.py` in this folder writes the files from the Kubernetes sources.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
"""An OpenAPI schema. Those from `components` contain each other directly, so they may be cyclic."""

FILES = {"1.37": "kubernetes-1.37.1", "1.36": "kubernetes-1.36.3"}
PREFIX = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def read_data(name: str) -> Any:
    """Return the parsed content of a data file."""
    return json.loads(gzip.decompress((Path(__file__).parent / f"{name}.json.gz").read_bytes()))


@cache
def components(release: str) -> dict[str, Schema]:
    """Return all schemas of a release by component name, every reference replaced by its schema."""
    schemas: dict[str, Schema] = read_data(FILES[release])["components"]
    for schema in schemas.values():
        _resolve(schema, schemas)
    return schemas


def object_meta(release: str) -> Schema:
    """Return the schema of `metadata`."""
    return components(release)[META + "ObjectMeta"]


@cache
def by_kind(release: str) -> dict[tuple[str, str, str], Schema]:
    """Return the schemas of all kinds, by group, version and kind."""
    schemas = {}
    for schema in components(release).values():
        for gvk in schema.get("x-kubernetes-group-version-kind") or []:
            schemas[gvk["group"], gvk["version"], gvk["kind"]] = schema
    return schemas


def resource_definitions(*names: str) -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of JobSet and Trainer without descriptions; do not change them."""
    files = {"jobset": "jobset-0.12.0", "trainer": "trainer-2.3.0"}
    return [crd for name in names or files for crd in _definitions_in(files[name])]


@cache
def _definitions_in(name: str) -> list[dict[str, Any]]:
    definitions: list[dict[str, Any]] = read_data(name)
    return definitions


def _resolve(schema: Schema, schemas: dict[str, Schema]) -> None:
    properties = schema.get("properties") or {}
    for name, child in properties.items():
        properties[name] = _resolved(child, schemas)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            schema[key] = _resolved(schema[key], schemas)


def _resolved(child: Schema, schemas: dict[str, Schema]) -> Schema:
    if "$ref" in child:
        return schemas[child["$ref"].removeprefix(PREFIX)]
    _resolve(child, schemas)
    return child
