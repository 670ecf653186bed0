"""The API server's way of saying no: `Status` objects, with the reasons and words of the real one.

Words are those of k8s.io/apimachinery v0.37.1, `pkg/api/errors/errors.go` and
`pkg/util/validation/field/errors.go`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

OMITTED: Final = object()
"""The bad value of a field error that shows none."""

WITHOUT_VALUE = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong", "InternalError"})

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
    """One thing wrong with one field of an object.

    Attributes:
        type: the machine-readable cause, `FieldValueInvalid` and the like.
        field: the path, `spec.podGroupTemplates[0].name`.
        detail: what is wrong, in the words of the real server; may be empty.
        value: the value found; shown as Go's `%v`, a quoted string or JSON.
    """

    type: str
    field: str
    detail: str = ""
    value: Any = OMITTED

    @property
    def message(self) -> str:
        """What is wrong, without the path: `Invalid value: 3: must be greater than or equal to 1`."""
        text = TITLES[self.type]
        if self.type not in WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def shown(value: Any) -> str:
    """A value as Go prints it in a field error."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    """A malformed value."""
    return FieldError("FieldValueInvalid", field, detail, value)


def required(field: str, detail: str = "") -> FieldError:
    """A value that is missing."""
    return FieldError("FieldValueRequired", field, detail)


def forbidden(field: str, detail: str = "") -> FieldError:
    """A well-formed value that may not be here or now."""
    return FieldError("FieldValueForbidden", field, detail)


def duplicate(field: str, value: Any) -> FieldError:
    """A value that must be unique and is not."""
    return FieldError("FieldValueDuplicate", field, "", value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """A value outside an enumeration."""
    words = ", ".join(json.dumps(word) for word in supported)
    return FieldError("FieldValueNotSupported", field, f"supported values: {words}", value)


def too_many(field: str, count: int, limit: int) -> FieldError:
    """A list longer than allowed."""
    noun = "item" if limit == 1 else "items"
    return FieldError("FieldValueTooMany", field, f"must have at most {limit} {noun}", count)


def too_long(field: str, limit: int) -> FieldError:
    """A text longer than allowed."""
    return FieldError("FieldValueTooLong", field, f"may not be more than {limit} bytes")


def immutable(field: str, value: Any = None) -> FieldError:
    """A changed value that may not change."""
    return invalid(field, value, "field is immutable")


class ApiError(Exception):
    """A request that is answered with a failure.

    Attributes:
        code: the HTTP status.
        reason: the machine-readable reason, `AlreadyExists` and the like.
        message: the words.
        details: `Status.details`; None leaves it out.
        token: `Status.metadata.continue`; empty leaves it out.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        *,
        token: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.token = token

    def status(self) -> dict[str, Any]:
        """The `Status` object of the answer."""
        found: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.token} if self.token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            found["reason"] = self.reason
        if self.details is not None:
            found["details"] = dict(self.details)
        return found | {"code": self.code}


def qualified(group: str, word: str) -> str:
    """A plural or a kind with its group, as Go's `GroupResource` and `GroupKind` print: `jobs.batch`."""
    return f"{word}.{group}" if group else word


def _details(group: str, word: str, name: str) -> dict[str, Any]:
    found = {"name": name, "group": group, "kind": word}
    return {key: value for key, value in found.items() if value}


def not_found(group: str, plural: str, name: str) -> ApiError:
    """404: no object of that name."""
    message = f'{qualified(group, plural)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(group, plural, name))


def no_such_path() -> ApiError:
    """404: nothing is served there."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(group: str, plural: str, name: str, *, deleting: bool = False) -> ApiError:
    """409: the name is taken, perhaps by an object on its way out."""
    message = f'{qualified(group, plural)} "{name}" already exists'
    if deleting:
        message = f"object is being deleted: {message}"
    return ApiError(409, "AlreadyExists", message, _details(group, plural, name))


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(group: str, plural: str, name: str, why: str = STALE) -> ApiError:
    """409: a precondition does not hold, usually the resourceVersion."""
    message = f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(group, plural, name))


def apply_conflict(message: str, causes: list[dict[str, str]]) -> ApiError:
    """409: server-side apply would change what another manager owns."""
    return ApiError(409, "Conflict", message, {"causes": causes})


def bad_request(message: str) -> ApiError:
    """400: the request cannot be read."""
    return ApiError(400, "BadRequest", message)


def refused(
    group: str, plural: str, name: str, why: str, causes: list[dict[str, str]] | None = None
) -> ApiError:
    """403: an admission rule says no."""
    message = f'{qualified(group, plural)} "{name}" is forbidden: {why}'
    details = _details(group, plural, name)
    return ApiError(403, "Forbidden", message, details | ({"causes": causes} if causes else {}))


def invalid_object(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> ApiError:
    """422: an object breaks rules; every broken rule is told."""
    distinct = list({str(error): error for error in errors}.values())
    texts = [str(error) for error in distinct]
    told = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": e.type, "message": e.message, "field": e.field} for e in distinct]
    details = _details(group, kind, name) | {"causes": causes}
    return ApiError(422, "Invalid", f'{qualified(group, kind)} "{name}" is invalid: {told}', details)


def unsupported_media_type(supported: Iterable[str]) -> ApiError:
    """415: this kind does not take that form of patch."""
    words = ", ".join(supported)
    message = f"the body of the request was in an unknown format - accepted media types include: {words}"
    return ApiError(415, "UnsupportedMediaType", message)


def unknown_patch() -> ApiError:
    """415: nothing takes that form of patch."""
    return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def method_not_allowed() -> ApiError:
    """405: the resource does not take that verb."""
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
    )


def expired(message: str, token: str = "") -> ApiError:
    """410: a resourceVersion or a continue token from before what is remembered.

    Args:
        message: the words.
        token: goes on where the old one pointed to.
    """
    return ApiError(410, "Expired", message, token=token)


def success(group: str, plural: str, name: str, uid: str) -> dict[str, Any]:
    """The `Status` that answers a deletion which is complete."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": _details(group, plural, name) | {"uid": uid},
    }
