"""Routing: from method and URL path to verb, kind, namespace, name and subresource."""

from __future__ import annotations

from urllib.parse import unquote

from muster.simulator.apiserver.http.requests import Request, RequestTarget
from muster.simulator.apiserver.kinds import Registry
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
CREATE_ONLY = frozenset({"binding", "eviction"})
"""Subresources below an object that are written with POST."""

CONTAINER_SUBRESOURCES = {
    "pods": frozenset({"log", "exec", "attach", "portforward", "proxy"}),
    "services": frozenset({"proxy"}),
    "nodes": frozenset({"proxy"}),
}
"""Subresources that a kubelet answers; this server answers them with 501."""

NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


def route(registry: Registry, request: Request) -> RequestTarget:
    """Return the target of a request under /api or /apis; sets the request's verb and resource.

    Raises:
        ApiError: 404, nothing is served at the path; 405, the resource does not support the verb.
    """
    segments = [unquote(segment) for segment in request.path.strip("/").split("/")]
    if segments[0] == "api":
        group, version, rest = "", segments[1] if len(segments) > 1 else "", segments[2:]
    else:
        group, version, rest = segments[1], segments[2] if len(segments) > 2 else "", segments[3:]  # noqa: PLR2004 - path parts
    target = _target(registry, group, version, rest)
    if target is None:
        raise no_such_path()
    request.resource = "/".join(filter(None, (target.kind.plural, target.subresource)))
    if needs_containers(target):
        request.verb = "create" if request.method == "POST" else "get"
        return target
    if target.subresource in CREATE_ONLY and request.method == "POST":
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
    if not rest:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (not group and rest[2] in NAMESPACE_SUBRESOURCES):  # noqa: PLR2004
        namespace, rest = rest[1], rest[2:]
    kind = registry.find(group, version, rest[0])
    if kind is None or (namespace and not kind.namespaced):
        return None
    if len(rest) > 3 and rest[2] != "proxy":  # noqa: PLR2004 - plural, name, subresource; then the path of a proxy
        return None
    name, subresource = (*rest[1:], "", "")[:2]
    if name and (not kind.stored or (kind.namespaced and not namespace)):
        return None
    target = RequestTarget(kind, namespace, name, subresource)
    if subresource and subresource not in kind.subresources and not needs_containers(target):
        return None
    return target


def needs_containers(target: RequestTarget) -> bool:
    """Whether only a running container could answer: logs, exec, attach, port-forward and proxies."""
    return not target.kind.group and target.subresource in CONTAINER_SUBRESOURCES.get(target.kind.plural, ())
