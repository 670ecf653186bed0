"""Errors of the API server, one class for each kind; all other modules check the class, never the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MESSAGE_LIMIT = 1024
"""Characters kept of a server's message, so that logs and conditions show little of a body."""


class ClusterError(Exception):
    """The API server refused a request, or did not answer it (`status` 0); `retry_after` is in seconds."""

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
    """410: a resourceVersion or a continue token is too old; list again."""

    token = ""
    """A continue token at the same position of the list as it is now; "" if the server sent none."""


_BY_STATUS: Mapping[int, type[ClusterError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: ApiGone,
    408: Unavailable,
    409: Conflict,
    410: Expired,
    429: TooManyRequests,
}


def from_answer(status: int, body: Any, headers: Mapping[str, str]) -> ClusterError:
    """Return the error of an answer with a status of 400 or above."""
    is_status = isinstance(body, Mapping) and body.get("kind") == "Status"
    answer: Mapping[str, Any] = body if is_status else {}
    reason, details = str(answer.get("reason") or ""), answer.get("details") or {}
    causes = {cause.get("reason") for cause in details.get("causes") or ()}
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 else Invalid)
    if status == 404 and details.get("name"):
        kind = Gone
    elif status == 409 and reason == "AlreadyExists":
        kind = AlreadyExists
    elif status == 403 and "NamespaceTerminating" in causes:
        kind = Terminating
    elif status == 504 and "ResourceVersionTooLarge" in causes:
        kind = VersionTooLarge
    seconds = headers.get("Retry-After") or ""
    message = str(answer.get("message") or body or f"HTTP {status}")
    error = kind(
        message, status=status, reason=reason, retry_after=float(seconds) if seconds.isdigit() else None
    )
    if isinstance(error, Expired):
        error.token = (answer.get("metadata") or {}).get("continue") or ""
    return error
