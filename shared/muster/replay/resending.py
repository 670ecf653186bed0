"""Recorded events over HTTP to a function or broker that runs, and what it answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import inf
from time import monotonic

from muster.replay.files import BadFileError
from muster.replay.recorded_requests import Capture, time_of
from muster.replay.replay import event_of
from muster.simulator.broker import Answer, CloudEvent, NoAnswerError, NotAnEventError, Target
from muster.simulator.broker.delivery import is_success
from muster.simulator.broker.events import STRUCTURED, is_event

ANSWER_SECONDS = 10.0
"""As long as the triggers of eventing/ wait for a function (PT10S)."""

_EPOCH = datetime.fromtimestamp(0, UTC)


class ContentMode(StrEnum):
    """How an event stands in a request (CloudEvents HTTP binding)."""

    BINARY = "binary"
    STRUCTURED = "structured"


@dataclass(frozen=True)
class Answered:
    """What was said to one event.

    Attributes:
        event: what was sent.
        status: of the answer; 0 where none came.
        retry_after: seconds that it asks for, as sent.
        reply: type of the event that the answer is.
        reason: why it was refused, in words.
        taken: whether a broker would count it as delivered.
    """

    event: CloudEvent
    status: int
    retry_after: str = ""
    reply: str = ""
    reason: str = ""
    taken: bool = False


@dataclass(frozen=True)
class Pace:
    """How fast, and until when.

    Attributes:
        speed: 1 is as recorded, 2 twice as fast; 0 does not wait at all.
        seconds: after so long nothing is sent any more, and no answer waited for; None for no end.
    """

    speed: float = 0.0
    seconds: float | None = None


@dataclass(frozen=True)
class Outgoing:
    """An event as it goes out.

    Attributes:
        event: the event.
        time: when it was sent as it was recorded.
        headers: of the request.
        body: likewise.
    """

    event: CloudEvent
    time: datetime
    headers: Mapping[str, str]
    body: bytes


def outgoing(capture: Capture, mode: ContentMode) -> Outgoing:
    """A recorded event in the mode in which it is to be sent.

    Raises:
        BadFileError: it is no event, or one that the mode cannot carry.
    """
    event, time = event_of(capture), time_of(capture, _EPOCH)
    if mode is ContentMode.BINARY:
        return Outgoing(event, time, event.headers(), event.data)
    try:
        body = json.dumps(event.structured()).encode()
    except ValueError:
        raise BadFileError(capture.place, "its data is not the JSON that it says it is") from None
    return Outgoing(event, time, {"Content-Type": STRUCTURED}, body)


def resend(
    stream: Sequence[Outgoing], target: Target, pace: Pace, stop: threading.Event
) -> Iterator[Answered]:
    """Send events one by one, each when the one before was answered, and tell of each answer.

    They go out at the times that were recorded, whatever order they are in: the first time is for the first,
    and an event without a time is due at once.

    Args:
        stream: the events in the order in which they go out.
        target: where to.
        pace: how fast, and until when.
        stop: ends it between two events when it is set.
    """
    began = monotonic()
    end = began + (inf if pace.seconds is None else pace.seconds)
    for one, after in zip(stream, due(stream, pace.speed), strict=True):
        if stop.wait(max(0.0, min(began + after, end) - monotonic())) or monotonic() >= end:
            return
        yield _sent(one, target, min(ANSWER_SECONDS, end - monotonic()))


def due(stream: Sequence[Outgoing], speed: float) -> list[float]:
    """Seconds after the beginning at which each event goes out; speed 0 waits for none."""
    if not speed:
        return [0.0] * len(stream)
    first = min((one.time for one in stream if one.time != _EPOCH), default=_EPOCH)
    return sorted(max(0.0, (one.time - first).total_seconds()) / speed for one in stream)


def _sent(one: Outgoing, target: Target, seconds: float) -> Answered:
    try:
        answer = target(one.headers, one.body, seconds)
    except NoAnswerError as error:
        return Answered(
            one.event, 0, reason=f"none within {seconds:.0f} s" if error.timed_out else str(error)
        )
    return _read(one.event, answer)


def _read(event: CloudEvent, answer: Answer) -> Answered:
    named = {name.lower(): value for name, value in answer.headers.items()}
    retry_after = named.get("retry-after", "")
    if not is_success(answer.status):
        return Answered(event, answer.status, retry_after, reason=_reason(answer.body))
    if not answer.body and not is_event(answer.headers):
        return Answered(event, answer.status, retry_after, taken=True)
    try:
        reply = CloudEvent.from_http(answer.headers, answer.body)["type"]
    except NotAnEventError:
        return Answered(event, answer.status, retry_after, reason="with a body that is no CloudEvent")
    return Answered(event, answer.status, retry_after, reply, taken=True)


def _reason(body: bytes) -> str:
    """Why, as a function of Muster's says it; else the first line of whatever the body is."""
    with suppress(ValueError, TypeError, KeyError):
        said = json.loads(body)
        return " ".join(f"{said['reason']}: {said['message']}".split())
    return next(iter(body.decode(errors="replace").splitlines()), "")
