"""Errors of the API server, one class for each kind.

This module alone maps HTTP statuses to classes; all other modules check the class, never the status.
`muster.runtime.http.responses` maps the classes to answers to events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MESSAGE_LIMIT = 1024
"""Characters kept of a server's message, so that logs and conditions show little of a body."""

RETRY_AFTER_LIMIT = 600.0
"""The most seconds of a Retry-After; a header may say `inf`."""


class ClusterError(Exception):
    """The API server refused a request, or did not answer it.

    Attributes:
        status: the HTTP status; 0 without an answer.
        reason: `reason` of the Kubernetes Status object, as the API spells it; may be empty.
        message: the server's message, cut to 1024 characters.
        retry_after: the Retry-After in seconds; None if the server sent none.
    """

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message[:MESSAGE_LIMIT])
        self.message = message[:MESSAGE_LIMIT]
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class Gone(ClusterError):
    """404: the object does not exist, or its API is not served."""


class ApiGone(Gone):
    """404 without a Status of an object: the group, version or resource is not served."""


class AlreadyExists(ClusterError):
    """409, reason AlreadyExists: the name is taken."""


class Conflict(ClusterError):
    """409, any other reason: the object was written in between, or is being deleted."""


class Invalid(ClusterError):
    """400, 413, 415 or 422: the server will never accept this request."""


class Forbidden(ClusterError):
    """403: refused by RBAC, an admission plugin or a quota."""


class Terminating(Forbidden):
    """403 because the namespace is being deleted: nothing new may be created in it."""


class Unauthorized(ClusterError):
    """401: the credentials are missing, wrong or expired."""


class TooManyRequests(ClusterError):
    """429: the server limits the rate of requests."""


class Unavailable(ClusterError):
    """5xx, a timeout, or no connection: the request may or may not have been carried out."""


class VersionTooLarge(Unavailable):
    """504: the server waited three seconds for a resourceVersion that it has not reached."""


class Expired(ClusterError):
    """410: a resourceVersion or a continue token is too old; list again.

    Attributes:
        token: a continue token at the same position of the list as it is now; "" if the server sent none.
    """

    token = ""


def from_answer(status: int, body: Any, headers: Mapping[str, str]) -> ClusterError:
    """Return the error of an answer with a status of 400 or above."""
    status_object = _mapping(body) if _mapping(body).get("kind") == "Status" else {}
    reason = str(status_object.get("reason") or "")
    message = str(status_object.get("message") or body or f"HTTP {status}")
    error = _class_of(status, reason, status_object)(
        message, status=status, reason=reason, retry_after=_seconds(headers.get("Retry-After"))
    )
    if isinstance(error, Expired):
        error.token = str(_mapping(status_object.get("metadata")).get("continue") or "")
    return error


_BY_STATUS: Mapping[int, type[ClusterError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: ApiGone,
    408: Unavailable,
    409: Conflict,
    410: Expired,
    429: TooManyRequests,
}


def _class_of(status: int, reason: str, status_object: Mapping[str, Any]) -> type[ClusterError]:
    if status == 404 and _mapping(status_object.get("details")).get("name"):
        return Gone
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExists
    if status == 403 and _has_cause(status_object, "NamespaceTerminating"):
        return Terminating
    if status == 504 and _has_cause(status_object, "ResourceVersionTooLarge"):
        return VersionTooLarge
    return _BY_STATUS.get(status, Unavailable if status >= 500 else Invalid)


def _has_cause(status_object: Mapping[str, Any], reason: str) -> bool:
    causes = _mapping(status_object.get("details")).get("causes")
    return isinstance(causes, list) and any(_mapping(cause).get("reason") == reason for cause in causes)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else min(max(0.0, float(text)), RETRY_AFTER_LIMIT)
    except ValueError:
        return None
