"""Errors: `ApiError` with its Status object, and `FieldError` for validation.

Reasons and messages are those of k8s.io/apimachinery v0.37.1, `pkg/api/errors/errors.go` and
`pkg/util/validation/field/errors.go`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

OMITTED: Final = object()
"""The value of a field error whose message shows none."""

TYPES_WITHOUT_VALUE = frozenset(
    {"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "InternalError"}
)

TITLES: Final[Mapping[str, str]] = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "InternalError": "Internal error",
}


@dataclass(frozen=True)
class FieldError:
    """A validation error of a field."""

    type: str
    field: str
    detail: str = ""
    value: Any = OMITTED

    @property
    def message(self) -> str:
        """The message without the path: `Invalid value: 3: must be greater than or equal to 1`."""
        text = TITLES[self.type]
        if self.type not in TYPES_WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {go_format(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def go_format(value: Any) -> str:
    """Return a value as Go prints it in a field error: strings quoted, everything else as JSON."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """Return the error of a malformed value."""
    return FieldError("FieldValueInvalid", field, detail, value)


def required(field: str, detail: str = "") -> FieldError:
    """Return the error of a missing value."""
    return FieldError("FieldValueRequired", field, detail)


def forbidden(field: str, detail: str = "") -> FieldError:
    """Return the error of a well-formed value that is not permitted here or now."""
    return FieldError("FieldValueForbidden", field, detail)


def duplicate(field: str, value: Any) -> FieldError:
    """Return the error of a value that must be unique and is not."""
    return FieldError("FieldValueDuplicate", field, "", value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Return the error of a value that is not in an enumeration."""
    values = ", ".join(json.dumps(each) for each in supported)
    return FieldError("FieldValueNotSupported", field, f"supported values: {values}", value)


def too_many(field: str, count: int, limit: int) -> FieldError:
    """Return the error of a list with too many items."""
    noun = "item" if limit == 1 else "items"
    return FieldError("FieldValueTooMany", field, f"must have at most {limit} {noun}", count)


def too_long(field: str, limit: int) -> FieldError:
    """Return the error of a string longer than `limit` bytes."""
    return FieldError("FieldValueTooLong", field, f"may not be more than {limit} bytes")


def immutable(field: str, value: Any = None) -> FieldError:
    """Return the error of an immutable field that was changed."""
    return invalid(field, value, "field is immutable")


class ApiError(Exception):
    """The failure of a request: the HTTP status, and reason, message and details of its Status."""

    def __init__(
        self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None, token: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.token = token

    def status(self) -> dict[str, Any]:
        """Return the `Status` object for the response."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.token} if self.token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = dict(self.details)
        return status | {"code": self.code}


def qualified(group: str, resource: str) -> str:
    """Return a plural or kind with its group, as Go prints `GroupResource` and `GroupKind`: `jobs.batch`."""
    return f"{resource}.{group}" if group else resource


def _details(group: str, resource: str, name: str) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": resource}
    return {key: value for key, value in details.items() if value}


def not_found(group: str, plural: str, name: str) -> ApiError:
    """404: no object has that name."""
    message = f'{qualified(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(group, plural, name))


def no_such_path() -> ApiError:
    """404: nothing is served at the path."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(group: str, plural: str, name: str, *, deleting: bool = False) -> ApiError:
    """409: an object of that name exists, perhaps one that is being deleted."""
    message = f'{qualified(group, plural)} "{name}" already exists'
    if deleting:
        message = f"object is being deleted: {message}"
    return ApiError(409, "AlreadyExists", message, _details(group, plural, name))


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(group: str, plural: str, name: str, detail: str = STALE) -> ApiError:
    """409: a precondition does not hold, usually the one on resourceVersion."""
    message = f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {detail}'
    return ApiError(409, "Conflict", message, _details(group, plural, name))


def bad_request(message: str) -> ApiError:
    """400: the request is malformed."""
    return ApiError(400, "BadRequest", message)


def refused(
    group: str, plural: str, name: str, detail: str, causes: list[dict[str, str]] | None = None
) -> ApiError:
    """403: an admission plugin rejects the request."""
    message = f'{qualified(group, plural)} "{name}" is forbidden: {detail}'
    details = _details(group, plural, name)
    return ApiError(403, "Forbidden", message, details | ({"causes": causes} if causes else {}))


def invalid_object(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> ApiError:
    """422: an object is invalid; lists every distinct error."""
    distinct = list({str(error): error for error in errors}.values())
    texts = [str(error) for error in distinct]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": e.type, "message": e.message, "field": e.field} for e in distinct]
    details = _details(group, kind, name) | {"causes": causes}
    return ApiError(422, "Invalid", f'{qualified(group, kind)} "{name}" is invalid: {listed}', details)


def unsupported_media_type(content_type: str) -> ApiError:
    """415: the media type of a body is not known, or not supported by its kind."""
    return ApiError(415, "UnsupportedMediaType", f"a body of {content_type} is not read here", {})


def method_not_allowed() -> ApiError:
    """405: the resource does not support the verb."""
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
    )


def version_too_large(asked: int, current: int) -> ApiError:
    """504: a resourceVersion that the server has not reached; the real one waits three seconds before."""
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def expired(message: str, token: str = "") -> ApiError:
    """410: a resourceVersion or continue token older than the history."""
    return ApiError(410, "Expired", message, token=token)


def success(group: str, plural: str, name: str, uid: str) -> dict[str, Any]:
    """Return the `Status` of a completed deletion."""
    details = _details(group, plural, name) | {"uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
