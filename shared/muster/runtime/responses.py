"""From what happened to the HTTP answer: the tables of design section "Events are hints".

What a sender makes of an answer (knative/eventing v0.47, pkg/kncloudevents/retries.go): a broker retries 404,
408, 409, 429 and everything from 500, and hands all else to the dead letter at once. A 2xx must have an empty
body or be exactly one CloudEvent: with any other body the delivery counts as failed.
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
"""Characters of a message that are sent; a dead letter keeps 1024 bytes of the whole body."""


@dataclass(frozen=True)
class HttpAnswer:
    """An HTTP response, without the web framework that sends it."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Meaning:
    """What one class of API errors means for the event."""

    kind: OutcomeKind
    reason: Reason
    status: int | None = None


MEANINGS: Mapping[type[errors.ClusterError], Meaning] = {
    errors.Conflict: Meaning(OutcomeKind.REQUEUE, Reason.CONFLICT, 409),
    errors.AlreadyExists: Meaning(OutcomeKind.REQUEUE, Reason.ALREADY_EXISTS, 409),
    errors.TooManyRequests: Meaning(OutcomeKind.REQUEUE, Reason.TOO_MANY_REQUESTS, 429),
    errors.Unavailable: Meaning(OutcomeKind.REQUEUE, Reason.UNAVAILABLE, 503),
    DeadlineExceeded: Meaning(OutcomeKind.REQUEUE, Reason.DEADLINE_EXCEEDED, 503),
    errors.Expired: Meaning(OutcomeKind.REQUEUE, Reason.EXPIRED, 503),
    # Somebody may grant the role or renew the credentials; until then nothing is lost.
    errors.Unauthorized: Meaning(OutcomeKind.REQUEUE, Reason.UNAUTHORIZED, 503),
    errors.Forbidden: Meaning(OutcomeKind.REQUEUE, Reason.FORBIDDEN, 503),
    errors.Terminating: Meaning(OutcomeKind.NOTHING, Reason.DELETED),
    errors.Gone: Meaning(OutcomeKind.NOTHING, Reason.OBJECT_GONE),
    errors.ApiGone: Meaning(OutcomeKind.NOTHING, Reason.API_NOT_SERVED),
    # The server will never accept this request, so who made it is wrong: Muster.
    errors.Invalid: Meaning(OutcomeKind.BUG, Reason.INVALID),
}
_UNFORESEEN = Meaning(OutcomeKind.BUG, Reason.UNEXPECTED_ERROR)


def of_error(error: Exception) -> Outcome:
    """What an error raised by a step means for its event."""
    if isinstance(error, UnreadableEvent):
        return Outcome(OutcomeKind.UNREADABLE, Reason.UNREADABLE_EVENT, str(error))
    if isinstance(error, ValidationError):
        path, words = first_fault(error)
        return Outcome(
            OutcomeKind.BUG,
            Reason.UNREADABLE_OBJECT,
            f"the cluster's {error.title}: {path}: {words}",
            error=error,
        )
    if not isinstance(error, errors.ClusterError):
        words = f"{type(error).__name__}: {error}"
        return Outcome(_UNFORESEEN.kind, _UNFORESEEN.reason, words, error=error)
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
    """Path and words of the first fault, without the value and the links that pydantic would print."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    path = ".".join(str(part) for part in faults[0]["loc"])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return path, f"{faults[0]['msg']}{more}"


def answer(outcome: Outcome, reply: HTTPMessage | None, retry_after_seconds: float) -> HttpAnswer:
    """The response to an event.

    Args:
        outcome: what became of the event.
        reply: the one CloudEvent to answer with, if there is one.
        retry_after_seconds: what to ask for when the event must come again and the API server named no time.
    """
    if outcome.kind in {OutcomeKind.DONE, OutcomeKind.NOTHING}:
        return HttpAnswer(200, reply.headers, reply.body) if reply else HttpAnswer(outcome.http_status)
    headers = {"Content-Type": "application/json"}
    if outcome.kind is OutcomeKind.REQUEUE:
        seconds = retry_after_seconds if outcome.retry_after is None else outcome.retry_after
        headers["Retry-After"] = str(max(1, math.ceil(seconds)))
    body = {"reason": outcome.reason, "message": outcome.message[:MESSAGE_LIMIT]}
    return HttpAnswer(outcome.http_status, headers, json.dumps(body).encode())
