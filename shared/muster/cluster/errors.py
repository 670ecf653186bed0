"""What can go wrong with the API server, told apart once.

Every answer that is no success becomes one of these classes here and nowhere else; the rest of Muster asks
for the class, never for a number. `muster.runtime.responses` maps the classes to HTTP answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MESSAGE_LIMIT = 1024
"""Characters kept of a server's message, so that logs and conditions leak little of a body."""


class ClusterError(Exception):
    """The API server did not do what was asked.

    Attributes:
        status: the HTTP status; 0 when no answer came.
        reason: `reason` of the Kubernetes Status object, as the API spells it; may be empty.
        message: what the server said, cut to 1024 characters.
        retry_after: seconds the server asked to wait; None when it did not say.
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
    """404: the object, or the whole API, is not there."""


class ApiGone(Gone):
    """404 without a Status of an object: the group, version or resource is not served."""


class AlreadyExists(ClusterError):
    """409, reason AlreadyExists: the name is taken."""


class Conflict(ClusterError):
    """409, any other reason: somebody wrote in between, or the object is being deleted."""


class Invalid(ClusterError):
    """400, 413, 415 or 422: the server will never accept this request."""


class Forbidden(ClusterError):
    """403: a missing role, an admission plugin or a quota says no."""


class Terminating(Forbidden):
    """403 because the namespace is being deleted: nothing new may be created in it."""


class Unauthorized(ClusterError):
    """401: the credentials are missing, wrong or expired."""


class TooManyRequests(ClusterError):
    """429: the server asks for patience."""


class Unavailable(ClusterError):
    """5xx, a time-out, or no connection: nobody knows whether the request was carried out."""


class Expired(ClusterError):
    """410: a resourceVersion or a continue token is too old; list again.

    Attributes:
        token: with it a list goes on where the old token pointed to, showing what is there now; empty where
            the server gave none.
    """

    token = ""


def from_answer(status: int, body: Any, headers: Mapping[str, str]) -> ClusterError:
    """The error of an answer with a status of 400 or above.

    Args:
        status: the HTTP status code.
        body: the parsed body, a Kubernetes Status object when the API server wrote it.
        headers: the response headers; `Retry-After` in seconds is read.
    """
    known: Mapping[str, Any] = body if isinstance(body, Mapping) and body.get("kind") == "Status" else {}
    reason = str(known.get("reason") or "")
    message = str(known.get("message") or body or f"HTTP {status}")
    error = _class_of(status, reason, known)(
        message, status=status, reason=reason, retry_after=_seconds(headers.get("Retry-After"))
    )
    if isinstance(error, Expired):
        error.token = str((known.get("metadata") or {}).get("continue") or "")
    return error


def _class_of(status: int, reason: str, known: Mapping[str, Any]) -> type[ClusterError]:
    if status == 404:
        return Gone if (known.get("details") or {}).get("name") else ApiGone
    if status == 409:
        return AlreadyExists if reason == "AlreadyExists" else Conflict
    if status == 403 and _namespace_terminating(known):
        return Terminating
    by_status: dict[int, type[ClusterError]] = {
        401: Unauthorized,
        403: Forbidden,
        408: Unavailable,
        410: Expired,
        429: TooManyRequests,
    }
    if status in by_status:
        return by_status[status]
    return Unavailable if status >= 500 else Invalid


def _namespace_terminating(known: Mapping[str, Any]) -> bool:
    causes = (known.get("details") or {}).get("causes") or []
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
