"""The HTTP answer to an event, from its outcome.

Brokers retry after 404, 408, 409, 429 and 5xx, and send the event to the dead letter sink at once after any
other error (knative/eventing v0.47, pkg/kncloudevents/retries.go). A 2xx must have an empty body or be
exactly one CloudEvent: with any other body the delivery counts as failed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from cloudevents.core.bindings.http import HTTPMessage
from pydantic import ValidationError

from muster.cluster import errors
from muster.events.parse import UnreadableEvent
from muster.policy.reasons import Reason
from muster.runtime.deadline_client import DeadlineExceeded
from muster.runtime.outcome import Outcome, OutcomeKind

MESSAGE_LIMIT = 800
"""Characters of a message in an answer; a dead letter keeps 1024 bytes of the body."""


@dataclass(frozen=True)
class HttpAnswer:
    """An HTTP response, without the web framework that sends it."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Meaning:
    """The outcome of an event for one class of API errors."""

    kind: OutcomeKind
    reason: Reason
    status: int | None = None


MEANINGS: Mapping[type[errors.ClusterError], Meaning] = {
    errors.Conflict: Meaning(OutcomeKind.REQUEUE, Reason.CONFLICT, 409),
    errors.AlreadyExists: Meaning(OutcomeKind.REQUEUE, Reason.ALREADY_EXISTS, 409),
    errors.TooManyRequests: Meaning(OutcomeKind.REQUEUE, Reason.TOO_MANY_REQUESTS, 429),
    errors.Unavailable: Meaning(OutcomeKind.REQUEUE, Reason.UNAVAILABLE, 503),
    errors.AnswerTooLarge: Meaning(OutcomeKind.REQUEUE, Reason.UNAVAILABLE, 503),
    DeadlineExceeded: Meaning(OutcomeKind.REQUEUE, Reason.DEADLINE_EXCEEDED, 503),
    errors.Expired: Meaning(OutcomeKind.REQUEUE, Reason.EXPIRED, 503),
    # The role may be granted, or the credentials renewed, before the retries end.
    errors.Unauthorized: Meaning(OutcomeKind.REQUEUE, Reason.UNAUTHORIZED, 503),
    errors.Forbidden: Meaning(OutcomeKind.REQUEUE, Reason.FORBIDDEN, 503),
    errors.Terminating: Meaning(OutcomeKind.NOTHING, Reason.DELETED),
    errors.Gone: Meaning(OutcomeKind.NOTHING, Reason.OBJECT_GONE),
    errors.ApiGone: Meaning(OutcomeKind.NOTHING, Reason.API_NOT_SERVED),
    # The server will never accept this request: a bug of Muster.
    errors.Invalid: Meaning(OutcomeKind.BUG, Reason.INVALID),
}
_UNFORESEEN = Meaning(OutcomeKind.BUG, Reason.UNEXPECTED_ERROR)


def of_error(error: Exception) -> Outcome:
    """The outcome of an event whose step raised an error."""
    if isinstance(error, UnreadableEvent):
        return Outcome(OutcomeKind.UNREADABLE, Reason.UNREADABLE_EVENT, str(error))
    if isinstance(error, ValidationError):
        path, message = first_fault(error)
        return Outcome(
            OutcomeKind.BUG,
            Reason.UNREADABLE_OBJECT,
            f"the cluster's {error.title}: {path}: {message}",
            error=error,
        )
    if not isinstance(error, errors.ClusterError):
        message = f"{type(error).__name__}: {error}"
        return Outcome(_UNFORESEEN.kind, _UNFORESEEN.reason, message, error=error)
    meaning = next((MEANINGS[known] for known in type(error).__mro__ if known in MEANINGS), _UNFORESEEN)
    return Outcome(
        meaning.kind,
        meaning.reason,
        error.message,
        status=meaning.status,
        retry_after=error.retry_after,
        error=error if meaning.kind is OutcomeKind.BUG else None,
    )


def first_fault(error: ValidationError) -> tuple[str, str]:
    """The path and message of the first fault, without the value and links that pydantic would print."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    path = ".".join(str(part) for part in faults[0]["loc"])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return path, f"{faults[0]['msg']}{more}"


def answer(outcome: Outcome, reply: HTTPMessage | None, retry_after_seconds: float) -> HttpAnswer:
    """The response to an event.

    Args:
        outcome: the outcome of the event.
        reply: the CloudEvent to answer with, if any.
        retry_after_seconds: the Retry-After of a requeued event if the API server sent none.
    """
    if outcome.kind in {OutcomeKind.DONE, OutcomeKind.NOTHING}:
        return HttpAnswer(200, reply.headers, reply.body) if reply else HttpAnswer(outcome.http_status)
    headers = {"Content-Type": "application/json"}
    if outcome.kind is OutcomeKind.REQUEUE:
        seconds = retry_after_seconds if outcome.retry_after is None else outcome.retry_after
        headers["Retry-After"] = str(max(1, math.ceil(seconds)))
    body = {"reason": outcome.reason, "message": outcome.message[:MESSAGE_LIMIT]}
    return HttpAnswer(outcome.http_status, headers, json.dumps(body).encode())
