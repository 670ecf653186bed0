"""Retries, back-off and time-outs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.contract.broker.case import EVENT, BrokerCases, BrokerConversation, attempts, header
from tests.contract.broker.recipients import NO_ANSWER, Reaction

case = BrokerCases(__name__)
CASES = case.all

ONCE = (200, 202, 204, 299, 304, 400, 401, 403, 405, 410, 412, 413, 415, 418, 422, 425, 451)
AGAIN = (404, 408, 409, 429, 500, 501, 502, 503, 504, 507, 599)
DELAY = 0.5
"""Seconds; longer than what a busy machine adds to a wait."""

TOO_LATE = 10.0
"""Seconds after which a recipient answers; the broker must have stopped waiting before."""


def _delivery(**fields: Any) -> dict[str, Any]:
    return {"delivery": fields}


@case({"step": _delivery(retry=2)})
def statuses_that_end(broker: BrokerConversation) -> None:
    """2xx, 3xx and most of 4xx end a delivery with the first attempt."""
    assert _attempts_by_status(broker, ONCE) == dict.fromkeys(ONCE, 1)


@case({"step": _delivery(retry=2)})
def statuses_that_come_again(broker: BrokerConversation) -> None:
    """404, 408, 409, 429 and 5xx are tried again as often as `retry` says."""
    assert _attempts_by_status(broker, AGAIN) == dict.fromkeys(AGAIN, 3)


def _attempts_by_status(broker: BrokerConversation, statuses: tuple[int, ...]) -> dict[int, int]:
    """Return how often an event is delivered that is answered with each status."""
    broker.react_to("step", {str(status): Reaction(status) for status in statuses})
    for status in statuses:
        broker.post(EVENT | {"Ce-Id": str(status)})
    counts = Counter(header(heard, "ce-id") for heard in broker.settled("step"))
    return {status: counts[str(status)] for status in statuses}


@case({"closes": _delivery(retry=2), "recovers": _delivery(retry=5)})
def connections(broker: BrokerConversation) -> None:
    """A closed connection is tried again; the first success ends the delivery."""
    broker.react("closes", Reaction(NO_ANSWER))
    broker.react("recovers", Reaction(NO_ANSWER), Reaction(503), Reaction(202))
    broker.post(EVENT)
    assert len(broker.settled("closes")) == 3
    assert len(broker.settled("recovers")) == 3


@case({"text": _delivery(retry=2), "json": _delivery(retry=2), "created": _delivery(retry=2)})
def answers_that_are_no_events(broker: BrokerConversation) -> None:
    """A success with a body that is no event is a failure and comes again."""
    broker.react("text", Reaction(200, {"Content-Type": "text/plain"}, b"OK"))
    broker.react("json", Reaction(200, {"Content-Type": "application/json"}, b"{}"))
    broker.react("created", Reaction(201, body=b"OK"))
    broker.post(EVENT)
    assert [len(broker.settled(name)) for name in ("text", "json", "created")] == [3, 3, 3]


@case({"step": _delivery(retry=2, backoffPolicy="exponential", backoffDelay=f"PT{DELAY}S")})
def exponential(broker: BrokerConversation) -> None:
    """The waits are the delay, twice the delay, and so on."""
    broker.react("step", Reaction(503))
    broker.post(EVENT)
    first, second = attempts(broker.wait("step", 3))
    assert first >= DELAY
    assert second >= 2 * DELAY


@case({"step": _delivery(retry=3, backoffPolicy="linear", backoffDelay=f"PT{DELAY}S")})
def linear(broker: BrokerConversation) -> None:
    """The first retry is immediate; then the waits are the delay, twice the delay, and so on."""
    broker.react("step", Reaction(503))
    broker.post(EVENT)
    first, second, third = attempts(broker.wait("step", 4))
    assert first < DELAY <= second
    assert third >= 2 * DELAY


@case({"slow": _delivery(retry=1, timeout="PT0.3S"), "quick": _delivery(retry=1, timeout="PT10S")})
def time_out(broker: BrokerConversation) -> None:
    """An answer after the time-out is a failure and comes again."""
    broker.react("slow", Reaction(seconds=TOO_LATE))
    broker.react("quick", Reaction(seconds=0.5))
    broker.post(EVENT)
    (gap,) = attempts(broker.wait("slow", 2))
    assert 0.1 <= gap < TOO_LATE  # of 0.3 s; a busy recipient notes the first attempt late
    assert len(broker.settled("slow")) == 2
    assert len(broker.settled("quick")) == 1


@case({"step": {}})
def no_delivery(broker: BrokerConversation) -> None:
    """Without a delivery on trigger and broker Knative's default applies: exponential, from 0.2 seconds."""
    broker.react("step", Reaction(503), Reaction(503), Reaction(202))
    broker.post(EVENT)
    first, second = attempts(broker.wait("step", 3))
    assert first >= 0.2
    assert second >= 0.4


@case({"own": _delivery(retry=1), "empty": _delivery(), "inherits": {}}, delivery={"retry": 2})
def inherited(broker: BrokerConversation) -> None:
    """A trigger without a delivery has the broker's; retries are not merged."""
    for name in ("own", "empty", "inherits"):
        broker.react(name, Reaction(503))
    broker.post(EVENT)
    assert [len(broker.settled(name)) for name in ("own", "inherits")] == [2, 3]
