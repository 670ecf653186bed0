"""Sets of fields for server-side apply: the fields of a value, comparison, merge and removal.

A field is a path: a tuple of path elements as `FieldsV1` writes them, `f:spec`, `k:{"name":"a"}`, `v:"x"`.
The rules are those of sigs.k8s.io/structured-merge-diff v6.4.2, `typed/{tofieldset,compare,merge,remove}.go`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.schemas import Schema

Path = tuple[str, ...]
Fields = frozenset[Path]

EMPTY: Final[Fields] = frozenset()
_MISSING: Final = object()


def keyed(schema: Schema) -> bool:
    """Whether a list is of type map, its items identified by keys."""
    return schema.get("x-kubernetes-list-type") == "map"


def granular(schema: Schema, value: Any) -> bool:
    """Whether the children of a value have their own managers; an atomic value has a single one."""
    if isinstance(value, list):
        return schema.get("x-kubernetes-list-type") in {"map", "set"}
    return schema.get("x-kubernetes-map-type") != "atomic"


def child_of(schema: Schema, key: str) -> Schema:
    """Return the schema of a field or map value; empty if the schema does not specify it."""
    properties = schema.get("properties") or {}
    child = properties.get(key, schema.get("additionalProperties"))
    return child if isinstance(child, dict) else {}


def element(schema: Schema, item: Any) -> str:
    """Return the path element of an item of a list of type map or set; of a wrong item its value."""
    if not keyed(schema) or not isinstance(item, dict):
        return "v:" + json.dumps(item, separators=(",", ":"))
    properties = (schema.get("items") or {}).get("properties") or {}
    keys = {}
    for key in sorted(schema.get("x-kubernetes-list-map-keys") or ()):
        value = item.get(key, (properties.get(key) or {}).get("default"))
        if value is not None:
            keys[key] = value
    return "k:" + json.dumps(keys, separators=(",", ":"))


def fields_of(value: Any, schema: Schema, path: Path = ()) -> set[Path]:
    """Return the fields that a value sets: leaves, atomic values, items of lists and entries of maps."""
    if not isinstance(value, (dict, list)) or not granular(schema, value):
        return {path}
    fields: set[Path] = set()
    if isinstance(value, list):
        items: Schema = schema.get("items") or {}
        for item in value:
            item_path = (*path, element(schema, item))
            fields |= fields_of(item, items, item_path) | {item_path}
        return fields
    properties = schema.get("properties") or {}
    for key, item in value.items():
        child_path = (*path, "f:" + key)
        fields |= fields_of(item, child_of(schema, key), child_path)
        if item is None or item == {} or key not in properties:
            fields.add(child_path)
    return fields


def with_structs(fields: Iterable[Path], schema: Schema) -> set[Path]:
    """Return the fields and every struct that contains one (`EnsureNamedFieldsAreMembers`)."""
    result = set(fields)
    for path in list(result):
        inner = schema
        for depth, step in enumerate(path, 1):
            kind, _, name = step.partition(":")
            if kind == "f" and name in (inner.get("properties") or {}):
                result.add(path[:depth])
            inner = child_of(inner, name) if kind == "f" else inner.get("items") or {}
    return result


class Comparison:
    """The difference between two values of a schema."""

    def __init__(self, before: Any, after: Any, schema: Schema) -> None:
        self.added: set[Path] = set()
        self.modified: set[Path] = set()
        self.removed: set[Path] = set()
        self._compare(before, after, schema, ())

    def _compare(self, before: Any, after: Any, schema: Schema, path: Path) -> None:
        if before is after:
            return
        shapes = {type(value) for value in (before, after) if value is not _MISSING and value is not None}
        containers = len(shapes) == 1 and shapes <= {dict, list} and (before or after)
        present = [value for value in (before, after) if value]
        if (
            not containers
            or not present
            or not granular(schema, present[0])
            or not _has_content(before, after)
        ):
            self._leaf(before, after, path)
            return
        if shapes == {list}:
            self._items(before, after, schema, path)
        else:
            self._entries(before, after, schema, path)
        if path and before is _MISSING:
            self.added.add(path)
        elif path and after is _MISSING:
            self.removed.add(path)

    def _leaf(self, before: Any, after: Any, path: Path) -> None:
        if before is _MISSING:
            self.added.add(path)
        elif after is _MISSING:
            self.removed.add(path)
        elif before != after or isinstance(before, bool) != isinstance(after, bool):
            self.modified.add(path)

    def _items(self, before: Any, after: Any, schema: Schema, path: Path) -> None:
        items: Schema = schema.get("items") or {}
        old = {element(schema, item): item for item in _or_empty(before, [])}
        new = {element(schema, item): item for item in _or_empty(after, [])}
        for name in old.keys() | new.keys():
            self._compare(old.get(name, _MISSING), new.get(name, _MISSING), items, (*path, name))

    def _entries(self, before: Any, after: Any, schema: Schema, path: Path) -> None:
        old, new = _or_empty(before, {}), _or_empty(after, {})
        for key in old.keys() | new.keys():
            child_path = (*path, "f:" + key)
            self._compare(old.get(key, _MISSING), new.get(key, _MISSING), child_of(schema, key), child_path)


def _has_content(before: Any, after: Any) -> bool:
    return bool((before is not _MISSING and before) or (after is not _MISSING and after))


def _or_empty(value: Any, empty: Any) -> Any:
    return empty if value is _MISSING or value is None else value


def merged(live: Any, applied: Any, schema: Schema) -> Any:
    """Return the live value with the fields of `applied` set in it."""
    if isinstance(live, dict) and isinstance(applied, dict) and granular(schema, applied):
        result = dict(live)
        for key, value in applied.items():
            result[key] = merged(live[key], value, child_of(schema, key)) if key in live else value
        return result
    if isinstance(live, list) and isinstance(applied, list) and granular(schema, applied):
        return _merged_list(live, applied, schema)
    return applied


def _merged_list(live: list[Any], applied: list[Any], schema: Schema) -> list[Any]:
    """Return the items of both lists: shared ones in the order of `applied`, others by their neighbours."""
    items: Schema = schema.get("items") or {}
    old = {element(schema, item): item for item in live}
    new = {element(schema, item): item for item in applied}
    shared = [name for name in new if name in old]
    left, right = list(old), list(new)
    result: list[Any] = []
    while left or right:
        if left and right and left[0] != right[0] and left[0] in new and shared[:1] != left[:1]:
            left.pop(
                0
            )  # shared, but not the next in the order of `applied`: added when that order reaches it
        elif left and left[0] not in new:
            result.append(old[left.pop(0)])
        elif left and not right:
            left.pop(0)
        else:
            name = right.pop(0)
            if left[:1] == [name]:
                left.pop(0)
            if shared[:1] == [name]:
                shared.pop(0)
            result.append(merged(old[name], new[name], items) if name in old else new[name])
    return result


def without(value: Any, removed: Iterable[Path], schema: Schema) -> Any:
    """Return a value without some fields and everything inside them.

    A map or list that becomes empty is removed from its parent; at the top it is None.
    """
    here: set[str] = set()
    below: dict[str, list[Path]] = {}
    for path in removed:
        if len(path) == 1:
            here.add(path[0])
        elif path:
            below.setdefault(path[0], []).append(path[1:])
    if not (here or below) or not isinstance(value, (dict, list)) or not granular(schema, value):
        return value
    if isinstance(value, list):
        items: Schema = schema.get("items") or {}
        elements = [(element(schema, item), item) for item in value]
        return [
            without(item, below.get(name, ()), items) for name, item in elements if name not in here
        ] or None
    kept = {
        key: without(item, below.get("f:" + key, ()), child_of(schema, key))
        for key, item in value.items()
        if "f:" + key not in here
    }
    return {key: item for key, item in kept.items() if item is not None} if kept else None


def to_v1(fields: Iterable[Path]) -> Object:
    """Return the fields as `FieldsV1`: a tree in which `.` marks a node that is itself a field."""
    tree: Object = {}
    for path in sorted(fields):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        node["."] = {}
    return {key: _without_leaf_dots(child) for key, child in tree.items() if key != "."}


def _without_leaf_dots(node: Object) -> Object:
    if set(node) == {"."}:
        return {}
    return {key: child if key == "." else _without_leaf_dots(child) for key, child in node.items()}


def from_v1(tree: Mapping[str, Any], path: Path = ()) -> set[Path]:
    """Return the fields of a `FieldsV1`."""
    fields: set[Path] = set()
    for key, child in tree.items():
        if key == ".":
            fields.add(path)
        elif child:
            fields |= from_v1(child, (*path, key))
        else:
            fields.add((*path, key))
    return fields


def field_path(path: Path) -> str:
    """Return a field as messages of conflicts print it: `.spec.containers[name="a"].image`."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            text += "." + rest
        elif kind == "v":
            text += f"[={rest}]"
        else:
            keys = json.loads(rest)
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items()) + "]"
    return text
