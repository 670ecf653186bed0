"""POST, PUT and PATCH: from a body to a stored object, in the order in which the real server does it.

Decode, default, note who owns which field, admit, prepare, validate, store. The store's lock is held
throughout, so a patch never meets a conflict with another patch, as on the real server after its retries.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster.simulator.apiserver import admission, defaults, strategies
from muster.simulator.apiserver.decoding import Decoder
from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.kinds import Kind
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
from muster.simulator.apiserver.patches import managed
from muster.simulator.apiserver.patches.plain import checked_merge_patch, json_patch, merge_patch
from muster.simulator.apiserver.patches.strategic import strategic_merge
from muster.simulator.apiserver.requests import APPLY, Answer, Request, Target, uid_conflict
from muster.simulator.apiserver.scale import scale_of, scaled
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import (
    ApiError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    invalid_object,
    not_found,
    unknown_patch,
    unsupported_media_type,
)
from muster.simulator.apiserver.store import Record, Store, encoded

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
GENERATE_ATTEMPTS = 8


@dataclass(frozen=True)
class Writer:
    """Writes objects under the rules.

    Attributes:
        store: where they go.
        gates: the switches now.
        release: `1.37` or `1.36`, whose admission plugins differ.
        meta: the schema of `metadata`.
        defined: called with a CustomResourceDefinition that was created or changed.
    """

    store: Store
    gates: Callable[[], Gates]
    release: str
    meta: Schema
    defined: Callable[[Object], None]

    def create(self, target: Target, request: Request) -> Answer:
        """POST of an object."""
        request.check_options("CreateOptions")
        obj = self._decoded(target, request, target.decodes(request))
        _in_namespace(target, obj)
        owners = managed.after_update(
            _blank(target.kind), obj, target.kind.schema, self._manager(target, request)
        )
        with self.store.lock:
            record = self._add(target.kind, obj, owners, request)
        return _written(201, target.kind, record)

    def update(self, target: Target, request: Request) -> Answer:
        """PUT of an object, its status or its scale."""
        request.check_options("UpdateOptions")
        with self.store.lock:
            current = self._current(target)
            if target.subresource == "scale":
                wanted = scaled(target.kind, current, request.json)
            else:
                wanted = self._decoded(target, request, target.decodes(request))
                _named(target, wanted)
            given = at(wanted, "metadata", "uid")
            if given and given != current["metadata"]["uid"]:
                raise uid_conflict(target, str(given), current["metadata"]["uid"])
            record = self._change(target, request, wanted, must_name_version=not target.kind.unconditional)
        return self._answer(target, record)

    def patch(self, target: Target, request: Request) -> Answer:
        """PATCH of an object or a subresource, in any of the four forms."""
        request.check_options("PatchOptions")
        if request.content_type == APPLY:
            return self._apply(target, request)
        with self.store.lock:
            current = self._current(target)
            if target.subresource == "scale":
                wanted = self._patched_scale(target, request, current)
            else:
                patched = self._patched(target, request, current | {"apiVersion": target.kind.api_version})
                target.check_type(patched)
                wanted = self._made_by_patch(target, request, patched)
                _named(target, wanted)
            record = self._change(target, request, wanted)
        return self._answer(target, record)

    def _made_by_patch(self, target: Target, request: Request, patched: Object) -> Object:
        try:
            return self._decoded(target, request, patched)
        except ApiError as error:
            if target.kind.custom:
                raise
            why = error.message.partition(f"cannot be handled as a {target.kind.kind}: ")[2]
            wrong = invalid("patch", json.dumps(patched, separators=(",", ":")), why)
            raise invalid_object("", "", "", [wrong]) from error

    def _patched_scale(self, target: Target, request: Request, current: Object) -> Object:
        scale = scale_of(target.kind, current)
        changed = self._patched(target, request, scale)
        return scaled(target.kind, current, changed)

    def _patched(self, target: Target, request: Request, current: Object) -> Object:
        patch = request.json
        match request.content_type:
            case "application/json-patch+json":
                return json_patch(current, patch)
            case "application/merge-patch+json":
                return dict(merge_patch(current, checked_merge_patch(patch)))
            case "application/strategic-merge-patch+json" if not target.kind.custom:
                return strategic_merge(current, patch, target.kind.schema)
            case "application/strategic-merge-patch+json":
                raise unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY))
            case _:
                raise unknown_patch()

    def _apply(self, target: Target, request: Request) -> Answer:
        kind = target.kind
        body = target.decodes(request)
        if at(body, "metadata", "managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        wanted = self._read(target, request, body)
        _named(target, wanted)
        force = request.query.get("force") in {"true", "1"}
        with self.store.lock:
            record = self.store.get(kind.storage, target.key)
            if record is None:
                if target.subresource:
                    raise not_found(kind.group, kind.plural, target.name)
                return self._apply_new(target, request, wanted)
            live = record.obj | {"apiVersion": kind.api_version}
            merged, owners = managed.apply(
                live,
                wanted,
                kind.schema,
                self._manager(target, request),
                force=force,
                reset=strategies.reset_fields(kind, target.subresource),
            )
            obj = self._read(target, request, merged)
            defaults.fill(kind, obj, self.gates())
            changed = self._change(target, request, obj, owners=owners)
        return _written(200, kind, changed)

    def _apply_new(self, target: Target, request: Request, wanted: Object) -> Answer:
        kind = target.kind
        uid = wanted["metadata"].pop("uid", "")
        wanted["metadata"].pop("resourceVersion", None)
        if uid:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(kind.group, kind.plural, target.name, why)
        manager = self._manager(target, request)
        _, owners = managed.apply(_blank(kind), wanted, kind.schema, manager, force=True)
        defaults.fill(kind, wanted, self.gates())
        return _written(201, kind, self._add(kind, wanted, owners, request))

    def _manager(self, target: Target, request: Request) -> managed.Manager:
        operation = "Apply" if request.content_type == APPLY else "Update"
        return managed.Manager(request.manager, operation, target.kind.api_version, target.subresource)

    def _current(self, target: Target) -> Object:
        record = self.store.get(target.kind.storage, target.key)
        if record is None:
            raise not_found(target.kind.group, target.kind.plural, target.name)
        return record.obj

    def _read(self, target: Target, request: Request, body: Any) -> Object:
        decoder = Decoder(target.kind, self.meta)
        obj = decoder.read(copied(body))
        validation = request.query.get("fieldValidation", "Warn")
        if decoder.unknown and validation == "Strict":
            listed = ", ".join(f'unknown field "{path}"' for path in dict.fromkeys(decoder.unknown))
            kind = target.kind
            raise bad_request(
                f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                f"strict decoding error: {listed}"
            )
        if validation != "Ignore":
            request.warnings += [f'unknown field "{path}"' for path in dict.fromkeys(decoder.unknown)]
        return obj

    def _decoded(self, target: Target, request: Request, body: Any) -> Object:
        obj = self._read(target, request, body)
        defaults.fill(target.kind, obj, self.gates())
        return obj

    def _add(self, kind: Kind, obj: Object, owners: list[Object], request: Request) -> Record:
        metadata = obj["metadata"]
        if metadata.get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        for field in (
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ):
            metadata.pop(field, None)
        if not kind.custom and kind.kind != "Namespace":
            metadata.pop("generation", None)
        admission.admit_new(self.store, kind, obj, self.gates())
        metadata = obj["metadata"]
        metadata |= {"uid": new_uid(), "creationTimestamp": now()}
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._free_name(kind, obj)
        strategies.prepare_new(kind, obj, self.gates())
        if kind.kind == "Namespace" and not kind.custom:
            defaults.fill(kind, obj, self.gates())
        errors = strategies.check_new(kind, obj)
        if errors:
            raise invalid_object(kind.group, kind.kind, name_of(obj), errors)
        taken = self.store.get(kind.storage, (namespace_of(obj), name_of(obj)))
        if taken is not None:
            deleting = bool(taken.obj["metadata"].get("deletionTimestamp"))
            raise already_exists(kind.group, kind.plural, name_of(obj), deleting=deleting)
        metadata["managedFields"] = owners
        return self._keep(kind, obj, request)

    def _free_name(self, kind: Kind, obj: Object) -> str:
        base = obj["metadata"]["generateName"]
        for _ in range(GENERATE_ATTEMPTS):
            name = generated_name(base)
            if self.store.get(kind.storage, (namespace_of(obj), name)) is None:
                break
        return name

    def _change(
        self,
        target: Target,
        request: Request,
        obj: Object,
        *,
        owners: list[Object] | None = None,
        must_name_version: bool = False,
    ) -> Record:
        kind, record = target.kind, self.store.get(target.kind.storage, target.key)
        assert record is not None  # noqa: S101 - the caller read it under the same lock
        old = record.obj | {"apiVersion": kind.api_version}
        _check_version(target, obj, old, must_name_version=must_name_version)
        self._restore(kind, obj, old, target.subresource)
        if owners is None:
            reset = strategies.reset_fields(kind, target.subresource)
            owners = managed.after_update(old, obj, kind.schema, self._manager(target, request), reset)
        obj["metadata"]["managedFields"] = owners
        if target.subresource == "status":
            strategies.prepare_status(kind, obj, old)
        else:
            admission.admit_changed(kind, obj, old)
            strategies.prepare_changed(kind, obj, old, self.gates())
        errors = strategies.check_changed(kind, obj, old, target.subresource)
        if errors:
            raise invalid_object(kind.group, kind.kind, target.name, errors)
        if self.release == "1.36" and not target.subresource:
            admission.keep_gang_sizes(self.store, kind, obj, old, self.gates())
        if not obj["metadata"].get("managedFields"):
            obj["metadata"].pop("managedFields", None)
        if obj == old:
            return record
        return self._keep(kind, obj, request)

    @staticmethod
    def _restore(kind: Kind, obj: Object, old: Object, subresource: str) -> None:
        """Set what an update never changes; a wrong uid is left for the rules to find."""
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

    def _keep(self, kind: Kind, obj: Object, request: Request) -> Record:
        if request.dry_run:
            return Record(obj)
        if kind.kind == "CustomResourceDefinition" and not kind.custom:
            self.defined(obj)
        return self.store.put(kind.storage, obj)

    def _answer(self, target: Target, record: Record) -> Answer:
        if target.subresource == "scale":
            return Answer(200, scale_of(target.kind, record.obj))
        return _written(200, target.kind, record)


def _written(status: int, kind: Kind, record: Record) -> Answer:
    return Answer(status, encoded(kind.api_version, kind.kind, record))


def _blank(kind: Kind) -> Object:
    """What a new object is compared with: Go's empty structs are there before anybody set anything."""
    empty: Object = {"metadata": {}}
    if not kind.custom:
        properties = kind.schema.get("properties") or {}
        empty |= {field: {} for field in ("spec", "status") if field in properties}
    return empty


def _in_namespace(target: Target, obj: Object) -> None:
    given = namespace_of(obj)
    if given and given != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if target.kind.namespaced:
        obj["metadata"]["namespace"] = target.namespace


def _named(target: Target, obj: Object) -> None:
    name = name_of(obj)
    if not name:
        if target.subresource:
            obj["metadata"]["name"] = target.name
            return
        raise bad_request("name must be provided")
    if name != target.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    _in_namespace(target, obj)


def _check_version(target: Target, obj: Object, old: Object, *, must_name_version: bool) -> None:
    kind = target.kind
    given = obj["metadata"].get("resourceVersion")
    current = old["metadata"]["resourceVersion"]
    if given and given != current:
        raise conflict(kind.group, kind.plural, target.name)
    if not given and must_name_version:
        error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid_object(kind.group, kind.plural, target.name, [error])
    obj["metadata"]["resourceVersion"] = current
