"""What the server says about itself: versions, groups, resources."""

from __future__ import annotations

from muster.simulator.apiserver.kinds import Kind, Registry
from muster.simulator.apiserver.objects import Object

RELEASES = {"1.37": "v1.37.1", "1.36": "v1.36.3"}
SUBRESOURCE_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
}
SUBRESOURCE_VERBS = {"binding": ("create",), "eviction": ("create",), "finalize": ("update",)}


def version(release: str) -> Object:
    """The answer of /version."""
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
    """The answer of /api."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def groups(registry: Registry) -> Object:
    """The answer of /apis."""
    found = [_group(name, versions) for name, versions in _versions(registry).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}


def group(registry: Registry, name: str) -> Object | None:
    """The answer of /apis/<group>; None when the group is not served."""
    versions = _versions(registry).get(name)
    return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _versions(registry: Registry) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind in registry.all().values():
        versions = found.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
    return found


def _group(name: str, versions: list[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{each}", "version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resources(registry: Registry, group_name: str, version_name: str) -> Object | None:
    """The answer of /api/v1 and /apis/<group>/<version>; None when that is not served."""
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
    found: Object = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    return found


def _subresources(kind: Kind) -> list[Object]:
    found = []
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
        found.append(entry)
    return found
