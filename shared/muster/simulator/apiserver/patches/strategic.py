"""Strategic merge patch: a merge patch with merge keys for lists and with directives.

The rules are those of k8s.io/apimachinery v0.37.1, `pkg/util/strategicpatch/patch.go`; the schemas
give `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muster.simulator.apiserver.objects import Object, copied
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import ApiError, bad_request

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
FROM_PRIMITIVES = "$deleteFromPrimitiveList/"
ORDER = "$setElementOrder/"


def strategic_merge(current: Object, patch: Any, schema: Schema) -> Object:
    """Return the object after a strategic merge patch."""
    if not isinstance(patch, dict):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    return _merge_map(copied(current), patch, schema)


def _merge_map(current: Object, patch: Object, schema: Schema) -> Object:
    directive = patch.get(DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise bad_request(f"Unknown patch type: {directive} in map")
    _retain_keys(current, patch)
    result = dict(current)
    for key, value in patch.items():
        if key in {DIRECTIVE, RETAIN_KEYS} or key.startswith(ORDER):
            continue
        if key.startswith(FROM_PRIMITIVES):
            _delete_primitives(result, key.removeprefix(FROM_PRIMITIVES), value)
        elif value is None:
            result.pop(key, None)
        else:
            order = patch.get(ORDER + key)
            result[key] = _merge_value(result.get(key), value, _child(schema, key), order)
    for key, order in patch.items():
        name = key.removeprefix(ORDER)
        if key.startswith(ORDER) and name not in patch and isinstance(result.get(name), list):
            result[name] = _ordered(result[name], [], order, _child(schema, name), result[name])
    return result


def _merge_value(current: Any, value: Any, schema: Schema, order: Any) -> Any:
    if isinstance(value, dict):
        if not isinstance(current, dict):
            return _merge_map({}, value, schema)
        return _merge_map(current, value, schema)
    if isinstance(value, list) and _merges(schema):
        return _merge_list(current if isinstance(current, list) else [], value, schema, order)
    if isinstance(value, list):
        return [_without_directives(item) for item in value]
    return value


def _merge_list(current: list[Any], patch: list[Any], schema: Schema, order: Any) -> list[Any]:
    key = schema.get("x-kubernetes-patch-merge-key")
    if key is None:
        merged = [*current, *(item for item in patch if item not in current)]
        return _ordered(merged, patch, order, schema, current)
    if any(isinstance(item, dict) and item.get(DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if DIRECTIVE not in item]
    merged = list(current)
    items: Schema = schema.get("items") or {}
    for item in patch:
        key_value = _key_of(item, key)
        if item.get(DIRECTIVE) == "delete":
            merged = [old for old in merged if old.get(key) != key_value]
            continue
        index = next((i for i, old in enumerate(merged) if old.get(key) == key_value), None)
        if index is None:
            merged.append(_merge_map({}, item, items))
        else:
            merged[index] = _merge_map(merged[index], item, items)
    return _ordered(merged, patch, order, schema, current)


def _key_of(item: Any, key: str) -> Any:
    if not isinstance(item, dict) or key not in item:
        shown = " ".join(f"{name}:{value}" for name, value in sorted(item.items())) if item else ""
        raise ApiError(500, "", f"map: map[{shown}] does not contain declared merge key: {key}")
    return item[key]


def _ordered(merged: list[Any], patch: list[Any], order: Any, schema: Schema, server: list[Any]) -> list[Any]:
    """Return the merged list in the order of `$setElementOrder`, else of the patch; others stay in place."""
    key = schema.get("x-kubernetes-patch-merge-key")

    def identity(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    plain = [item for item in patch if not (isinstance(item, dict) and DIRECTIVE in item)]
    sequence = [identity(item) for item in (order if isinstance(order, list) else plain)]
    if not patch:
        named = [item for item in merged if identity(item) in sequence]
    else:
        named = [item for item in merged if identity(item) in sequence or item in patch]
    named.sort(
        key=lambda item: sequence.index(identity(item)) if identity(item) in sequence else len(sequence)
    )
    others = [item for item in merged if item not in named]
    return _interleaved(others, named, [identity(item) for item in server], identity)


def _interleaved(
    left: list[Any], right: list[Any], server: list[Any], identity: Callable[[Any], Any]
) -> list[Any]:
    """Return both lists as one; an item of `left` goes first only if the server has it before `right`'s."""
    result: list[Any] = []
    left, right = list(left), list(right)
    while left and right:
        first, second = identity(left[0]), identity(right[0])
        left_first = first in server and second in server and server.index(first) < server.index(second)
        result.append((left if left_first else right).pop(0))
    return result + left + right


def _merges(schema: Schema) -> bool:
    return "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(",")


def _child(schema: Schema, key: str) -> Schema:
    child = (schema.get("properties") or {}).get(key) or schema.get("additionalProperties")
    return child if isinstance(child, dict) else {}


def _retain_keys(current: Object, patch: Object) -> None:
    keys = patch.get(RETAIN_KEYS)
    if keys is None:
        return
    if not isinstance(keys, list) or not set(patch) - {RETAIN_KEYS, DIRECTIVE} <= set(keys):
        raise bad_request("error when applying patch: bad retainKeys format")
    for key in list(current):
        if key not in keys:
            del current[key]


def _delete_primitives(obj: Object, key: str, values: Any) -> None:
    if not isinstance(values, list):
        raise bad_request("error when applying patch: bad deleteFromPrimitiveList format")
    if isinstance(obj.get(key), list):
        obj[key] = [item for item in obj[key] if item not in values]


def _without_directives(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: value for key, value in item.items() if key != DIRECTIVE}
    return item
