"""POST, PUT and PATCH, in the order of the real server.

Decode, set defaults, track field managers, run admission, prepare for the endpoint, validate, store. The lock
of the store is held from read to write, so concurrent patches never conflict; the real server retries them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.admission import chain
from muster.simulator.apiserver.fields import defaults, strategies
from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.http.requests import APPLY, Request, RequestTarget, Response, uid_conflict
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
from muster.simulator.apiserver.patches import apply
from muster.simulator.apiserver.patches.merge import json_patch, merge_patch, strategic_merge
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
        """POST of an object."""
        request.check_options("CreateOptions")
        obj = self._decode_with_defaults(target, request, target.object_in(request))
        _check_namespace(target, obj)
        managed_fields = apply.after_update({}, obj, target.kind.schema, self._manager(target, request))
        with self.store.lock:
            record = self._create_object(target.kind, obj, managed_fields, request)
        return _response(201, target.kind, record)

    def update(self, target: RequestTarget, request: Request) -> Response:
        """PUT of an object or its status."""
        request.check_options("UpdateOptions")
        with self.store.lock:
            current = self._current(target)
            obj = self._decode_with_defaults(target, request, target.object_in(request))
            _check_name(target, obj)
            uid = at(obj, "metadata", "uid")
            if uid and uid != current["metadata"]["uid"]:
                raise uid_conflict(target, str(uid), current["metadata"]["uid"])
            record = self._update_object(target, request, obj, requires_version=not target.kind.unconditional)
        return _response(200, target.kind, record)

    def patch(self, target: RequestTarget, request: Request) -> Response:
        """PATCH of an object or subresource, in any of the four patch types."""
        request.check_options("PatchOptions")
        if request.content_type == APPLY:
            return self._apply(target, request)
        with self.store.lock:
            current = self._current(target)
            patched = self._patched(target, request, current | {"apiVersion": target.kind.api_version})
            target.check_type(patched)
            obj = self._decode_with_defaults(target, request, patched)
            _check_name(target, obj)
            record = self._update_object(target, request, obj)
        return _response(200, target.kind, record)

    def _patched(self, target: RequestTarget, request: Request, current: Object) -> Object:
        patch = request.json
        match request.content_type:
            case "application/json-patch+json":
                return json_patch(current, patch)
            case "application/merge-patch+json":
                return merge_patch(current, patch)
            case "application/strategic-merge-patch+json" if not target.kind.custom:
                return strategic_merge(current, patch, target.kind.schema)
            case _:
                raise refusals.unsupported_media_type(request.content_type)

    def _apply(self, target: RequestTarget, request: Request) -> Response:
        kind = target.kind
        body = target.object_in(request)
        if at(body, "metadata", "managedFields"):
            raise refusals.bad_request("metadata.managedFields must be nil")
        applied = self._decode(target, request, body)
        _check_name(target, applied)
        force = request.query.get("force") in {"true", "1"}
        with self.store.lock:
            record = self.store.get(kind.group_resource, target.key)
            if record is None:
                if target.subresource:
                    raise refusals.not_found(kind.group, kind.plural, target.name)
                return self._apply_new(target, request, applied)
            live = record.obj | {"apiVersion": kind.api_version}
            merged, managed_fields = apply.apply(
                live,
                applied,
                kind.schema,
                self._manager(target, request),
                force=force,
                reset=strategies.reset_fields(kind, target.subresource),
            )
            obj = self._decode_with_defaults(target, request, merged)
            changed = self._update_object(target, request, obj, managed_fields=managed_fields)
        return _response(200, kind, changed)

    def _apply_new(self, target: RequestTarget, request: Request, applied: Object) -> Response:
        kind = target.kind
        uid = applied["metadata"].pop("uid", "")
        applied["metadata"].pop("resourceVersion", None)
        if uid:
            raise refusals.conflict(
                kind.group, kind.plural, target.name, f"no object with the uid {uid} was found"
            )
        manager = self._manager(target, request)
        _, managed_fields = apply.apply({}, applied, kind.schema, manager, force=True)
        defaults.fill(kind, applied, self.gates())
        return _response(201, kind, self._create_object(kind, applied, managed_fields, request))

    def _manager(self, target: RequestTarget, request: Request) -> apply.FieldManager:
        operation = "Apply" if request.content_type == APPLY else "Update"
        return apply.FieldManager(request.manager, operation, target.kind.api_version, target.subresource)

    def _current(self, target: RequestTarget) -> Object:
        record = self.store.get(target.kind.group_resource, target.key)
        if record is None:
            raise refusals.not_found(target.kind.group, target.kind.plural, target.name)
        return record.obj

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

    def _decode_with_defaults(self, target: RequestTarget, request: Request, body: Any) -> Object:
        obj = self._decode(target, request, body)
        defaults.fill(target.kind, obj, self.gates())
        return obj

    def _create_object(
        self, kind: Kind, obj: Object, managed_fields: list[Object], request: Request
    ) -> ObjectRecord:
        metadata = obj["metadata"]
        if metadata.get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        for field in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(field, None)
        if not kind.custom and kind.kind != "Namespace":
            metadata.pop("generation", None)
        chain.admit_new(self.store, kind, obj, self.gates(), request.user)
        metadata = obj["metadata"]
        metadata |= {"uid": new_uid(), "creationTimestamp": now()}
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generated_name(metadata["generateName"])
        strategies.prepare_new(kind, obj, self.gates())
        if kind.kind == "Namespace" and not kind.custom:
            defaults.fill(kind, obj, self.gates())
        errors = strategies.check(kind, obj, None)
        if errors:
            raise refusals.invalid_object(kind.group, kind.kind, name_of(obj), errors)
        chain.validate(self.store, kind, obj, None, request.user)
        existing = self.store.get(kind.group_resource, (namespace_of(obj), name_of(obj)))
        if existing is not None:
            deleting = bool(existing.obj["metadata"].get("deletionTimestamp"))
            raise refusals.already_exists(kind.group, kind.plural, name_of(obj), deleting=deleting)
        metadata["managedFields"] = managed_fields
        return self._persist(kind, obj, request)

    def _update_object(
        self,
        target: RequestTarget,
        request: Request,
        obj: Object,
        *,
        managed_fields: list[Object] | None = None,
        requires_version: bool = False,
    ) -> ObjectRecord:
        kind, record = target.kind, self.store.get(target.kind.group_resource, target.key)
        assert record is not None  # noqa: S101 - the caller read it under the same lock
        old = record.obj | {"apiVersion": kind.api_version}
        _check_version(target, obj, old, requires_version=requires_version)
        self._restore_metadata(kind, obj, old, target.subresource)
        if managed_fields is None:
            reset = strategies.reset_fields(kind, target.subresource)
            manager = self._manager(target, request)
            managed_fields = apply.after_update(old, obj, kind.schema, manager, reset)
        obj["metadata"]["managedFields"] = managed_fields
        if target.subresource == "status":
            strategies.prepare_status(kind, obj, old)
        else:
            chain.admit_changed(kind, obj, old)
            strategies.prepare_changed(kind, obj, old, self.gates())
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
            return record
        return self._persist(kind, obj, request)

    @staticmethod
    def _restore_metadata(kind: Kind, obj: Object, old: Object, subresource: str) -> None:
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
        if subresource and not metadata.get("name"):
            metadata["name"] = before["name"]

    def _persist(self, kind: Kind, obj: Object, request: Request) -> ObjectRecord:
        if request.dry_run:
            return ObjectRecord(obj)
        if kind.kind == "CustomResourceDefinition" and not kind.custom:
            self.define(obj)
        return self.store.put(kind.group_resource, obj)


def _response(status: int, kind: Kind, record: ObjectRecord) -> Response:
    return Response(status, encoded(kind.api_version, kind.kind, record))


def _check_namespace(target: RequestTarget, obj: Object) -> None:
    namespace = namespace_of(obj)
    if namespace and namespace != target.namespace:
        raise refusals.bad_request(f"the namespace of the object ({namespace}) does not match the URL")
    if target.kind.namespaced:
        obj["metadata"]["namespace"] = target.namespace


def _check_name(target: RequestTarget, obj: Object) -> None:
    name = name_of(obj)
    if not name:
        if target.subresource:
            obj["metadata"]["name"] = target.name
            return
        raise refusals.bad_request("name must be provided")
    if name != target.name:
        raise refusals.bad_request(f"the name of the object ({name}) does not match the URL ({target.name})")
    _check_namespace(target, obj)


def _check_version(target: RequestTarget, obj: Object, old: Object, *, requires_version: bool) -> None:
    kind = target.kind
    version = obj["metadata"].get("resourceVersion")
    current = old["metadata"]["resourceVersion"]
    if version and version != current:
        raise refusals.conflict(kind.group, kind.plural, target.name)
    if not version and requires_version:
        error = refusals.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise refusals.invalid_object(kind.group, kind.plural, target.name, [error])
    obj["metadata"]["resourceVersion"] = current
