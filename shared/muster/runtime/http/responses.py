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
from muster.objects.meta import fault, path_of
from muster.policy.reasons import Reason
from muster.runtime.outcome import Outcome, OutcomeKind

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of the largest body that is read: the API server takes 3 MiB of JSON, and adds managedFields."""

_TOO_LARGE = f"body: the event is larger than {BODY_LIMIT} bytes"
BODY_TOO_LARGE = Outcome(OutcomeKind.UNREADABLE, Reason.UNREADABLE_EVENT, _TOO_LARGE, status=413)

ANSWER_LIMIT = 768
"""Bytes of the body of an answer that is no success.

Knative's dispatcher (0.47.0) ends with a panic when it makes a dead letter of a longer one
(`dispatchExecutionInfoTransformers` in pkg/kncloudevents/event_dispatcher.go).
"""


@dataclass(frozen=True)
class HttpAnswer:
    """An HTTP response, without the web framework that sends it."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


OUTCOMES: Mapping[type[errors.ClusterError], tuple[OutcomeKind, Reason, int | None]] = {
    errors.Conflict: (OutcomeKind.REQUEUE, Reason.CONFLICT, 409),
    errors.AlreadyExists: (OutcomeKind.REQUEUE, Reason.CONFLICT, 409),
    errors.TooManyRequests: (OutcomeKind.REQUEUE, Reason.UNAVAILABLE, 429),
    errors.Unavailable: (OutcomeKind.REQUEUE, Reason.UNAVAILABLE, 503),
    errors.Expired: (OutcomeKind.REQUEUE, Reason.UNAVAILABLE, 503),
    # The role may be granted, or the credentials renewed, before the retries end.
    errors.Unauthorized: (OutcomeKind.REQUEUE, Reason.FORBIDDEN, 503),
    errors.Forbidden: (OutcomeKind.REQUEUE, Reason.FORBIDDEN, 503),
    errors.Terminating: (OutcomeKind.NOTHING, Reason.DELETED, None),
    errors.Gone: (OutcomeKind.NOTHING, Reason.DELETED, None),
    errors.ApiGone: (OutcomeKind.NOTHING, Reason.API_NOT_SERVED, None),
}
"""The kind, reason and HTTP status of an event for each class of API errors that is no bug."""


def of_error(error: Exception) -> Outcome:
    """Return the outcome of an event whose step raised an error."""
    if isinstance(error, UnreadableEvent):
        return Outcome(OutcomeKind.UNREADABLE, Reason.UNREADABLE_EVENT, str(error))
    if isinstance(error, ValidationError):
        message = f"the cluster's {error.title}: {': '.join(first_fault(error))}"
        return Outcome(OutcomeKind.BUG, Reason.UNREADABLE_OBJECT, message, error=error)
    if not isinstance(error, errors.ClusterError):
        # Senders get the message. The text of such an error may have anything in it; the log has its trace.
        return Outcome(OutcomeKind.BUG, Reason.UNEXPECTED_ERROR, type(error).__name__, error=error)
    for known in type(error).__mro__:
        if known in OUTCOMES:
            kind, reason, status = OUTCOMES[known]
            return Outcome(kind, reason, error.message, status=status, retry_after=error.retry_after)
    return Outcome(OutcomeKind.BUG, Reason.UNEXPECTED_ERROR, error.message, error=error)


def first_fault(error: ValidationError) -> tuple[str, str]:
    """Return the path and the words of the first fault, without the value."""
    found = error.errors(include_url=False, include_input=False)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return path_of(found[0]["loc"]), f"{fault(found[0])}{more}"


def answer(outcome: Outcome, reply: HTTPMessage | None = None) -> HttpAnswer:
    """Return the response to an event; `reply` is the CloudEvent to answer with, if any."""
    if outcome.kind in {OutcomeKind.DONE, OutcomeKind.NOTHING}:
        return HttpAnswer(200, reply.headers, reply.body) if reply else HttpAnswer(outcome.http_status)
    headers = {"Content-Type": "application/json"}
    if outcome.kind is OutcomeKind.REQUEUE:
        headers["Retry-After"] = str(max(1, math.ceil(outcome.retry_after or 0)))
    message = outcome.message[:ANSWER_LIMIT]
    while len(body := json.dumps({"reason": outcome.reason, "message": message}).encode()) > ANSWER_LIMIT:
        message = message[:-1]
    return HttpAnswer(outcome.http_status, headers, body)
