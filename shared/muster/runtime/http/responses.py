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
from muster.objects.faults import fault, path_of
from muster.policy.reasons import Reason
from muster.runtime.config import Settings
from muster.runtime.http.bodies import BodyRefusal
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.runtime.sharing.deadline_client import DeadlineExceeded
from muster.runtime.sharing.list_memory import NoRoomForObjects, TooManyObjects

BODY_LIMIT = 768
"""Bytes of the body of an answer that is no success.

Knative's dispatcher (0.47.0) ends with a panic when it makes a dead letter of a longer one, and loses all
events that wait in it (`dispatchExecutionInfoTransformers` in pkg/kncloudevents/event_dispatcher.go).
"""

LONGEST_CHARACTER = 12
"""Bytes of a character that JSON escapes as two surrogates."""


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
    errors.VersionTooLarge: Meaning(OutcomeKind.REQUEUE, Reason.UNAVAILABLE, 503),
    DeadlineExceeded: Meaning(OutcomeKind.REQUEUE, Reason.DEADLINE_EXCEEDED, 503),
    NoRoomForObjects: Meaning(OutcomeKind.REQUEUE, Reason.TOO_MANY_OBJECTS, 503),
    # Sent again, the event would need as much memory again.
    TooManyObjects: Meaning(OutcomeKind.NOTHING, Reason.TOO_MANY_OBJECTS),
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
    """Return the outcome of an event whose step raised an error."""
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
        # Senders get the message. The text of such an error may have anything in it; the log has its trace.
        return Outcome(_UNFORESEEN.kind, _UNFORESEEN.reason, type(error).__name__, error=error)
    meaning = next((MEANINGS[known] for known in type(error).__mro__ if known in MEANINGS), _UNFORESEEN)
    return Outcome(
        meaning.kind,
        meaning.reason,
        error.message,
        status=meaning.status,
        retry_after=error.retry_after,
        error=error if meaning.kind is OutcomeKind.BUG else None,
    )


def of_refusal(refusal: BodyRefusal, settings: Settings, length: int | None) -> Outcome:
    """Return the outcome of a request whose body was not read; `length` is its Content-Length."""
    event = f"body: the event{f' of {length} bytes' if length else ''}"
    match refusal:
        case BodyRefusal.TOO_LARGE:
            message = f"{event} is larger than {settings.body_limit_bytes} bytes (MUSTER_BODY_LIMIT_BYTES)"
            return Outcome(OutcomeKind.UNREADABLE, Reason.BODY_TOO_LARGE, message, status=413)
        case BodyRefusal.TOO_SLOW:
            message = f"{event} did not arrive within {settings.body_seconds:g} seconds (MUSTER_BODY_SECONDS)"
            return Outcome(OutcomeKind.REQUEUE, Reason.BODY_TOO_SLOW, message, status=408)
        case BodyRefusal.NO_ROOM:
            message = (
                f"{event} and those of other requests are larger than {settings.bodies_limit_bytes} bytes "
                "(MUSTER_BODIES_LIMIT_BYTES)"
            )
            return Outcome(OutcomeKind.REQUEUE, Reason.TOO_MANY_BODIES, message, status=503)
        case BodyRefusal.NO_THREAD:
            message = (
                f"all {settings.threads} threads are taken, and {settings.queue_limit} requests wait for one "
                "(MUSTER_WAITING)"
            )
            return Outcome(OutcomeKind.REQUEUE, Reason.TOO_MANY_WAITING, message, status=503)


def first_fault(error: ValidationError) -> tuple[str, str]:
    """Return the path and the words of the first fault, without the value."""
    found = error.errors(include_url=False, include_input=False)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return path_of(found[0]["loc"]), f"{fault(found[0])}{more}"


def answer(outcome: Outcome, reply: HTTPMessage | None, retry_after_seconds: float) -> HttpAnswer:
    """Return the response to an event.

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
    return HttpAnswer(outcome.http_status, headers, _refusal(outcome.reason, outcome.message))


def _refusal(reason: str, message: str) -> bytes:
    """Return the body of an answer that is no success, with as much of the message as BODY_LIMIT allows."""
    kept = message[:BODY_LIMIT]
    while True:
        body = json.dumps({"reason": reason, "message": kept}).encode()
        if len(body) <= BODY_LIMIT:
            return body
        kept = kept[: -max(1, (len(body) - BODY_LIMIT) // LONGEST_CHARACTER)]
