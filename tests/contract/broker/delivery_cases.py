"""The contract cases of deliveries and dead letters, and what all cases share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.contract.broker.case import DEAD_LETTERS, EVENT, BrokerCase, Headers
from tests.contract.broker.recipients import NO_ANSWER, Reaction

STEP: dict[str, dict[str, Any]] = {"step": {}}
TRACE = {"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate": "muster=1"}
NO = Reaction(503)
ONCE = (200, 202, 204, 299, 304, 400, 401, 403, 405, 410, 412, 413, 415, 418, 422, 425, 451)
AGAIN = (404, 408, 409, 429, 500, 501, 502, 503, 504, 507, 599)
DELAY = 0.5
"""Seconds; longer than what a busy machine adds to a wait."""


def delivery(**fields: Any) -> dict[str, Any]:
    """Return the `spec` of a trigger with a delivery."""
    return {"delivery": fields}


def posts(*changes: Headers) -> list[tuple[Headers, bytes]]:
    """Return an event without a body for each change."""
    return [({**EVENT, **change}, b"") for change in changes]


ONE = posts({})


def _statuses(statuses: Sequence[int]) -> dict[str, Any]:
    """Return an event for each status with which it is answered."""
    return {
        "posts": posts(*({"Ce-Id": str(status)} for status in statuses)),
        "reactions": {"step": {str(status): Reaction(status) for status in statuses}},
    }


def deliveries() -> Iterator[BrokerCase]:
    """Yield the cases of retries, waits and timeouts."""

    def case(key: str, rule: str, triggers: Mapping[str, Any], **more: Any) -> BrokerCase:
        return BrokerCase("deliveries", key, rule, triggers, **{"posts": ONE, **more})

    again = {"step": delivery(retry=2)}
    yield case("statuses_that_end", "2xx, 3xx and most of 4xx end a delivery.", again, **_statuses(ONCE))
    yield case(
        "statuses_that_come_again", "404, 408, 409, 429 and 5xx come again.", again, **_statuses(AGAIN)
    )
    yield case(
        "exponential",
        "The waits are the delay, twice the delay, and so on.",
        {"step": delivery(retry=2, backoffPolicy="exponential", backoffDelay=f"PT{DELAY}S")},
        reactions={"step": [NO]},
        gaps={"step": (DELAY, 2 * DELAY)},
    )
    yield case(
        "time_out",
        "An answer after the timeout is a failure and comes again.",
        {"slow": delivery(retry=1, timeout="PT0.3S"), "quick": delivery(retry=1, timeout="PT10S")},
        reactions={"slow": [Reaction(seconds=10)], "quick": [Reaction(seconds=0.5)]},
        gaps={"slow": (0.1,)},
    )
    yield case(
        "no_delivery",
        "Without a delivery on trigger and broker the default applies: exponential, from 0.2 seconds.",
        STEP,
        reactions={"step": [NO, NO, Reaction(202)]},
        gaps={"step": (0.2, 0.4)},
    )
    yield case(
        "inherited",
        "A trigger without a delivery has the broker's; retries are not merged.",
        {"own": delivery(retry=1), "empty": delivery(), "inherits": {}},
        reactions={"own": [NO], "empty": [NO], "inherits": [NO]},
        delivery={"retry": 2},
    )


def dead_letters() -> Iterator[BrokerCase]:
    """Yield the cases of dead letters: when there is one, where it goes, and what it says."""

    def case(key: str, rule: str, triggers: Mapping[str, Any], **more: Any) -> BrokerCase:
        return BrokerCase("dead_letters", key, rule, triggers, **{"posts": ONE, **more})

    yield case(
        "after_the_retries",
        "The original event with the recipient that failed, its status and the beginning of its answer.",
        {"step": delivery(retry=1, **DEAD_LETTERS)},
        posts=[(EVENT | {"Content-Type": "application/json"}, b'{ "kind": "Job" }')],
        reactions={"step": [Reaction(503, body=b"no gang")]},
    )
    yield case(
        "no_answer",
        "A recipient that hangs up or does not listen counts as 500.",
        {"step": delivery(**DEAD_LETTERS), "nobody": delivery(**DEAD_LETTERS)},
        reactions={"step": [Reaction(NO_ANSWER)]},
    )
    yield case(
        "fallback",
        "A trigger's delivery without a sink falls back to the broker's sink, and to nothing else.",
        {
            "only-retry": delivery(retry=1),
            "empty": delivery(),
            "inherits": {},
            "own": delivery(retry=1, deadLetterSink={"name": "other"}),
        },
        reactions={name: [NO] for name in ("only-retry", "empty", "inherits", "own")},
        delivery={"retry": 2, **DEAD_LETTERS},
    )
    yield case(
        "sent_again",
        "A dead letter that is posted again keeps the attributes of the earlier failure.",
        {"step": delivery(**DEAD_LETTERS)},
        posts=posts(
            {
                "Ce-Knativeerrorcode": "503",
                "Ce-Knativeerrordest": "http://before",
                "Ce-Knativeerrordata": "YQ==",
                "Ce-Knativearrivaltime": "2020-01-01T00:00:00Z",
            }
        ),
        reactions={"step": [Reaction(400)]},
    )
