"""One event to one recipient: attempts, waits, and the result.

As the multi-tenant broker of knative.dev/eventing v0.47.0 does it: `pkg/broker/filter/filter_handler.go`
calls the subscriber, `pkg/kncloudevents` (retries.go, event_dispatcher.go) retries and makes dead letters.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http import HTTPStatus
from itertools import count
from typing import Any

import urllib3
from pydantic import TypeAdapter, ValidationError

from muster.simulator.broker.events import CloudEvent, NotAnEventError, is_event
from muster.simulator.overlays import UnsupportedManifestError


@dataclass(frozen=True)
class Answer:
    """The HTTP response of a subscriber."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class NoAnswerError(Exception):
    """The subscriber could not be reached, or exceeded the timeout (`timed_out`)."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


Target = Callable[[Mapping[str, str], bytes, float | None], Answer]
"""A subscriber or dead letter sink: takes headers, body and a timeout in seconds; raises NoAnswerError."""


class HttpTarget:
    """A subscriber at a URL, with keep-alive connections."""

    def __init__(self, url: str, *, connections: int = 8) -> None:
        self.url = url
        self._pool = urllib3.PoolManager(maxsize=connections, retries=False)

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        """POST an event; redirects are not followed."""
        try:
            response = self._pool.request(
                "POST",
                self.url,
                body=body,
                headers=dict(headers),
                timeout=urllib3.Timeout(total=timeout),
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            # NewConnectionError (connection refused) inherits from ConnectTimeoutError, but is no timeout.
            timed_out = isinstance(error, urllib3.exceptions.TimeoutError)
            refused = isinstance(error, urllib3.exceptions.NewConnectionError)
            raise NoAnswerError(str(error), timed_out=timed_out and not refused) from error
        except ValueError as error:  # an attribute that no header can have
            raise NoAnswerError(f"the event cannot be sent: {error}") from error
        return Answer(response.status, response.headers, response.data)

    def close(self) -> None:
        """Close idle connections."""
        self._pool.clear()


LONGEST_ANSWER = 768
"""Bytes of a failed answer's body that a dead letter can carry, as 1024 characters of base64.

Knative 0.47.0 means to cut longer ones, but its dispatcher ends with a panic: it encodes the whole body into
a buffer of 1024 bytes (`dispatchExecutionInfoTransformers` in pkg/kncloudevents/event_dispatcher.go).
"""

Wait = Callable[[float], bool]
"""Waits so many seconds; True means that the broker is stopping and nothing is tried again."""

_RETRIED = frozenset({0, 404, 408, 409, 429, *range(500, 600)})
_DURATION = TypeAdapter(timedelta)
_KNOWN = {"retry", "backoffPolicy", "backoffDelay", "timeout", "deadLetterSink"}


@dataclass(frozen=True)
class Delivery:
    """A DeliverySpec; the default is Knative's without one: one attempt, no timeout, no dead letter."""

    retry: int = 0  # attempts after the first
    policy: str = ""  # `linear` or `exponential`; empty means no waiting
    delay: float = 0.0
    timeout: float | None = None  # seconds of one attempt; None means for ever
    dead_letter: str = ""  # as from `destination`

    @classmethod
    def from_manifest(cls, spec: Mapping[str, Any]) -> Delivery:
        """Return a `delivery` block."""
        if unknown := sorted(set(spec) - _KNOWN):
            raise UnsupportedManifestError(
                f"delivery: {', '.join(unknown)} is not understood by the local broker"
            )
        sink = spec.get("deadLetterSink")
        return cls(
            retry=spec.get("retry", 0),
            policy=spec.get("backoffPolicy", ""),
            delay=_seconds(spec["backoffDelay"]) if "backoffDelay" in spec else 0.0,
            timeout=_seconds(spec["timeout"]) if "timeout" in spec else None,
            dead_letter=destination(sink) if sink else "",
        )

    def wait_before_retry(self, number: int) -> float:
        """Return the seconds before a retry. The first is number 0: a linear policy retries once at once."""
        factors = {"": 0.0, "linear": float(number), "exponential": 2.0**number}
        return self.delay * factors[self.policy]


def destination(spec: Mapping[str, Any]) -> str:
    """Return Service and path of a destination (`duckv1.Destination`): `muster/create-workload`."""
    if "ref" not in spec:
        raise UnsupportedManifestError("the local broker knows subscribers by `ref`, not by `uri`")
    name: str = spec["ref"]["name"]
    path = spec.get("uri", "").strip("/")
    return f"{name}/{path}" if path else name


def _seconds(text: str) -> float:
    """Return the seconds of an ISO 8601 duration such as `PT0.2S`."""
    try:
        return _DURATION.validate_python(text).total_seconds()
    except ValidationError as error:
        raise UnsupportedManifestError(f"{text!r} is not an ISO 8601 duration") from error


@dataclass(frozen=True)
class DeliveryOutcome:
    """The outcome of one delivery."""

    status: int  # 0 when no answer came, 502 for a success whose body is no event
    attempts: int = 1
    reply: CloudEvent | None = None  # not validated yet
    passed: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, str] = field(default_factory=dict)  # the extensions of a dead letter
    cut_short: bool = False  # the broker stopped before the next attempt

    @property
    def succeeded(self) -> bool:
        """Whether the recipient took the event."""
        return is_success(self.status)


@dataclass(frozen=True)
class Recipient:
    """A subscriber or dead letter sink."""

    target: Target
    address: str  # the `knativeerrordest` of a dead letter
    headers: Mapping[str, str]
    may_reply: bool  # that of a sink is ignored


def deliver(recipient: Recipient, event: CloudEvent, delivery: Delivery, wait: Wait) -> DeliveryOutcome:
    """Call a recipient until it accepts, refuses for good, or the retries are used up."""
    for attempt in count(1):
        outcome = replace(_once(recipient, event, delivery.timeout), attempts=attempt)
        if outcome.status not in _RETRIED or attempt > delivery.retry:
            break
        if wait(delivery.wait_before_retry(attempt - 1)):
            return replace(outcome, cut_short=True)
    return outcome


def failed_with(address: str, status: int, body: bytes) -> dict[str, str]:
    """Return the extensions with which a dead letter names the recipient that failed, and its answer."""
    if len(body) > LONGEST_ANSWER:
        raise ValueError(f"{address} answered {status} with more than {LONGEST_ANSWER} bytes")
    encoded = base64.b64encode(body).decode()
    return {"knativeerrordest": address, "knativeerrorcode": str(status), "knativeerrordata": encoded}


def passed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a message that go on with it (`PassThroughHeaders` in `pkg/utils/headers.go`)."""
    prefixes = ("x-request-id", "retry-after", "knative-", "x-b3-")
    return {name: value for name, value in headers.items() if name.lower().startswith(prefixes)}


def trace_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a message that name its trace; replies have those of their event."""
    return {name: value for name, value in headers.items() if name.lower() in {"traceparent", "tracestate"}}


def is_success(status: int) -> bool:
    """Whether an answer says that the event was taken."""
    return status in range(200, 300)


def _once(recipient: Recipient, event: CloudEvent, timeout: float | None) -> DeliveryOutcome:
    headers = {**event.headers(), **recipient.headers}
    try:
        answer = recipient.target(headers, event.data, timeout)
    except NoAnswerError as failure:
        if failure.timed_out:
            return DeliveryOutcome(0)
        text = f"dispatch error: {failure}".encode()[:LONGEST_ANSWER]
        return DeliveryOutcome(0, error=failed_with(recipient.address, 500, text))
    if not is_success(answer.status):
        error = failed_with(recipient.address, answer.status, answer.body)
        return DeliveryOutcome(answer.status, error=error)
    return _accepted(answer) if recipient.may_reply else DeliveryOutcome(answer.status)


def _accepted(answer: Answer) -> DeliveryOutcome:
    """Return the outcome of a 2xx: success with an empty body or an event; a text like `OK` is a failure."""
    if not is_event(answer.headers):
        return DeliveryOutcome(HTTPStatus.BAD_GATEWAY if answer.body else answer.status)
    try:
        reply = CloudEvent.read(answer.headers, answer.body)
    except NotAnEventError:
        return DeliveryOutcome(HTTPStatus.BAD_GATEWAY)
    return DeliveryOutcome(answer.status, reply=reply, passed=passed_headers(answer.headers))
