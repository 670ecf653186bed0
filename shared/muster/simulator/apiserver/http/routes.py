"""Routing: from method and URL path to verb, kind, namespace, name and subresource."""

from __future__ import annotations

from urllib.parse import unquote

from muster.simulator.apiserver.http.requests import Request, RequestTarget
from muster.simulator.apiserver.kinds import Registry
from muster.simulator.apiserver.refusals import method_not_allowed, no_such_path

VERBS = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}


def route(registry: Registry, request: Request) -> RequestTarget:
    """Return the target of a request under /api or /apis, and set the request's verb and resource."""
    segments = [unquote(segment) for segment in request.path.strip("/").split("/")]
    if segments[0] == "api":
        segments.insert(1, "")
    target = _target(registry, segments[1], "".join(segments[2:3]), segments[3:])
    if target is None:
        raise no_such_path()
    request.resource = "/".join(filter(None, (target.kind.plural, target.subresource)))
    if target.subresource == "binding" and request.method == "POST":
        request.verb = "create"
        return target
    verb = VERBS.get((request.method, bool(target.name)))
    if verb == "list" and request.query.get("watch") in {"1", "true", "True"}:
        verb = "watch"
    if verb is None or verb not in target.kind.verbs or (target.subresource and verb in {"delete", "create"}):
        raise method_not_allowed()
    if verb == "create" and target.kind.namespaced and not target.namespace:
        raise method_not_allowed()
    request.verb = verb
    return target


def _target(registry: Registry, group: str, version: str, rest: list[str]) -> RequestTarget | None:
    namespace = ""
    of_namespace = not group and rest[2:3] == ["status"]
    if rest[:1] == ["namespaces"] and len(rest) > 2 and not of_namespace:  # noqa: PLR2004 - its name, then a plural
        namespace, rest = rest[1], rest[2:]
    kind = registry.find(group, version, "".join(rest[:1]))
    if kind is None or (namespace and not kind.namespaced) or len(rest) > 3:  # noqa: PLR2004 - plural, name, subresource
        return None
    name, subresource = (*rest[1:], "", "")[:2]
    if name and (not kind.stored or (kind.namespaced and not namespace)):
        return None
    if subresource and subresource not in kind.subresources:
        return None
    return RequestTarget(kind, namespace, name, subresource)
