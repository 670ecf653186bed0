"""Sizes, concurrency and redirects."""

from __future__ import annotations

from tests.contract.broker.case import DEAD_LETTERS, EVENT, BrokerCases, BrokerConversation, header
from tests.contract.broker.recipients import MIB, Reaction

case = BrokerCases(__name__)
CASES = case.all

AT_ONCE = 60
REDIRECTS = (301, 302, 303, 307, 308)


@case({"step": {}})
def large_bodies(broker: BrokerConversation) -> None:
    """A body of several MiB is passed whole."""
    body = bytes(range(256)) * (3 * MIB // 256)
    assert broker.post(EVENT | {"Content-Type": "application/octet-stream"}, body) == 202
    (heard,) = broker.wait("step")
    assert heard.body == body


@case({"step": {}})
def large_attributes(broker: BrokerConversation) -> None:
    """An attribute of 32 KiB is passed whole."""
    value = "x" * 32 * 1024
    assert broker.post(EVENT | {"Ce-Long": value}) == 202
    (heard,) = broker.wait("step")
    assert header(heard, "ce-long") == value


@case({"step": {"delivery": DEAD_LETTERS}})
def large_dead_letters(broker: BrokerConversation) -> None:
    """A dead letter has the whole body."""
    broker.react("step", Reaction(400))
    broker.post(EVENT, b"x" * MIB)
    (letter,) = broker.settled("dead-letter")
    assert len(letter.body) == MIB


@case({"step": {}})
def many_at_once(broker: BrokerConversation) -> None:
    """A trigger's deliveries do not wait for one another."""
    broker.react("step", Reaction(together=AT_ONCE))
    for _ in range(AT_ONCE):
        broker.post(EVENT)
    assert len(broker.wait("step", AT_ONCE)) == AT_ONCE


@case({f"s{status}": {"delivery": {"retry": 1, **DEAD_LETTERS}} for status in REDIRECTS})
def redirects(broker: BrokerConversation) -> None:
    """A redirect with a location is followed: 307 and 308 with the event, the others as GET without it."""
    for status in REDIRECTS:
        location = f"<recipients>/redirects/s{status}/moved"
        broker.react(f"s{status}", Reaction(status, {"Location": location}), Reaction(202))
    broker.post(EVENT | {"Content-Type": "application/json"}, b'{"a": 1}')
    heard = {status: broker.settled(f"s{status}") for status in REDIRECTS}
    assert {status: [request.method for request in requests] for status, requests in heard.items()} == {
        301: ["POST", "GET"],
        302: ["POST", "GET"],
        303: ["POST", "GET"],
        307: ["POST", "POST"],
        308: ["POST", "POST"],
    }


@case({"step": {"delivery": {"retry": 1, **DEAD_LETTERS}}})
def endless_redirects(broker: BrokerConversation) -> None:
    """The eleventh request of a chain of redirects is not sent; the delivery fails and comes again."""
    broker.react("step", Reaction(307, {"Location": "<recipients>/endless_redirects/step/again"}))
    broker.post(EVENT)
    assert len(broker.settled("step")) == 20
    (letter,) = broker.settled("dead-letter")
    assert header(letter, "ce-knativeerrorcode") == "500"
