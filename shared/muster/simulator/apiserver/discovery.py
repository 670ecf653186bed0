"""Discovery: /version, /api, /apis, and of OpenAPI v3 what kubectl asks before it sends an object."""

from __future__ import annotations

from muster.simulator.apiserver.kinds import Kind, Registry
from muster.simulator.apiserver.objects import Object

RELEASES = {"1.37": "v1.37.1", "1.36": "v1.36.3"}
PARAMETERS = [{"name": name, "in": "query"} for name in ("dryRun", "fieldManager", "fieldValidation")]


def document(registry: Registry, path: str) -> Object | None:  # noqa: PLR0911 - one for each path
    """Return what is served at a path beside objects; None if it is nothing of this."""
    match path.strip("/").split("/"):
        case ["version"]:
            major, minor = registry.release.split(".")
            return {"major": major, "minor": minor, "gitVersion": RELEASES[registry.release]}
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["api", version]:
            return _resources(registry, "", version)
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(registry)}
        case ["apis", group]:
            head = {"kind": "APIGroup", "apiVersion": "v1"}
            return next((head | one for one in _groups(registry) if one["name"] == group), None)
        case ["apis", group, version]:
            return _resources(registry, group, version)
        case ["openapi", "v3"]:
            paths = sorted({_path(kind) for kind in registry.all().values()})
            return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}
        case ["openapi", "v3", *rest]:
            return _openapi(registry, "/".join(rest))
    return None


def _groups(registry: Registry) -> list[Object]:
    versions_of: dict[str, dict[str, Object]] = {}
    for kind in registry.all().values():
        version = {"groupVersion": kind.api_version, "version": kind.version}
        versions_of.setdefault(kind.group, {})[kind.version] = version
    return [
        {"name": name, "versions": list(versions.values()), "preferredVersion": next(iter(versions.values()))}
        for name, versions in versions_of.items()
        if name
    ]


def _resources(registry: Registry, group: str, version: str) -> Object | None:
    kinds = [kind for kind in registry.all().values() if (kind.group, kind.version) == (group, version)]
    if not kinds:
        return None
    listed = [entry for kind in kinds for entry in (_resource(kind), *_subresources(kind))]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version,
        "resources": sorted(listed, key=lambda entry: str(entry["name"])),
    }


def _resource(kind: Kind) -> Object:
    return {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
    }


def _subresources(kind: Kind) -> list[Object]:
    return [
        {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind.kind if name == "status" else name.title(),
            "verbs": ["get", "patch", "update"] if name == "status" else ["create"],
        }
        for name in sorted(kind.subresources)
    ]


def _openapi(registry: Registry, path: str) -> Object | None:
    """Return a document without schemas: by its parameters kubectl leaves validation to the server."""
    kinds = [kind for kind in registry.all().values() if _path(kind) == path]
    if not kinds:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": registry.release},
        "paths": {f"/{path}/{kind.plural}/{{name}}": {"patch": _patch(kind)} for kind in kinds},
        "components": {"schemas": {}},
    }


def _path(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _patch(kind: Kind) -> Object:
    identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return {
        "parameters": PARAMETERS,
        "x-kubernetes-group-version-kind": identity,
        "x-kubernetes-action": "patch",
    }
