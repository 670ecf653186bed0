"""Operations without an object of their own: Binding and access reviews."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.http.requests import Request, RequestTarget, Response
from muster.simulator.apiserver.objects import Object, at, copied, now
from muster.simulator.apiserver.store import Store

CREATED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
"""The response to a Binding."""


def bind(store: Store, target: RequestTarget, request: Request) -> Response:
    """Bind a pod to a node: POST of a Binding (`pkg/registry/core/pod/storage/storage.go`, v1.37.1)."""
    body: Any = request.json
    if not isinstance(body, dict) or body.get("kind", "Binding") != "Binding":
        raise refusals.bad_request("not a Binding object")
    if at(body, "metadata", "name") not in {target.name, None}:
        raise refusals.bad_request("name in URL does not match name in Binding object")
    node = at(body, "target", "name")
    if not node:
        raise refusals.invalid_object("", "Binding", target.name, [refusals.required("target.name")])
    with store.lock:
        record = store.get(target.kind.group_resource, target.key)
        if record is None:
            raise refusals.not_found("", "pods", target.name)
        _check_bindable(target.name, record.obj, body)
        bound: Object = copied(record.obj)
        bound["spec"]["nodeName"] = node
        status = bound.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        _set_scheduled(status)
        if not request.dry_run:
            store.put(target.kind.group_resource, bound)
    return Response(201, CREATED)


def _check_bindable(name: str, pod: Object, body: Object) -> None:
    uid, current_uid = at(body, "metadata", "uid"), pod["metadata"]["uid"]
    if uid and uid != current_uid:
        message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current_uid}"
        raise refusals.conflict("", "pods", name, message)
    obstacles = {
        "is being deleted": pod["metadata"].get("deletionTimestamp"),
        "is already assigned to a node": pod["spec"].get("nodeName"),
        "has non-empty .spec.schedulingGates": pod["spec"].get("schedulingGates"),
    }
    for obstacle, is_there in obstacles.items():
        if is_there:
            raise refusals.conflict("", "pods/binding", name, f"pod {name} {obstacle}")


def _set_scheduled(status: Object) -> None:
    conditions = [c for c in status.get("conditions") or [] if c.get("type") != "PodScheduled"]
    scheduled = {"lastProbeTime": None, "lastTransitionTime": now(), "status": "True", "type": "PodScheduled"}
    status["conditions"] = [*conditions, scheduled]


def review_access(target: RequestTarget, request: Request) -> Response:
    """Return the response to a SelfSubjectAccessReview: without authentication everything is allowed."""
    request.check_options("CreateOptions")
    review = target.object_in(request) | {"metadata": {}, "status": {"allowed": True}}
    return Response(201, {"apiVersion": target.kind.api_version, "kind": target.kind.kind} | review)
