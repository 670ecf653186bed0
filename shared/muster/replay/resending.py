"""Send recorded events over HTTP to a running function or broker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from time import monotonic, sleep

from muster.replay.files import BadFileError
from muster.replay.recorded_requests import RecordedRequest, time_of
from muster.replay.replay import event_of
from muster.simulator.broker import Answer, CloudEvent, NoAnswerError, NotAnEventError, Target
from muster.simulator.broker.delivery import is_success
from muster.simulator.broker.events import STRUCTURED, is_event

ANSWER_SECONDS = 10.0
"""How long to wait for an answer; the triggers of eventing/ have the same timeout (PT10S)."""

_EPOCH = datetime.fromtimestamp(0, UTC)


class ContentMode(StrEnum):
    """The content mode of an event in an HTTP request (CloudEvents HTTP binding)."""

    BINARY = "binary"
    STRUCTURED = "structured"


@dataclass(frozen=True)
class SentEvent:
    """An event that was sent, and the answer.

    Attributes:
        event: the event.
        status: HTTP status of the answer; 0 if there was none.
        retry_after: the header Retry-After as sent.
        reply: type of the event in the answer; "" if there was none.
        reason: why the event was refused.
        delivered: whether a broker would count the event as delivered.
    """

    event: CloudEvent
    status: int
    retry_after: str = ""
    reply: str = ""
    reason: str = ""
    delivered: bool = False


def outgoing(request: RecordedRequest, mode: ContentMode) -> tuple[CloudEvent, Mapping[str, str], bytes]:
    """Return a recorded event with the headers and body of its request in a content mode.

    Raises:
        BadFileError: the request is no event, or one that the mode cannot carry.
    """
    event = event_of(request)
    if mode is ContentMode.BINARY:
        return event, event.headers(), event.data
    try:
        return event, {"Content-Type": STRUCTURED}, json.dumps(event.structured()).encode()
    except ValueError:
        raise BadFileError(request.location, "its data is not JSON, contrary to its content type") from None


def resend(
    stream: Sequence[RecordedRequest], mode: ContentMode, target: Target, speed: float = 0.0
) -> Iterator[SentEvent]:
    """Send events one after the other, each after the answer to the one before, and yield each answer.

    The recorded times are used in ascending order, whatever the order of the events: the first event is sent
    at the earliest time. Events without a time are sent at once.

    Args:
        stream: the events, in the order of sending.
        mode: the content mode; each event has one (`outgoing`).
        target: the function or broker.
        speed: 1 is as recorded, 2 is twice as fast, 0 does not wait between events.
    """
    began = monotonic()
    for request, delay in zip(stream, send_times(stream, speed), strict=True):
        sleep(max(0.0, began + delay - monotonic()))
        yield _send(*outgoing(request, mode), target)


def send_times(stream: Sequence[RecordedRequest], speed: float) -> list[float]:
    """Return when to send each event, in seconds after the start; 0 for all if speed is 0."""
    if not speed:
        return [0.0] * len(stream)
    times = [time_of(request, _EPOCH) for request in stream]
    first = min((time for time in times if time != _EPOCH), default=_EPOCH)
    return sorted(max(0.0, (time - first).total_seconds()) / speed for time in times)


def _send(event: CloudEvent, headers: Mapping[str, str], body: bytes, target: Target) -> SentEvent:
    try:
        answer = target(headers, body, ANSWER_SECONDS)
    except NoAnswerError as error:
        reason = f"within {ANSWER_SECONDS:.0f} s" if error.timed_out else str(error)
        return SentEvent(event, 0, reason=reason)
    return _with_answer(event, answer)


def _with_answer(event: CloudEvent, answer: Answer) -> SentEvent:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    retry_after = headers.get("retry-after", "")
    if not is_success(answer.status):
        return SentEvent(event, answer.status, retry_after, reason=_reason(answer.body))
    if not answer.body and not is_event(answer.headers):
        return SentEvent(event, answer.status, retry_after, delivered=True)
    try:
        reply = CloudEvent.from_http(answer.headers, answer.body)["type"]
    except NotAnEventError:
        return SentEvent(event, answer.status, retry_after, reason="with a body that is not a CloudEvent")
    return SentEvent(event, answer.status, retry_after, reply, delivered=True)


def _reason(body: bytes) -> str:
    """Return reason and message of an error answer of a function, else the first line of the body."""
    with suppress(ValueError, TypeError, KeyError):
        answer = json.loads(body)
        return " ".join(f"{answer['reason']}: {answer['message']}".split())
    return next(iter(body.decode(errors="replace").splitlines()), "")
