"""JSON patch (by the `jsonpatch` library), JSON merge patch (RFC 7386) and strategic merge patch.

A strategic merge patch has merge keys for lists, and directives; the rules are those of apimachinery v0.37.1,
`pkg/util/strategicpatch/patch.go`. `$setElementOrder` is passed over.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.objects import Object, copied
from muster.simulator.apiserver.patches.apply import child_of
from muster.simulator.apiserver.refusals import ApiError, bad_request
from muster.simulator.apiserver.schemas import Schema

DIRECTIVE = "$patch"
FROM_PRIMITIVES = "$deleteFromPrimitiveList/"
IGNORED = ("$retainKeys", "$setElementOrder/")


def json_patch(current: Object, operations: Any) -> Object:
    """Return the object after a JSON patch; ApiError 400 if it is no list, 422 if an operation fails."""
    import jsonpatch  # noqa: PLC0415 - takes 8 ms to import, and most runs need no JSON patch

    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    try:
        changed: Object = jsonpatch.apply_patch(copied(current), operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError) as error:
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message, {}) from error
    return changed


def merge_patch(current: Object, patch: Any) -> Object:
    """Return the object after a merge patch; ApiError 400 if the patch is no object."""
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch is an object")
    return dict(_merged(current, patch))


def _merged(current: Any, patch: Any) -> Any:
    """Return the value after a merge patch: null removes a field, lists are replaced."""
    if not isinstance(patch, dict):
        return patch
    result: Object = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def strategic_merge(current: Object, patch: Any, schema: Schema) -> Object:
    """Return a copy of the object after a strategic merge patch; ApiError 400 if the patch is no object."""
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a strategic merge patch is an object")
    return _merge_map(copied(current), patch, schema)


def _merge_map(current: Object, patch: Object, schema: Schema) -> Object:
    directive = patch.get(DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    result = dict(current)
    for key, value in patch.items():
        if key == DIRECTIVE or key.startswith(IGNORED):
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
        return _merge_map(current if isinstance(current, dict) else {}, value, schema)
    if isinstance(value, list) and "merge" in schema.get("x-kubernetes-patch-strategy", "").split(","):
        return _merge_list(current if isinstance(current, list) else [], value, schema)
    return value


def _merge_list(current: list[Any], patch: list[Any], schema: Schema) -> list[Any]:
    key = schema.get("x-kubernetes-patch-merge-key")
    old = {_identity(item, key): item for item in current}
    new: dict[Any, Any] = {}
    for item in patch:
        name = _identity(item, key)
        if key is None:
            new[name] = item
        elif item.get(DIRECTIVE) == "delete":
            old.pop(name, None)
        else:
            new[name] = _merge_map(old.get(name) or {}, item, schema.get("items") or {})
    added = {name: item for name, item in new.items() if name not in old}
    return list({**added, **old, **new}.values())


def _identity(item: Any, key: str | None) -> Any:
    if key is None:
        return item
    if not isinstance(item, dict) or key not in item:
        raise ApiError(500, "", f"map: {item} does not contain declared merge key: {key}")
    return item[key]
