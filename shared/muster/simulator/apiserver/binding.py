"""The endpoints below a pod that are not about its fields: binding and eviction."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.objects import Object, at, copied, now
from muster.simulator.apiserver.requests import Answer, Request, Target
from muster.simulator.apiserver.status import bad_request, conflict, invalid_object, not_found, required
from muster.simulator.apiserver.store import Store


def bind(store: Store, target: Target, request: Request) -> Answer:
    """Put a pod on a node, as the scheduler does (`pkg/registry/core/pod/storage/storage.go`, v1.37.1).

    Raises:
        ApiError: 404 no such pod, 409 it is being deleted, bound already or gated.
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
        record = store.get(target.kind.storage, target.key)
        if record is None:
            raise not_found("", "pods", target.name)
        _refuse(target.name, record.obj, body)
        bound: Object = copied(record.obj)
        bound["spec"]["nodeName"] = node
        for field in ("annotations", "labels"):
            given = at(body, "metadata", field) or {}
            if given:
                bound["metadata"][field] = (bound["metadata"].get(field) or {}) | given
        status = bound.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        _set_scheduled(status)
        if not request.dry_run:
            store.put(target.kind.storage, bound)
    answer = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return Answer(201, answer)


def _refuse(name: str, pod: Object, body: Object) -> None:
    wanted_uid = at(body, "metadata", "uid")
    if wanted_uid and wanted_uid != pod["metadata"]["uid"]:
        current = pod["metadata"]["uid"]
        why = f"Precondition failed: UID in precondition: {wanted_uid}, UID in object meta: {current}"
        raise conflict("", "pods", name, why)
    why = ""
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    elif pod["spec"].get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict("", "pods/binding", name, why)


def _set_scheduled(status: Object) -> None:
    conditions = [c for c in status.get("conditions") or [] if c.get("type") != "PodScheduled"]
    scheduled = {"lastProbeTime": None, "lastTransitionTime": now(), "status": "True", "type": "PodScheduled"}
    status["conditions"] = [*conditions, scheduled]
