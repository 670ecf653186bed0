"""JSON patch (RFC 6902, by the `jsonpatch` library) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.objects import Object, copied
from muster.simulator.apiserver.status import ApiError, bad_request


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
    return dict(merged(current, patch))


def merged(current: Any, patch: Any) -> Any:
    """Return the value after a merge patch: null removes a field, lists are replaced."""
    if not isinstance(patch, dict):
        return patch
    result: Object = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
