"""Discovery: /version, /api, /apis, and the parts of OpenAPI v3 that kubectl reads."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver import schemas
from muster.simulator.apiserver.kinds import Kind, Registry
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.schemas import PREFIX, Schema

RELEASES = {"1.37": "v1.37.1", "1.36": "v1.36.3"}
SUBRESOURCE_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
}
SUBRESOURCE_VERBS = {"binding": ("create",), "eviction": ("create",), "finalize": ("update",)}

PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]


def version(release: str) -> Object:
    """Return the response of /version."""
    major, minor = release.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": RELEASES[release],
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "embedded",
    }


def core_versions(address: str) -> Object:
    """Return the response of /api."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def groups(registry: Registry) -> Object:
    """Return the response of /apis."""
    listed = [_group(name, versions) for name, versions in _versions(registry).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(registry: Registry, name: str) -> Object | None:
    """Return the response of /apis/<group>; None if the group is not served."""
    versions = _versions(registry).get(name)
    return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _versions(registry: Registry) -> dict[str, list[str]]:
    versions_of: dict[str, list[str]] = {}
    for kind in registry.all().values():
        versions = versions_of.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
    return versions_of


def _group(name: str, versions: list[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resources(registry: Registry, group_name: str, version_name: str) -> Object | None:
    """Return the response of /api/v1 and /apis/<group>/<version>; None if the version is not served."""
    kinds = [k for k in registry.all().values() if (k.group, k.version) == (group_name, version_name)]
    if not kinds:
        return None
    listed = [entry for kind in kinds for entry in (_resource(kind), *_subresources(kind))]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version,
        "resources": listed if kinds[0].custom else sorted(listed, key=lambda entry: str(entry["name"])),
    }


def _resource(kind: Kind) -> Object:
    resource: Object = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    return resource


def _subresources(kind: Kind) -> list[Object]:
    entries = []
    for name in sorted(kind.subresources, reverse=kind.custom):
        entry: Object = {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(SUBRESOURCE_VERBS.get(name, ("get", "patch", "update"))),
        }
        if name in SUBRESOURCE_KINDS:
            entry["group"], entry["version"], entry["kind"] = SUBRESOURCE_KINDS[name]
        entries.append(entry)
    return entries


def openapi_index(registry: Registry) -> Object:
    """Return the response of /openapi/v3: the path of the document of every group and version."""
    paths = {_document(kind) for kind in registry.all().values()}
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in sorted(paths)}}


def openapi_document(registry: Registry, path: str) -> Object | None:
    """Return the response of /openapi/v3/<path>; None if nothing is served under that path."""
    kinds = [kind for kind in registry.all().values() if _document(kind) == path]
    if not kinds:
        return None
    originals = schemas.documents(registry.release)
    components: dict[str, Schema] = {}
    for kind in kinds:
        if kind.custom:
            components[_custom_component(kind)] = _custom_schema(kind)
            _add_component(schemas.META + "ObjectMeta", originals, components)
        else:
            _add_component(_component(kind, originals), originals, components)
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

    named = {
        "get": operation("get"),
        "put": operation("put"),
        "patch": operation("patch"),
        "delete": operation("delete"),
    }
    return {base: {"get": operation("list"), "post": operation("post")}, base + "/{name}": named}


def _component(kind: Kind, originals: dict[str, Schema]) -> str:
    """Return the name of a built-in kind's schema among the components."""
    identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return next(
        name
        for name, schema in originals.items()
        if identity in (schema.get("x-kubernetes-group-version-kind") or [])
    )


def _add_component(name: str, originals: dict[str, Schema], components: dict[str, Schema]) -> None:
    """Add a schema, and every schema that it refers to, to the components."""
    if name in components:
        return
    components[name] = originals[name]
    for reference in _references(originals[name]):
        _add_component(reference.removeprefix(PREFIX), originals, components)


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [reference for item in node for reference in _references(item)]
    if not isinstance(node, dict):
        return []
    inner = [reference for value in node.values() for reference in _references(value)]
    return [*inner, node["$ref"]] if isinstance(node.get("$ref"), str) else inner


def _custom_component(kind: Kind) -> str:
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _custom_schema(kind: Kind) -> Schema:
    identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    properties: dict[str, Any] = {
        **(kind.schema.get("properties") or {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": PREFIX + schemas.META + "ObjectMeta"},
    }
    return kind.schema | {"properties": properties, "x-kubernetes-group-version-kind": [identity]}
