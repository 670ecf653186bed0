"""POST, PUT and PATCH, in the order of the real server.

Decode, set defaults, track field managers, run admission, prepare for the endpoint, validate, store. The lock
of the store is held from read to write, so concurrent patches never conflict; the real server retries them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster.simulator.apiserver import patches, refusals
from muster.simulator.apiserver.admission import chain
from muster.simulator.apiserver.fields import defaults, strategies
from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.http import APPLY, Request, RequestTarget, Response
from muster.simulator.apiserver.kinds import Gates, Kind
from muster.simulator.apiserver.objects import (
    Object,
    at,
    copied,
    generated_name,
    name_of,
    namespace_of,
    new_uid,
    now,
)
from muster.simulator.apiserver.refusals import ApiError
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.store import ObjectRecord, Store, encoded


@dataclass(frozen=True)
class Writer:
    """Creates and updates objects."""

    store: Store
    gates: Callable[[], Gates]
    release: str
    meta: Schema
    define: Callable[[Object], None]

    def create(self, target: RequestTarget, request: Request) -> Response:
        """POST of an object, or server-side apply of one that does not exist."""
        kind, manager = target.kind, _manager(target, request)
        obj = self._decode(target, request, target.object_in(request.json))
        _check_namespace(target, obj)
        metadata = obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generated_name(metadata["generateName"])
        if request.content_type != APPLY:
            defaults.fill(kind, obj, self.gates())
            fields = patches.after_update({}, obj, kind.schema, manager)
        elif metadata.get("uid"):
            raise refusals.conflict(kind.group, kind.plural, target.name, "no object has that uid")
        else:
            _, fields = patches.apply({}, obj, kind.schema, manager, force=True)
            defaults.fill(kind, obj, self.gates())
        if metadata.get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        for field in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            metadata.pop(field, None)
        with self.store.lock:
            chain.admit_new(self.store, kind, obj, self.gates(), request.user)
            metadata = obj["metadata"]
            metadata |= {"uid": new_uid(), "creationTimestamp": now()}
            strategies.prepare_new(kind, obj, self.gates())
            errors = strategies.check(kind, obj, None)
            if errors:
                raise refusals.invalid_object(kind.group, kind.kind, name_of(obj), errors)
            chain.validate(self.store, kind, obj, None, request.user)
            if self.store.get(kind.group_resource, (namespace_of(obj), name_of(obj))) is not None:
                raise refusals.already_exists(kind.group, kind.plural, name_of(obj))
            metadata["managedFields"] = fields
            return self._persist(kind, obj, request, 201)

    def update(self, target: RequestTarget, request: Request) -> Response:
        """PUT or PATCH of an object or its status."""
        kind = target.kind
        with self.store.lock:
            record = self.store.get(kind.group_resource, target.key)
            if record is None:
                if request.content_type == APPLY and not target.subresource:
                    return self.create(target, request)
                raise refusals.not_found(kind.group, kind.plural, target.name)
            old = record.obj | {"apiVersion": kind.api_version}
            obj, fields = self._requested(target, request, old)
            _check_version(target, request, obj, old)
            _restore_metadata(kind, obj, old)
            if fields is None:
                reset = strategies.reset_fields(kind, target.subresource)
                fields = patches.after_update(old, obj, kind.schema, _manager(target, request), reset)
            obj["metadata"]["managedFields"] = fields
            if target.subresource == "status":
                strategies.prepare_status(kind, obj, old)
            else:
                chain.admit_changed(kind, obj, old)
                strategies.prepare_changed(kind, obj, old)
            errors = strategies.check(kind, obj, old, target.subresource)
            if errors:
                raise refusals.invalid_object(kind.group, kind.kind, target.name, errors)
            if self.release == "1.36" and not target.subresource:
                chain.keep_gang_sizes(self.store, kind, obj, old, self.gates())
            named = request.query.get("fieldManager")
            options = {"fieldManager": named} if named else {}
            chain.validate(self.store, kind, obj, old, request.user, target.subresource, options)
            if not obj["metadata"].get("managedFields"):
                obj["metadata"].pop("managedFields", None)
            if obj == old:
                return _response(200, kind, record)
            return self._persist(kind, obj, request, 200)

    def _requested(
        self, target: RequestTarget, request: Request, old: Object
    ) -> tuple[Object, list[Object] | None]:
        """Return the object that a PUT or PATCH asks for, and its managedFields after an apply."""
        kind, body, fields = target.kind, request.json, None
        if request.content_type == APPLY:
            applied = self._decode(target, request, target.object_in(body))
            body, fields = patches.apply(
                old,
                applied,
                kind.schema,
                _manager(target, request),
                force=request.query.get("force") in {"true", "1"},
                reset=strategies.reset_fields(kind, target.subresource),
            )
        elif request.verb == "patch":
            body = _patched(kind, request, old)
        obj = self._decode(target, request, target.object_in(body))
        defaults.fill(kind, obj, self.gates())
        if target.subresource:
            obj["metadata"].setdefault("name", target.name)
        if name_of(obj) != target.name:
            raise refusals.bad_request(f"the object is not named {target.name} as the URL says")
        _check_namespace(target, obj)
        return obj, fields

    def _decode(self, target: RequestTarget, request: Request, body: Any) -> Object:
        """Return the object in a body; handles unknown fields as the parameter `fieldValidation` says."""
        decoder = Decoder(target.kind, self.meta)
        obj = decoder.read(copied(body))
        unknown = [f'unknown field "{path}"' for path in dict.fromkeys(decoder.unknown)]
        field_validation = request.query.get("fieldValidation", "Warn")
        if unknown and field_validation == "Strict":
            raise refusals.bad_request(f"strict decoding error: {', '.join(unknown)}")
        if field_validation != "Ignore":
            request.warnings += unknown
        return obj

    def _persist(self, kind: Kind, obj: Object, request: Request, status: int) -> Response:
        if request.dry_run:
            return _response(status, kind, ObjectRecord(obj))
        if kind.kind == "CustomResourceDefinition" and not kind.custom:
            self.define(obj)
        return _response(status, kind, self.store.put(kind.group_resource, obj))

    def bind(self, target: RequestTarget, request: Request) -> Response:
        """POST of a Binding of a pod to a node (`pkg/registry/core/pod/storage/storage.go`, v1.37.1)."""
        with self.store.lock:
            record = self.store.get(target.kind.group_resource, target.key)
            if record is None:
                raise refusals.not_found("", "pods", target.name)
            pod: Object = copied(record.obj)
            obstacles = {
                "has another UID": at(request.json, "metadata", "uid") not in {None, pod["metadata"]["uid"]},
                "is being deleted": pod["metadata"].get("deletionTimestamp"),
                "is already assigned to a node": pod["spec"].get("nodeName"),
                "has scheduling gates": pod["spec"].get("schedulingGates"),
            }
            for obstacle, is_there in obstacles.items():
                if is_there:
                    raise refusals.conflict("", "pods/binding", target.name, f"the pod {obstacle}")
            pod["spec"]["nodeName"] = request.json["target"]["name"]
            scheduled = {"type": "PodScheduled", "status": "True"}
            times = {"lastProbeTime": None, "lastTransitionTime": now()}
            conditions = [c for c in pod["status"].get("conditions") or [] if c["type"] != "PodScheduled"]
            pod["status"]["conditions"] = [*conditions, {**scheduled, **times}]
            self.store.put(target.kind.group_resource, pod)
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return Response(201, status)


def review_access(target: RequestTarget, request: Request) -> Response:
    """Return the response to a SelfSubjectAccessReview: without authentication everything is allowed."""
    review = target.object_in(request.json) | {"metadata": {}, "status": {"allowed": True}}
    return Response(201, {"apiVersion": target.kind.api_version, "kind": target.kind.kind} | review)


def _patched(kind: Kind, request: Request, current: Object) -> Object:
    match request.content_type:
        case "application/json-patch+json":
            return patches.json_patch(current, request.json)
        case "application/merge-patch+json":
            return dict(patches.merge_patch(current, request.json))
        case "application/strategic-merge-patch+json" if not kind.custom:
            return patches.strategic_merge(current, request.json, kind.schema)
        case _:
            raise refusals.unsupported_media_type(request.content_type)


def _response(status: int, kind: Kind, record: ObjectRecord) -> Response:
    return Response(status, encoded(kind.api_version, kind.kind, record))


def _manager(target: RequestTarget, request: Request) -> patches.FieldManager:
    operation = "Apply" if request.content_type == APPLY else "Update"
    return patches.FieldManager(request.manager, operation, target.kind.api_version, target.subresource)


def _check_namespace(target: RequestTarget, obj: Object) -> None:
    namespace = namespace_of(obj)
    if namespace and namespace != target.namespace:
        raise refusals.bad_request(f"the namespace of the object ({namespace}) does not match the URL")
    if target.kind.namespaced:
        obj["metadata"]["namespace"] = target.namespace


def _check_version(target: RequestTarget, request: Request, obj: Object, old: Object) -> None:
    kind = target.kind
    version, current = obj["metadata"].get("resourceVersion"), old["metadata"]["resourceVersion"]
    if version and version != current:
        raise refusals.conflict(kind.group, kind.plural, target.name)
    if not version and request.verb == "update" and not kind.unconditional:
        error = refusals.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise refusals.invalid_object(kind.group, kind.plural, target.name, [error])
    obj["metadata"]["resourceVersion"] = current


def _restore_metadata(kind: Kind, obj: Object, old: Object) -> None:
    """Restore the metadata that an update cannot change; a wrong uid is left to validation."""
    metadata, before = obj["metadata"], old["metadata"]
    metadata.setdefault("uid", before["uid"])
    for field in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    if kind.namespaced:
        metadata.setdefault("namespace", before["namespace"])
