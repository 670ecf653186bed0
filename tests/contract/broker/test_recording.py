"""The recording of broker cases: what is compared, what is masked, and what a recipient sees."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from tests.contract.broker.answers import all_cases, difference, read
from tests.contract.broker.case import EVENT, BrokerCase, BrokerConversation
from tests.contract.broker.recipients import NO_ANSWER, Reaction, Recipients
from tests.contract.broker.simulated import serving


def _nothing(_broker: BrokerConversation) -> None:
    """Post nothing: the tests do."""


CASE = BrokerCase("A case.", _nothing, "here", {"step": {}}, {}, "")


@pytest.fixture(name="recipients")
def _recipients() -> Iterator[Recipients]:
    with Recipients() as recipients:
        yield recipients


@pytest.fixture(name="recording")
def _recording(recipients: Recipients) -> dict[str, Any]:
    """The recording of one event."""
    with serving(CASE, recipients) as broker:
        conversation = BrokerConversation(CASE, broker, recipients)
        conversation.post(EVENT | {"Ce-Kind": "Job", "Content-Type": "application/json"}, b'{"a":  1}')
        return conversation.entries()


def test_times_and_clients_are_not_recorded(recording: dict[str, Any]) -> None:
    """An entry has the headers of the event and of the broker, and the body as it was sent."""
    assert recording["posted"] == ["202 POST /<namespace>/<broker>"]
    (entry,) = recording["delivered"]["step"]
    assert entry["headers"]["ce-knativearrivaltime"] == "<time>"
    assert not {"host", "user-agent", "content-length"} & entry["headers"].keys()
    assert (entry["headers"]["ce-kind"], entry["body"]) == ("Job", '{"a":  1}')


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(("posted", 0), id="a status"),
        pytest.param(("delivered", "step", 0, "body"), id="a body"),
        pytest.param(("delivered", "step", 0, "headers", "prefer"), id="a header"),
        pytest.param(("delivered", "step", 0, "headers", "ce-kind"), id="an attribute"),
    ],
)
def test_every_change_is_a_difference(recording: dict[str, Any], path: tuple[Any, ...]) -> None:
    """The line names the field; without a change there is none."""
    changed = copy.deepcopy(recording)
    assert difference(recording, changed) == ""
    *parents, last = path
    place = changed
    for name in parents:
        place = place[name]
    place[last] = "other"
    assert str(last) in difference(recording, changed)


def test_repeated_deliveries_are_counted(recipients: Recipients) -> None:
    """Two deliveries of one event are one entry; one more is a difference."""
    with serving(CASE, recipients) as broker:
        conversation = BrokerConversation(CASE, broker, recipients)
        conversation.post(EVENT)
        conversation.post(EVENT)
        (entry,) = conversation.entries()["delivered"]["step"]
    assert entry["times"] == 2
    assert difference({"delivered": [entry]}, {"delivered": [entry | {"times": 3}]})


def test_reactions(recipients: Recipients) -> None:
    """In order, the last one repeated; a reaction to an event's id comes first; others may hang up."""
    url = recipients.url_of("case", "step")
    recipients.react("case", "step", Reaction(503), Reaction(202))
    recipients.react_to("case", "step", {"7": Reaction(409), "8": Reaction(NO_ANSWER)})

    def status(event: str) -> int:
        return urllib3.request("POST", url, headers={"Ce-Id": event}, retries=False).status

    assert [status("1"), status("1"), status("7"), status("1")] == [503, 202, 409, 202]
    with pytest.raises(urllib3.exceptions.ProtocolError):
        status("8")


def test_every_case_was_recorded() -> None:
    """A case without a recording proves nothing about Knative's broker."""
    assert [case.key for case in all_cases() if not read(case)] == []
