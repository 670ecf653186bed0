"""Operations without an object of their own: Binding, Scale, reviews of oneself, logs and exec."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.http.requests import ADMINISTRATOR, Request, RequestTarget, Response
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, copied, now
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import (
    ApiError,
    FieldError,
    bad_request,
    conflict,
    invalid,
    invalid_object,
    not_found,
    required,
)
from muster.simulator.apiserver.store import Store

_EXACTLY_ONE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_NOT_BOTH = "cannot be specified in combination with resourceAttributes"

SERVICE_ACCOUNT = "system:serviceaccount:"
CREATED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
"""The response to a Binding and to an Eviction."""


def bind(store: Store, target: RequestTarget, request: Request) -> Response:
    """Bind a pod to a node: POST of a Binding (`pkg/registry/core/pod/storage/storage.go`, v1.37.1).

    Raises:
        ApiError: 400, the body is not a Binding of this pod; 422, it names no node; 404, there is no such
            pod; 409, the pod is being deleted, already bound or gated.
    """
    body: Any = request.json
    if not isinstance(body, dict) or body.get("kind", "Binding") != "Binding":
        raise bad_request("not a Binding object")
    if at(body, "metadata", "name") not in {target.name, None}:
        raise bad_request("name in URL does not match name in Binding object")
    node = at(body, "target", "name")
    if not node:
        raise invalid_object("", "Binding", target.name, [required("target.name")])
    with store.lock:
        record = store.get(target.kind.group_resource, target.key)
        if record is None:
            raise not_found("", "pods", target.name)
        _check_bindable(target.name, record.obj, body)
        bound: Object = copied(record.obj)
        bound["spec"]["nodeName"] = node
        for field in ("annotations", "labels"):
            added = at(body, "metadata", field) or {}
            if added:
                bound["metadata"][field] = (bound["metadata"].get(field) or {}) | added
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
        raise conflict("", "pods", name, message)
    message = ""
    if pod["metadata"].get("deletionTimestamp"):
        message = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        message = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    elif pod["spec"].get("schedulingGates"):
        message = f"pod {name} has non-empty .spec.schedulingGates"
    if message:
        raise conflict("", "pods/binding", name, message)


def _set_scheduled(status: Object) -> None:
    conditions = [c for c in status.get("conditions") or [] if c.get("type") != "PodScheduled"]
    scheduled = {"lastProbeTime": None, "lastTransitionTime": now(), "status": "True", "type": "PodScheduled"}
    status["conditions"] = [*conditions, scheduled]


def scale_of(kind: Kind, obj: Object) -> Object:
    """Return the Scale of a custom resource, read from the paths in its definition."""
    paths = kind.scale or {}
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": at(obj, *_path(paths.get("statusReplicasPath", ""))) or 0}
    selector = at(obj, *_path(paths.get("labelSelectorPath", ""))) if paths.get("labelSelectorPath") else None
    if selector:
        status["selector"] = selector
    replicas = at(obj, *_path(paths.get("specReplicasPath", "")))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {} if replicas is None else {"replicas": replicas},
        "status": status,
    }


def with_scale(kind: Kind, obj: Object, scale: Any) -> Object:
    """Return a copy of a custom resource with the replicas of a Scale.

    Raises:
        ApiError: 400, the body is not a Scale.
    """
    if not isinstance(scale, dict) or scale.get("kind", "Scale") != "Scale":
        raise bad_request("the object provided is unrecognized (must be of type Scale)")
    replicas = at(scale, "spec", "replicas") or 0
    changed: Object = copied(obj)
    *parents, field = _path((kind.scale or {}).get("specReplicasPath", ""))
    section = changed
    for step in parents:
        section = section.setdefault(step, {})
    section[field] = replicas
    version = at(scale, "metadata", "resourceVersion")
    if version:
        changed["metadata"]["resourceVersion"] = version
    return changed


def _path(dotted: str) -> list[str]:
    return [step for step in dotted.split(".") if step]


def review(target: RequestTarget, request: Request, meta: Schema, release: str) -> Response:
    """Return the response to a SelfSubjectReview, TokenReview or SelfSubjectAccessReview.

    Raises:
        ApiError: 400, a TokenReview has no token; 422, see `review_access`.
    """
    if target.kind.kind == "SelfSubjectAccessReview":
        return review_access(target, request, meta, release)
    request.check_options("CreateOptions")
    spec = target.object_in(request).get("spec") or {}
    identity = {"apiVersion": target.kind.api_version, "kind": target.kind.kind}
    if target.kind.kind == "SelfSubjectReview":
        status: Object = {"userInfo": _user(request.user)}
        return Response(201, {**identity, "metadata": {"creationTimestamp": now()}, "status": status})
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    status = {"authenticated": True, "user": _user(str(spec["token"]))}
    return Response(201, {**identity, "metadata": {}, "spec": spec, "status": status})


def _user(name: str) -> Object:
    """Return the UserInfo of a user by name, with the groups that the real server would find."""
    groups = ["system:masters"] if name == ADMINISTRATOR else []
    if name.startswith(SERVICE_ACCOUNT):
        namespace = name.removeprefix(SERVICE_ACCOUNT).partition(":")[0]
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return {"username": name, "groups": [*groups, "system:authenticated"]}


def review_access(target: RequestTarget, request: Request, meta: Schema, release: str) -> Response:
    """Return the response to a SelfSubjectAccessReview: everything is allowed without authentication.

    Raises:
        ApiError: 422, neither resourceAttributes nor nonResourceAttributes is set, or both are.
    """
    request.check_options("CreateOptions")
    review = Decoder(target.kind, meta).read(target.object_in(request))
    spec = review.get("spec") or {}
    if ("resourceAttributes" in spec) == ("nonResourceAttributes" in spec):
        raise invalid_object(target.kind.group, "", "", [_attributes_error(spec, release)])
    identity = {"apiVersion": target.kind.api_version, "kind": target.kind.kind}
    return Response(201, {**identity, "metadata": {}, "spec": spec, "status": {"allowed": True}})


def _attributes_error(spec: Object, release: str) -> FieldError:
    """Return the error of the attributes, as each release words it (`pkg/apis/authorization/validation`)."""
    resource = spec.get("resourceAttributes")
    if release != "1.36":
        return invalid("spec", resource, _EXACTLY_ONE)
    if resource is not None:
        return invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], _NOT_BOTH)
    return invalid("spec.resourceAttributes", None, _EXACTLY_ONE)


def refuse_containers(store: Store, target: RequestTarget) -> Response:
    """Refuse logs, exec, attach, port-forward and proxies, which a kubelet would answer.

    Raises:
        ApiError: 404, there is no such object; 501, nothing runs in it.
    """
    kind = target.kind
    if store.get(kind.group_resource, target.key) is None:
        raise not_found(kind.group, kind.plural, target.name)
    message = f"{kind.plural}/{target.subresource}: the embedded API server runs no containers"
    raise ApiError(501, "NotImplemented", message)
