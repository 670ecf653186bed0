"""The real server's OpenAPI v3 schemas, as data: loaded when first needed, references followed once.

`regenerate.py` in this folder makes the data from the Kubernetes sources.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
"""An OpenAPI schema. Those from `components` refer to one another directly, cycles included."""

FILES = {"1.37": "kubernetes-1.37.1", "1.36": "kubernetes-1.36.3"}
PREFIX = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def packed(name: str) -> Any:
    """The parsed content of one data file."""
    return json.loads(gzip.decompress((Path(__file__).parent / f"{name}.json.gz").read_bytes()))


def documents(release: str) -> dict[str, Schema]:
    """A fresh copy of all schemas of a release by component name, with `$ref`s as in the original."""
    found: dict[str, Schema] = packed(FILES[release])["components"]
    return found


@cache
def components(release: str) -> dict[str, Schema]:
    """All schemas of a release by component name; every reference is replaced by what it refers to."""
    found = documents(release)
    for name, schema in found.items():
        schema["x-name"] = name.rpartition(".")[2]
        schema["x-go"] = ".".join(name.rsplit(".", 2)[1:])
        _link(schema, found)
    return found


def object_meta(release: str) -> Schema:
    """The schema of `metadata`."""
    return components(release)[META + "ObjectMeta"]


@cache
def by_kind(release: str) -> dict[tuple[str, str, str], Schema]:
    """The schemas of the kinds that are served, by group, version and kind."""
    found = {}
    for schema in components(release).values():
        for gvk in schema.get("x-kubernetes-group-version-kind") or []:
            found[gvk["group"], gvk["version"], gvk["kind"]] = schema
    return found


def resource_definitions(*names: str) -> list[dict[str, Any]]:
    """CustomResourceDefinitions that come with this package, descriptions left out; to be read, not changed.

    Args:
        names: `jobset` (v0.12.0) and `trainer` (v2.3.0); none means both.
    """
    files = {"jobset": "jobset-0.12.0", "trainer": "trainer-2.3.0"}
    return [crd for name in names or files for crd in _definitions_in(files[name])]


@cache
def _definitions_in(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = packed(name)
    return found


def _link(schema: Schema, found: dict[str, Schema]) -> None:
    properties = schema.get("properties") or {}
    for name, child in properties.items():
        properties[name] = _target(child, found)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            schema[key] = _target(schema[key], found)


def _target(child: Schema, found: dict[str, Schema]) -> Schema:
    if "$ref" in child:
        return found[child["$ref"].removeprefix(PREFIX)]
    _link(child, found)
    return child
