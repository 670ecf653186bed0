"""One event to one subscriber: attempts, waits, and what came of it.

As the multi-tenant broker of knative.dev/eventing v0.47.0 does it: `pkg/broker/filter/filter_handler.go`
calls the subscriber, `pkg/kncloudevents/event_dispatcher.go` retries and makes dead letters.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import count

from muster.simulator.broker.attributes import NotAnEventError
from muster.simulator.broker.delivery import LONGEST_ANSWER, Delivery, is_retried, is_success
from muster.simulator.broker.events import CloudEvent, is_event
from muster.simulator.broker.targets import Answer, NoAnswerError, Target

Wait = Callable[[float], bool]
"""Waits so many seconds; True means that the broker is stopping and nothing is tried again."""

PASSED_HEADERS = frozenset({"x-request-id", "retry-after"})
PASSED_PREFIXES = ("knative-", "x-b3-")
TRACE_HEADERS = frozenset({"traceparent", "tracestate"})
"""Passed on by OpenTelemetry in every request that follows from an event, replies included."""

_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True)
class DeliveryOutcome:
    """The outcome of one delivery.

    Attributes:
        status: of the last attempt; 0 when no answer came, 502 for a success whose body is no event.
        attempts: how often the subscriber was called.
        reply: the event it answered with; it is not validated yet.
        passed: the headers of the answer that are passed on with a reply.
        error: the extensions a dead letter gets. Empty after a time-out and after a 502 of the broker's own:
            the real one loses the details there.
        cut_short: the broker stopped while the event waited to be tried again, so nobody has refused it.
    """

    status: int
    attempts: int = 1
    reply: CloudEvent | None = None
    passed: Mapping[str, str] = field(default_factory=dict)
    error: dict[str, str] = field(default_factory=dict)
    cut_short: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the recipient took the event."""
        return is_success(self.status)


@dataclass(frozen=True)
class Recipient:
    """A subscriber or dead letter sink.

    Attributes:
        address: what a dead letter names as `knativeerrordest`.
        headers: sent beside those of the event.
        may_reply: whether the body of a success is an event for the broker; that of a sink is ignored.
    """

    target: Target
    address: str
    headers: Mapping[str, str]
    may_reply: bool


def deliver(recipient: Recipient, event: CloudEvent, delivery: Delivery, wait: Wait) -> DeliveryOutcome:
    """Call a recipient until it accepts, refuses for good, or the retries are used up."""
    for attempt in count(1):
        outcome = replace(_once(recipient, event, delivery.timeout), attempts=attempt)
        if outcome.succeeded or not is_retried(outcome.status) or attempt > delivery.retry:
            break
        if wait(delivery.wait_before_retry(attempt - 1)):
            return replace(outcome, cut_short=True)
    return outcome


def failed_with(address: str, status: int, body: bytes) -> dict[str, str]:
    """Return the extensions with which a dead letter names the recipient that failed, and its answer."""
    return {
        "knativeerrordest": address,
        "knativeerrorcode": str(status),
        "knativeerrordata": base64.b64encode(body).decode(),
    }


def passed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a message that go on with it (`PassThroughHeaders` in `pkg/utils/headers.go`)."""
    return {
        name: value
        for name, value in headers.items()
        if name.lower() in PASSED_HEADERS or name.lower().startswith(PASSED_PREFIXES)
    }


def trace_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a message that name its trace."""
    return {name: value for name, value in headers.items() if name.lower() in TRACE_HEADERS}


def _once(recipient: Recipient, event: CloudEvent, timeout: float | None) -> DeliveryOutcome:
    headers = {**event.headers(), **recipient.headers}
    try:
        answer = recipient.target(headers, event.data, timeout)
    except NoAnswerError as failure:
        code = HTTPStatus.INTERNAL_SERVER_ERROR
        text = f"dispatch error: {failure}".encode()[:LONGEST_ANSWER]
        error_attributes = failed_with(recipient.address, code, text)
        return DeliveryOutcome(0, error={} if failure.timed_out else error_attributes)
    if not is_success(answer.status):
        return DeliveryOutcome(
            answer.status, error=failed_with(recipient.address, answer.status, answer.body)
        )
    return _accepted(answer) if recipient.may_reply else DeliveryOutcome(answer.status)


def _accepted(answer: Answer) -> DeliveryOutcome:
    """Return the outcome of a 2xx: success with an empty body or an event; a text like `OK` is a failure."""
    if not is_event(answer.headers):
        return DeliveryOutcome(HTTPStatus.BAD_GATEWAY if answer.body else answer.status)
    try:
        reply = CloudEvent.read(answer.headers, answer.body)
    except NotAnEventError:
        return DeliveryOutcome(HTTPStatus.BAD_GATEWAY)
    if reply.data and not reply["datacontenttype"]:
        reply = reply.with_attributes(datacontenttype=_sniffed(reply.data))
    return DeliveryOutcome(answer.status, reply=reply, passed=passed_headers(answer.headers))


def _sniffed(data: bytes) -> str:
    """Return the content type that Go's server gives to a body without one; the filter answers with replies.

    Left out are the types that `http.DetectContentType` recognises by their first bytes, such as HTML.
    """
    return "application/octet-stream" if _BINARY.search(data[:512]) else "text/plain; charset=utf-8"
