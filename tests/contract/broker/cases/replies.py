"""Replies: events that a function answers with."""

from __future__ import annotations

from typing import Any

from tests.contract.broker.case import DEAD_LETTERS, EVENT, BrokerCases, BrokerConversation, header
from tests.contract.broker.recipients import Reaction

case = BrokerCases(__name__)
CASES = case.all

REPLY = EVENT | {"Ce-Id": "2", "Ce-Type": "dev.muster.made"}
STRUCTURED = {"Content-Type": "application/cloudevents+json"}
SWEEPS = [{"exact": {"type": "dev.muster.sweep"}}]
MADE = {"filters": [{"exact": {"type": "dev.muster.made"}}]}


TRACE = {
    "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "Tracestate": "muster=1",
}


def _first(**delivery: Any) -> dict[str, Any]:
    return {"filters": SWEEPS, "delivery": {"retry": 1, **DEAD_LETTERS, **delivery}}


def _without(name: str) -> dict[str, str]:
    return {key: value for key, value in REPLY.items() if key != name}


@case({"first": _first(), "second": MADE})
def a_reply(broker: BrokerConversation) -> None:
    """A reply is delivered like any event."""
    broker.react("first", Reaction(200, REPLY | {"Content-Type": "application/json"}, b'{"n":  1}'))
    broker.post(EVENT)
    (heard,) = broker.wait("second")
    assert header(heard, "ce-id") == "2"
    assert heard.body == b'{"n":  1}'
    assert broker.who_heard() == {"first", "second"}


@case({"first": _first(), "second": MADE})
def an_error_with_an_event(broker: BrokerConversation) -> None:
    """An event in an answer that is no success is no reply."""
    broker.react("first", Reaction(422, REPLY, b"{}"))
    broker.post(EVENT)
    assert broker.who_heard() == {"first", "dead-letter"}


@case({"id": _first(), "type": _first(), "source": _first()})
def replies_without_an_attribute(broker: BrokerConversation) -> None:
    """A reply without id, type or source is refused by the broker: one attempt, a dead letter with 400."""
    broker.react("id", Reaction(200, _without("Ce-Id")))
    broker.react("type", Reaction(200, _without("Ce-Type")))
    broker.react("source", Reaction(200, _without("Ce-Source")))
    broker.post(EVENT)
    letters = broker.settled("dead-letter")
    assert [header(letter, "ce-knativeerrorcode") for letter in letters] == ["400"] * 3
    assert [len(broker.settled(name)) for name in ("id", "type", "source")] == [1, 1, 1]


@case({"empty": _first(), "version": _first(), "second": MADE})
def empty_replies(broker: BrokerConversation) -> None:
    """An empty answer is a success without a reply, whatever its content type or specversion."""
    broker.react("empty", Reaction(200, {"Content-Type": "application/json"}))
    broker.react("version", Reaction(200, REPLY | {"Ce-Specversion": "2.0"}))
    broker.post(EVENT)
    assert broker.who_heard() == {"empty", "version"}


@case({"again": {"delivery": DEAD_LETTERS}})
def hop_limit(broker: BrokerConversation) -> None:
    """A chain of replies ends when `knativebrokerttl` is used up; the dead letter names the broker."""
    broker.react("again", Reaction(200, EVENT))
    broker.post(EVENT | {"Ce-Knativebrokerttl": "3"})
    assert len(broker.settled("again")) == 2
    (letter,) = broker.settled("dead-letter")
    assert header(letter, "ce-knativeerrorcode") == "400"
    assert header(letter, "ce-knativebrokerttl") == "1"


@case({"step": {"delivery": DEAD_LETTERS}})
def first_hop(broker: BrokerConversation) -> None:
    """An event without `knativebrokerttl` gets 255; a function does not see it, a dead letter has it."""
    broker.react("step", Reaction(400))
    broker.post(EVENT)
    (heard,), (letter,) = broker.settled("step"), broker.settled("dead-letter")
    assert header(heard, "ce-knativebrokerttl") == ""
    assert header(letter, "ce-knativebrokerttl") == "255"


@case({"first": _first(), "second": MADE})
def ttl_of_a_reply(broker: BrokerConversation) -> None:
    """A function cannot change the number of hops that are left."""
    broker.react("first", Reaction(200, REPLY | {"Ce-Knativebrokerttl": "200"}))
    broker.post(EVENT | {"Ce-Knativebrokerttl": "2"})
    assert broker.who_heard() == {"first", "dead-letter"}


@case({"first": _first(), "second": MADE})
def headers_of_a_reply(broker: BrokerConversation) -> None:
    """A reply has the passed headers of the answer, not those of the event before it."""
    passed = {"X-Request-Id": "of-the-answer", "Knative-Test": "1", "X-B3-Sampled": "1", "X-Other": "1"}
    passed["Traceparent"] = TRACE["Traceparent"].replace("b7", "c8")
    broker.react("first", Reaction(200, REPLY | passed))
    broker.post(EVENT | TRACE | {"X-Request-Id": "of-the-event", "X-B3-TraceId": "0af7651916cd43dd"})
    (heard,) = broker.wait("second")
    assert header(heard, "x-request-id") == "of-the-answer"
    assert header(heard, "x-b3-traceid") == ""


@case({"first": _first(), "second": MADE | {"delivery": {"retry": 1, **DEAD_LETTERS}}})
def failing_after_a_reply(broker: BrokerConversation) -> None:
    """When the reply is refused by its own recipient, its sender is not called again."""
    broker.react("first", Reaction(200, REPLY))
    broker.react("second", Reaction(422))
    broker.post(EVENT)
    (letter,) = broker.settled("dead-letter")
    assert header(letter, "ce-id") == "2"
    assert header(letter, "ce-knativebrokerttl") == "254"
    assert len(broker.settled("first")) == 1
