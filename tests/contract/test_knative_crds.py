"""Knative's own CRDs take what eventing/ holds, read from the Go module at test time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from muster.data import EVENTING
from muster.objects import yaml_files
from muster.simulator.overlays import Manifest, load
from tests.cluster import modules

pytestmark = pytest.mark.real

OVERLAYS = sorted((EVENTING / "built").iterdir())
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


@cache
def _schemas() -> dict[tuple[str, str], dict[str, Any]]:
    """The schema of each kind and served version."""
    schemas = {}
    for path in sorted((modules.module_folder(modules.ADAPTER) / "config/core/resources").glob("*.yaml")):
        for definition in yaml_files.load_all(path.read_text()):
            if not definition or definition["kind"] != "CustomResourceDefinition":
                continue
            spec = definition["spec"]
            for version in spec["versions"]:
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                schemas[key] = version["schema"]["openAPIV3Schema"]
    return schemas


def _faults(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    """Fields that the schema does not name, and values of another type.

    Knative's schemas let unknown fields pass in most places, as `timeout` of a delivery; our own models in
    tests/manifests do not.
    """
    wanted = TYPES.get(schema.get("type", ""))
    if wanted is not None and not isinstance(value, wanted):
        yield f"{path}: not of type {schema['type']}"
    elif isinstance(value, list) and "items" in schema:
        for number, entry in enumerate(value):
            yield from _faults(entry, schema["items"], f"{path}[{number}]")
    elif isinstance(value, dict):
        free = schema.get("additionalProperties")
        for name, entry in value.items():
            below = schema.get("properties", {}).get(name, free)
            if below is None and not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{path}.{name}: unknown"
            elif isinstance(below, dict):
                yield from _faults(entry, below, f"{path}.{name}")
    for name in schema.get("required", []):
        if isinstance(value, dict) and name not in value:
            yield f"{path}.{name}: missing"


def _ours(overlay: Path) -> list[Manifest]:
    return [
        manifest
        for manifest in load(overlay)
        if manifest["apiVersion"].partition("/")[0] in {"eventing.knative.dev", "sources.knative.dev"}
    ]


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: str(path.name))
def test_knative_takes_every_object(overlay: Path) -> None:
    """Each is of a kind and version that the module serves, with fields that its schema knows."""
    objects = _ours(overlay)
    assert objects
    for obj in objects:
        schema = _schemas()[obj["apiVersion"], obj["kind"]]
        assert list(_faults(obj["spec"], schema["properties"]["spec"], f"{obj['kind']}.spec")) == []


def test_a_schema_rejects_invalid_data() -> None:
    """The schemas do say no."""
    (broker,) = (obj for obj in _ours(OVERLAYS[0]) if obj["kind"] == "Broker")
    broker["spec"]["delivery"]["retry"] = "five"
    schema = _schemas()[broker["apiVersion"], "Broker"]["properties"]["spec"]
    assert list(_faults(broker["spec"], schema, "spec")) == ["spec.delivery.retry: not of type integer"]
