"""JSON patch, merge patch (RFC 7386), strategic merge patch, and server-side apply with managedFields.

The rules are those of apimachinery v0.37.1 (`pkg/util/strategicpatch/patch.go`) and structured-merge-diff
v6.4.2, as far as Muster and the simulated controllers need them. `$setElementOrder` and `$retainKeys` are
passed over; `$patch` is for items of lists only.

A field is a path of elements as `FieldsV1` writes them: `f:spec`, `k:{"name":"a"}`, `v:"x"`. Managers own
leaves, atomic values and items of lists; unlike on the real server nobody owns a map itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from muster.simulator.apiserver.objects import Object, at, copied, now
from muster.simulator.apiserver.refusals import ApiError
from muster.simulator.apiserver.schemas import Schema

DIRECTIVE = "$patch"
FROM_PRIMITIVES = "$deleteFromPrimitiveList/"
IGNORED = ("$retainKeys", "$setElementOrder/")


def json_patch(current: Object, operations: Any) -> Object:
    """Return the object after a JSON patch; ApiError 422 if it fails."""
    import jsonpatch  # noqa: PLC0415 - takes 8 ms to import, and most runs need no JSON patch

    try:
        changed: Object = jsonpatch.apply_patch(copied(current), operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError) as error:
        raise ApiError(422, "Invalid", f"the patch cannot be applied: {error}", {}) from error
    return changed


def merge_patch(current: Any, patch: Any) -> Any:
    """Return the value after a merge patch: null removes a field, lists are replaced."""
    if not isinstance(patch, dict):
        return patch
    result: Object = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def strategic_merge(current: Object, patch: Object, schema: Schema) -> Object:
    """Return the object after a strategic merge patch."""
    result = dict(current)
    for key, value in patch.items():
        if key.startswith(IGNORED):
            continue
        if key.startswith(FROM_PRIMITIVES):
            name = key.removeprefix(FROM_PRIMITIVES)
            if isinstance(result.get(name), list):
                result[name] = [item for item in result[name] if item not in value]
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = _merge_value(result.get(key), value, child_of(schema, key))
    return result


def _merge_value(current: Any, value: Any, schema: Schema) -> Any:
    if isinstance(value, dict):
        return strategic_merge(current if isinstance(current, dict) else {}, value, schema)
    if isinstance(value, list) and "merge" in schema.get("x-kubernetes-patch-strategy", "").split(","):
        return _merge_list(current if isinstance(current, list) else [], value, schema)
    return value


def _merge_list(current: list[Any], patch: list[Any], schema: Schema) -> list[Any]:
    key = schema.get("x-kubernetes-patch-merge-key")
    old = {item[key] if key else item: item for item in current}
    new: dict[Any, Any] = {}
    for item in patch:
        name = item[key] if key else item
        if key is None:
            new[name] = item
        elif item.get(DIRECTIVE) == "delete":
            old.pop(name, None)
        else:
            new[name] = strategic_merge(old.get(name) or {}, item, schema.get("items") or {})
    added = {name: item for name, item in new.items() if name not in old}
    return list({**added, **old, **new}.values())


Path = tuple[str, ...]
Identity = tuple[str, str, str, str]

_MISSING: Final = object()
_UNTRACKED = frozenset(
    {"name", "namespace", "creationTimestamp", "uid", "generation", "resourceVersion", "managedFields"}
)
"""Metadata that has no manager (`stripmeta.go`)."""


@dataclass
class FieldManager:
    """An entry of managedFields: a manager by operation, version and subresource, and its fields."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""
    fields: set[Path] = field(default_factory=set)

    @property
    def identity(self) -> Identity:
        """The key of the entry; applies of a manager share an entry across API versions."""
        version = "" if self.operation == "Apply" else self.api_version
        return self.name, self.operation, version, self.subresource

    def entry(self) -> Object:
        """Return the entry as an object has it."""
        entry = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": _to_v1(self.fields),
            "time": self.time,
            "subresource": self.subresource,
        }
        return {key: value for key, value in entry.items() if value}


Managers = dict[Identity, FieldManager]


def after_update(
    live: Object, changed: Object, schema: Schema, manager: FieldManager, reset: Iterable[Path] = ()
) -> list[Object]:
    """Return the managedFields after a POST, PUT or PATCH that cannot write the fields below `reset`."""
    managers = _managers_of(live)
    if not managers and at(live, "metadata", "uid"):
        return []  # an object without managedFields stays without them until its first apply
    written, removed = (_without_reset(fields, reset) for fields in _difference(live, changed, schema))
    own = managers.pop(manager.identity, manager)
    _disown(managers, written | removed)
    _set_fields(own, own.fields - removed | written)
    return _entries({**managers, own.identity: own})


def apply(
    live: Object,
    applied: Object,
    schema: Schema,
    manager: FieldManager,
    *,
    force: bool,
    reset: Iterable[Path] = (),
) -> tuple[Object, list[Object]]:
    """Server-side apply: set the applied fields and remove those that the manager no longer applies."""
    managers = _managers_of(live)
    own = managers.pop(manager.identity, manager)
    applied_fields = _without_reset(_fields_of_object(applied, schema), reset)
    result: Object = merged(live, applied, schema)
    kept = applied_fields.union(*(other.fields for other in managers.values()))
    result = _without(result, own.fields - kept, schema)
    written, removed = _difference(live, result, schema)
    if not force:
        _refuse_conflicts(managers.values(), written)
    _disown(managers, written | removed)
    _set_fields(own, applied_fields)
    return result, _entries({**managers, own.identity: own})


def granular(schema: Schema, value: Any) -> bool:
    """Whether the children of a value have their own managers; an atomic value has a single one."""
    if isinstance(value, list):
        return schema.get("x-kubernetes-list-type") in {"map", "set"}
    return isinstance(value, dict) and schema.get("x-kubernetes-map-type") != "atomic"


def child_of(schema: Schema, key: str) -> Schema:
    """Return the schema of a field or map value; empty if the schema does not specify it."""
    child = (schema.get("properties") or {}).get(key, schema.get("additionalProperties"))
    return child if isinstance(child, dict) else {}


def merged(live: Any, applied: Any, schema: Schema) -> Any:
    """Return the live value with the fields of `applied` set in it; new items of lists come last."""
    if type(live) is not type(applied) or not granular(schema, applied):
        return applied
    if isinstance(applied, dict):
        result = dict(live)
        for key, value in applied.items():
            result[key] = merged(live.get(key), value, child_of(schema, key))
        return result
    items = {_element(schema, item): item for item in live}
    for item in applied:
        name = _element(schema, item)
        items[name] = merged(items.get(name), item, schema.get("items") or {})
    return list(items.values())


def _element(schema: Schema, item: Any) -> str:
    """Return the path element of an item of a list of type map or set."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(item, dict):
        return "v:" + json.dumps(item, separators=(",", ":"))
    properties = (schema.get("items") or {}).get("properties") or {}
    values = {key: item.get(key, (properties.get(key) or {}).get("default")) for key in sorted(keys)}
    present = {key: value for key, value in values.items() if value is not None}
    return "k:" + json.dumps(present, separators=(",", ":"))


def _children(value: Any, schema: Schema) -> Iterable[tuple[str, Any, Schema]]:
    if isinstance(value, list):
        return [(_element(schema, item), item, schema.get("items") or {}) for item in value]
    return [("f:" + key, item, child_of(schema, key)) for key, item in value.items()]


def _fields_of(value: Any, schema: Schema, path: Path = ()) -> dict[Path, Any]:
    """Return the fields that a value sets, and their values: leaves, atomic values and items of lists."""
    if not value or not granular(schema, value):
        return {path: value}
    fields: dict[Path, Any] = {
        (*path, step): None for step, _, _ in _children(value, schema) if step[0] == "k"
    }
    for step, item, child in _children(value, schema):
        fields |= _fields_of(item, child, (*path, step))
    return fields


def _fields_of_object(obj: Object, schema: Schema) -> dict[Path, Any]:
    body = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind", "metadata"}}
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _UNTRACKED}
    return _fields_of(body | ({"metadata": metadata} if metadata else {}), schema) if body or metadata else {}


def _difference(before: Object, after: Object, schema: Schema) -> tuple[set[Path], set[Path]]:
    """Return the fields that a write sets or changes, and those that it removes."""
    old, new = _fields_of_object(before, schema), _fields_of_object(after, schema)
    written = {path for path, value in new.items() if old.get(path, _MISSING) != value}
    return written, old.keys() - new.keys()


def _without(value: Any, removed: Iterable[Path], schema: Schema) -> Any:
    """Return a value without some fields; a map or list that becomes empty is removed from its parent."""
    here = {path[0] for path in removed if len(path) == 1}
    below: dict[str, list[Path]] = {}
    for path in removed:
        below.setdefault(path[0], []).append(path[1:])
    if not below or not granular(schema, value):
        return value
    kept = [
        (step, _without(item, below.get(step, ()), child))
        for step, item, child in _children(value, schema)
        if step not in here
    ]
    if isinstance(value, list):
        return [item for _, item in kept] or None
    return {step.removeprefix("f:"): item for step, item in kept if item is not None} or None


def _without_reset(fields: Iterable[Path], reset: Iterable[Path]) -> set[Path]:
    return {path for path in fields if not any(path[: len(prefix)] == prefix for prefix in reset)}


def _managers_of(obj: Object) -> Managers:
    managers: Managers = {}
    for entry in at(obj, "metadata", "managedFields") or []:
        manager = FieldManager(
            entry.get("manager", ""),
            entry.get("operation", "Update"),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
            entry.get("time", ""),
            set(_from_v1(entry.get("fieldsV1") or {})),
        )
        managers[manager.identity] = manager
    return managers


def _entries(managers: Managers) -> list[Object]:
    """Return the managedFields of an object: applies first, then by time and name."""
    listed = [manager.entry() for manager in managers.values() if manager.fields]
    return sorted(listed, key=lambda e: (e["operation"], e.get("time", ""), e["manager"], e["apiVersion"]))


def _set_fields(manager: FieldManager, fields: set[Path]) -> None:
    if fields != manager.fields:
        manager.fields, manager.time = fields, now()


def _disown(managers: Managers, changed: set[Path]) -> None:
    for manager in managers.values():
        manager.fields -= changed


def _refuse_conflicts(managers: Iterable[FieldManager], written: set[Path]) -> None:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {manager.name}",
            "field": _field_path(path),
        }
        for manager in managers
        for path in sorted(manager.fields & written)
    ]
    if causes:
        listed = ", ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
        message = f"Apply failed with {len(causes)} conflicts: {listed}"
        raise ApiError(409, "Conflict", message, {"causes": causes})


def _to_v1(fields: Iterable[Path]) -> Object:
    """Return the fields as `FieldsV1`: a tree in which `.` marks a node that is itself a field."""
    tree: Object = {}
    for path in sorted(fields):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    for path in fields:
        node = tree
        for step in path:
            node = node[step]
        if node:
            node["."] = {}
    return tree


def _from_v1(tree: Mapping[str, Any], path: Path = ()) -> Iterable[Path]:
    for key, child in tree.items():
        if key == "." or not child:
            yield path if key == "." else (*path, key)
        else:
            yield from _from_v1(child, (*path, key))


def _field_path(path: Path) -> str:
    """Return a field as messages of conflicts print it: `.spec.containers[name="a"].image`."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "k":
            keys = json.loads(rest)
            rest = ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items())
        text += {"f": f".{rest}", "v": f"[={rest}]", "k": f"[{rest}]"}[kind]
    return text
