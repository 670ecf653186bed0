"""Discovery: /version, /api, /apis, and of OpenAPI v3 what kubectl asks before it sends an object."""

from __future__ import annotations

from muster.simulator.apiserver.kinds import Kind, Registry
from muster.simulator.apiserver.objects import Object

RELEASES = {"1.37": "v1.37.1", "1.36": "v1.36.3"}
PARAMETERS = [{"name": name, "in": "query"} for name in ("dryRun", "fieldManager", "fieldValidation")]


def version(release: str) -> Object:
    """Return the response of /version."""
    major, minor = release.split(".")
    return {"major": major, "minor": minor, "gitVersion": RELEASES[release], "platform": "embedded"}


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
    verbs = {"binding": ["create"]}
    return [
        {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": "Binding" if name == "binding" else kind.kind,
            "verbs": verbs.get(name, ["get", "patch", "update"]),
        }
        for name in sorted(kind.subresources)
    ]


def openapi_index(registry: Registry) -> Object:
    """Return the response of /openapi/v3: the path of the document of every group and version."""
    paths = {_document(kind) for kind in registry.all().values()}
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in sorted(paths)}}


def openapi_document(registry: Registry, path: str) -> Object | None:
    """Return a document without schemas: by its parameters kubectl leaves validation to the server."""
    kinds = [kind for kind in registry.all().values() if _document(kind) == path]
    if not kinds:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": registry.release},
        "paths": {path: item for kind in kinds for path, item in _paths(kind).items()},
        "components": {"schemas": {}},
    }


def _document(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _paths(kind: Kind) -> Object:
    identity = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    base = f"/{_document(kind)}" + ("/namespaces/{namespace}" if kind.namespaced else "") + f"/{kind.plural}"

    def operations(*actions: str) -> Object:
        common = {"parameters": PARAMETERS, "x-kubernetes-group-version-kind": identity}
        return {action: {**common, "x-kubernetes-action": action} for action in actions}

    return {base: operations("get", "post"), base + "/{name}": operations("get", "put", "patch", "delete")}
