"""JSON patch (RFC 6902, by the `jsonpatch` library) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.objects import Object, copied
from muster.simulator.apiserver.requests import json_type
from muster.simulator.apiserver.status import ApiError, bad_request

MAX_OPERATIONS = 10_000


def json_patch(current: Object, operations: Any) -> Object:
    """The object after a list of operations; all of them or none.

    Raises:
        ApiError: 400, this is no JSON patch; 422, an operation cannot be carried out or a `test` fails.
    """
    import jsonpatch  # noqa: PLC0415 - 8 ms that most servers never need

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
    """The value after a merge patch: null removes, lists are replaced whole."""
    if not isinstance(patch, dict):
        return patch
    found: Object = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merge_patch(found.get(key), value)
    return found


def checked_merge_patch(patch: Any) -> Object:
    """A merge patch that is an object.

    Raises:
        ApiError: 400, it is something else.
    """
    if not isinstance(patch, dict):
        what = json_type(patch)
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {what} into Go value "
            "of type map[string]interface {}"
        )
    return patch
