"""From URL paths to what they are about."""

from __future__ import annotations

from urllib.parse import unquote

from muster.simulator.apiserver.kinds import Kind, Registry
from muster.simulator.apiserver.requests import Request, Target
from muster.simulator.apiserver.status import method_not_allowed, no_such_path

VERBS = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
CREATED_BELOW = frozenset({"binding", "eviction"})
NAMESPACE_ENDPOINTS = frozenset({"status", "finalize"})


def route(registry: Registry, request: Request) -> Target:
    """What a request under /api or /apis is about; sets its verb and resource.

    Raises:
        ApiError: 404 nothing is served there, 405 the verb does not fit.
    """
    steps = [unquote(step) for step in request.path.strip("/").split("/")]
    if steps[0] == "api":
        group, version, rest = "", steps[1] if len(steps) > 1 else "", steps[2:]
    else:
        group, version, rest = steps[1], steps[2] if len(steps) > 2 else "", steps[3:]  # noqa: PLR2004 - path parts
    target = _target(registry, group, version, rest)
    if target is None:
        raise no_such_path()
    request.resource = "/".join(filter(None, (target.kind.plural, target.subresource)))
    if target.subresource in CREATED_BELOW and request.method == "POST":
        request.verb = "create"
        return target
    verb = VERBS.get((request.method, bool(target.name)))
    watches = request.query.get("watch") in {"1", "true", "True"}
    if verb == "list" and watches:
        verb = "watch"
    if verb is None or verb not in target.kind.verbs or (target.subresource and verb in {"delete", "create"}):
        raise method_not_allowed()
    if verb == "create" and target.kind.namespaced and not target.namespace:
        raise method_not_allowed()
    request.verb = verb
    return target


def _target(registry: Registry, group: str, version: str, rest: list[str]) -> Target | None:
    if not rest:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (not group and rest[2] in NAMESPACE_ENDPOINTS):  # noqa: PLR2004
        namespace, rest = rest[1], rest[2:]
    kind = registry.find(group, version, rest[0])
    if kind is None or (namespace and not kind.namespaced) or len(rest) > 3:  # noqa: PLR2004 - plural, name, endpoint
        return None
    name, subresource = (*rest[1:], "", "")[:2]
    if name and (not kind.stored or (kind.namespaced and not namespace)):
        return None
    if subresource and not _serves(kind, subresource):
        return None
    return Target(kind, namespace, name, subresource)


def _serves(kind: Kind, subresource: str) -> bool:
    return subresource in kind.subresources
