"""One event to one subscriber: attempts, waits, and what came of it.

As the multi-tenant broker of knative.dev/eventing v0.47.0 does it: `pkg/broker/filter/filter_handler.go`
calls the subscriber, `pkg/kncloudevents/event_dispatcher.go` retries and makes dead letters.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import count

from muster.simulator.broker.delivery import ERROR_DATA_LIMIT, Delivery, is_retried, is_success
from muster.simulator.broker.events import CloudEvent, NotAnEventError, is_event
from muster.simulator.broker.targets import Answer, NoAnswerError, Target

Wait = Callable[[float], bool]
"""Waits so many seconds; True means that the broker is stopping and nothing is tried again."""


@dataclass(frozen=True)
class DeliveryOutcome:
    """What came of one delivery.

    Attributes:
        status: of the last attempt; 0 when no answer came, 502 for a success whose body is no event.
        attempts: how often the subscriber was called.
        reply: the event it answered with.
        error: the extensions a dead letter gets. Empty after a time-out and after a 502 of the broker's own:
            the real one loses the details there.
        cut_short: the broker stopped while the event waited to be tried again, so nobody has refused it.
    """

    status: int
    attempts: int = 1
    reply: CloudEvent | None = None
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
        namespace: the trigger's, for the header Kn-Namespace.
    """

    target: Target
    address: str
    namespace: str


def deliver(recipient: Recipient, event: CloudEvent, delivery: Delivery, wait: Wait) -> DeliveryOutcome:
    """Call a recipient until it accepts, refuses for good, or the retries are used up."""
    for attempt in count(1):
        outcome = replace(_once(recipient, event, delivery.timeout), attempts=attempt)
        if outcome.succeeded or not is_retried(outcome.status) or attempt > delivery.retry:
            break
        if wait(delivery.wait_before_retry(attempt - 1)):
            return replace(outcome, cut_short=True)
    return outcome


def failed_with(recipient: Recipient, status: int, body: bytes) -> dict[str, str]:
    """The extensions that tell a dead letter sink who failed and how."""
    return {
        "knativeerrordest": recipient.address,
        "knativeerrorcode": str(status),
        "knativeerrordata": base64.b64encode(body).decode()[:ERROR_DATA_LIMIT],
    }


def _once(recipient: Recipient, event: CloudEvent, timeout: float | None) -> DeliveryOutcome:
    headers = {**event.headers(), "Prefer": "reply", "Kn-Namespace": recipient.namespace}
    try:
        answer = recipient.target(headers, event.data, timeout)
    except NoAnswerError as error:
        code = HTTPStatus.INTERNAL_SERVER_ERROR
        told = failed_with(recipient, code, f"dispatch error: {error}".encode())
        return DeliveryOutcome(0, error={} if error.timed_out else told)
    if not is_success(answer.status):
        return DeliveryOutcome(answer.status, error=failed_with(recipient, answer.status, answer.body))
    return _accepted(answer)


def _accepted(answer: Answer) -> DeliveryOutcome:
    """A 2xx is a success only with an empty body or an event; `OK` as text makes the event come again."""
    if not is_event(answer.headers):
        return DeliveryOutcome(HTTPStatus.BAD_GATEWAY if answer.body else answer.status)
    try:
        return DeliveryOutcome(answer.status, reply=CloudEvent.from_http(answer.headers, answer.body))
    except NotAnEventError:
        return DeliveryOutcome(HTTPStatus.BAD_GATEWAY)
