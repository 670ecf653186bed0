"""Errors: `ApiError` with its Status object, and `FieldError` for validation.

Statuses, reasons and details are those of k8s.io/apimachinery v0.37.1, `pkg/api/errors/errors.go` and
`pkg/util/validation/field/errors.go`; messages say the same in fewer words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FieldError:
    """A validation error of a field."""

    type: str
    field: str
    detail: str = ""
    value: Any = None

    @property
    def message(self) -> str:
        """The message without the path: `Invalid: 3: must be greater than or equal to 1`."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.type.removeprefix("FieldValue")).capitalize()
        value = "" if self.value is None else json.dumps(self.value, ensure_ascii=False)
        return ": ".join(filter(None, (words, value, self.detail)))

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


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
        self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> dict[str, Any]:
        """Return the `Status` object for the response."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = dict(self.details)
        return status | {"code": self.code}


def _about(
    code: int, reason: str, group: str, resource: str, name: str, text: str, causes: Iterable[object] = ()
) -> ApiError:
    """Return an error about an object; Go prints its resource or kind with the group: `jobs.batch`."""
    qualified = f"{resource}.{group}" if group else resource
    about = details(group, resource, name) | ({"causes": list(causes)} if causes else {})
    return ApiError(code, reason, f'{qualified} "{name}" {text}', about)


def details(group: str, resource: str, name: str) -> dict[str, Any]:
    """Return the `details` of a Status about an object."""
    named = {"name": name, "group": group, "kind": resource}
    return {key: value for key, value in named.items() if value}


def not_found(group: str, plural: str, name: str) -> ApiError:
    """404: no object has that name."""
    return _about(404, "NotFound", group, plural, name, "not found")


def no_such_path() -> ApiError:
    """404: nothing is served at the path."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(group: str, plural: str, name: str) -> ApiError:
    """409: an object of that name exists, perhaps one that is being deleted."""
    return _about(409, "AlreadyExists", group, plural, name, "already exists")


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(group: str, plural: str, name: str, detail: str = STALE) -> ApiError:
    """409: a precondition does not hold, usually the one on resourceVersion."""
    return _about(409, "Conflict", group, plural, name, f"cannot be changed: {detail}")


def bad_request(message: str) -> ApiError:
    """400: the request is malformed."""
    return ApiError(400, "BadRequest", message)


def refused(
    group: str, plural: str, name: str, detail: str, causes: Iterable[dict[str, str]] = ()
) -> ApiError:
    """403: an admission plugin rejects the request."""
    return _about(403, "Forbidden", group, plural, name, f"is forbidden: {detail}", causes)


def invalid_object(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> ApiError:
    """422: an object is invalid; lists every distinct error."""
    distinct = {str(error): error for error in errors}
    causes = [{"reason": e.type, "message": e.message, "field": e.field} for e in distinct.values()]
    return _about(422, "Invalid", group, kind, name, f"is invalid: {', '.join(distinct)}", causes)


def unsupported_media_type(content_type: str) -> ApiError:
    """415: the media type of a body is not known, or not supported by its kind."""
    return ApiError(415, "UnsupportedMediaType", f"a body of {content_type} is not read here", {})


def method_not_allowed() -> ApiError:
    """405: the resource does not support the verb."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def expired(message: str) -> ApiError:
    """410: a resourceVersion older than the history."""
    return ApiError(410, "Expired", message)
