"""OpenAPI v3 documents, as far as kubectl needs them: schemas, and which requests take which parameters."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver import schemas
from muster.simulator.apiserver.kinds import Kind, Registry
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.schemas import PREFIX, Schema

PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]


def index(registry: Registry) -> Object:
    """The answer of /openapi/v3: one document for each group and version."""
    paths = {_document(kind) for kind in registry.all().values()}
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in sorted(paths)}}


def document(registry: Registry, path: str) -> Object | None:
    """One document; None when nothing is served under that path."""
    kinds = [kind for kind in registry.all().values() if _document(kind) == path]
    if not kinds:
        return None
    originals = schemas.documents(registry.release)
    components: dict[str, Schema] = {}
    for kind in kinds:
        if kind.custom:
            components[_custom_name(kind)] = _custom(kind)
            _collect(schemas.META + "ObjectMeta", originals, components)
        else:
            _collect(_name(kind, originals), originals, components)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": registry.release},
        "paths": {path: item for kind in kinds for path, item in _paths(kind).items()},
        "components": {"schemas": dict(sorted(components.items()))},
    }


def _document(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _paths(kind: Kind) -> Object:
    identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    base = f"/{_document(kind)}" + ("/namespaces/{namespace}" if kind.namespaced else "") + f"/{kind.plural}"

    def operation(action: str) -> Object:
        return {
            "parameters": PARAMETERS,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": identity,
        }

    one = {
        "get": operation("get"),
        "put": operation("put"),
        "patch": operation("patch"),
        "delete": operation("delete"),
    }
    return {base: {"get": operation("list"), "post": operation("post")}, base + "/{name}": one}


def _name(kind: Kind, originals: dict[str, Schema]) -> str:
    wanted = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return next(
        name
        for name, schema in originals.items()
        if wanted in (schema.get("x-kubernetes-group-version-kind") or [])
    )


def _collect(name: str, originals: dict[str, Schema], into: dict[str, Schema]) -> None:
    if name in into:
        return
    into[name] = originals[name]
    for reference in _references(originals[name]):
        _collect(reference.removeprefix(PREFIX), originals, into)


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [found for item in node for found in _references(item)]
    if not isinstance(node, dict):
        return []
    found = [reference for value in node.values() for reference in _references(value)]
    return [*found, node["$ref"]] if isinstance(node.get("$ref"), str) else found


def _custom_name(kind: Kind) -> str:
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _custom(kind: Kind) -> Schema:
    identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    properties: dict[str, Any] = {
        **(kind.schema.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": PREFIX + schemas.META + "ObjectMeta"},
    }
    return kind.schema | {"properties": properties, "x-kubernetes-group-version-kind": [identity]}
