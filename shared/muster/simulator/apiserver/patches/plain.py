"""JSON patch (RFC 6902, by the `jsonpatch` library) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.http.requests import json_type
from muster.simulator.apiserver.objects import Object, copied
from muster.simulator.apiserver.status import ApiError, bad_request

MAX_OPERATIONS = 10_000


def json_patch(current: Object, operations: Any) -> Object:
    """Return the object after a JSON patch."""
    import jsonpatch  # noqa: PLC0415 - takes 8 ms to import, and most runs need no JSON patch

    if not isinstance(operations, list):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type(operations)} into Go value "
            "of type []handlers.jsonPatchOp"
        )
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, "RequestEntityTooLarge", message)
    try:
        changed: Object = jsonpatch.apply_patch(copied(current), operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError) as error:
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message, {}) from error
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


def checked_merge_patch(patch: Any) -> Object:
    """Return the merge patch, checked to be an object."""
    if not isinstance(patch, dict):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_type(patch)} into Go value "
            "of type map[string]interface {}"
        )
    return patch
