"""The broker's answers to senders: what it accepts, and with which status it refuses the rest."""

from __future__ import annotations

from collections.abc import Iterable

from tests.contract.broker.case import EVENT, BrokerCases, BrokerConversation

case = BrokerCases(__name__)
CASES = case.all

STRUCTURED = {"Content-Type": "application/cloudevents+json"}
ENVELOPE = {"specversion": "1.0", "id": "1", "source": "/test", "type": "t"}
STEP: dict[str, dict[str, str]] = {"step": {}}


def _refused(broker: BrokerConversation, headers: Iterable[dict[str, str]]) -> None:
    """Post an event for each change and assert that every one is refused with 400."""
    changes = list(headers)
    assert [broker.post(EVENT | change) for change in changes] == [400] * len(changes)


@case(STEP)
def required_attributes(broker: BrokerConversation) -> None:
    """Id, source, type and specversion are required and not empty."""
    for name in ("Ce-Id", "Ce-Source", "Ce-Type", "Ce-Specversion"):
        assert broker.post({key: value for key, value in EVENT.items() if key != name}) == 400
        assert broker.post(EVENT | {name: ""}) == 400
    assert broker.post(EVENT | {"Ce-Id": "%20"}) == 202
    assert broker.post({}, b"{}") == 400
    assert broker.post({"Content-Type": "application/json"}, b"{}") == 400


@case(STEP)
def versions(broker: BrokerConversation) -> None:
    """Only specversion 1.0 and 0.3 are known."""
    _refused(broker, ({"Ce-Specversion": version} for version in ("2.0", "0.2", "1", "1.1")))


@case(STEP)
def hops(broker: BrokerConversation) -> None:
    """An event whose number of hops is used up is refused; a number that is none is replaced."""
    _refused(broker, ({"Ce-Knativebrokerttl": ttl} for ttl in ("1", "0", "-1")))
    assert broker.post(EVENT | {"Ce-Knativebrokerttl": "x"}) == 202
    assert broker.post(EVENT | {"Ce-Id": "2", "Ce-Knativebrokerttl": "2"}) == 202
    broker.wait("step", 2)
