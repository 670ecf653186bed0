"""Dead letters: when there is one, where it goes, and what it says."""

from __future__ import annotations

from typing import Any

from tests.contract.broker.case import DEAD_LETTERS, EVENT, BrokerCases, BrokerConversation, header
from tests.contract.broker.recipients import NO_ANSWER, Reaction

case = BrokerCases(__name__)
CASES = case.all

OTHER = {"deadLetterSink": {"name": "other"}}
NO_EVENT = Reaction(200, {"Content-Type": "text/plain"}, b"OK")


def _delivery(**fields: Any) -> dict[str, Any]:
    return {"delivery": fields}


@case({"step": _delivery(retry=1, **DEAD_LETTERS)})
def after_the_retries(broker: BrokerConversation) -> None:
    """The original event with the recipient that failed, its status and the beginning of its answer."""
    broker.react("step", Reaction(503, body=b"no gang"))
    broker.post(EVENT | {"Content-Type": "application/json"}, b'{ "kind": "Job" }')
    (letter,) = broker.settled("dead-letter")
    assert len(broker.settled("step")) == 2
    assert header(letter, "ce-id") == "1"
    assert header(letter, "ce-knativeerrorcode") == "503"
    assert letter.body == b'{ "kind": "Job" }'


@case({"step": _delivery(retry=5, **DEAD_LETTERS)})
def after_a_refusal(broker: BrokerConversation) -> None:
    """A refusal without a body is a dead letter at once."""
    broker.react("step", Reaction(422))
    broker.post(EVENT)
    (letter,) = broker.settled("dead-letter")
    assert len(broker.settled("step")) == 1
    assert header(letter, "ce-knativeerrorcode") == "422"


@case({"step": _delivery(**DEAD_LETTERS), "nobody": _delivery(**DEAD_LETTERS)})
def no_answer(broker: BrokerConversation) -> None:
    """A recipient that hangs up or does not listen counts as 500."""
    broker.react("step", Reaction(NO_ANSWER))
    broker.post(EVENT)
    letters = broker.settled("dead-letter")
    assert [header(letter, "ce-knativeerrorcode") for letter in letters] == ["500", "500"]


@case({"slow": _delivery(timeout="PT0.3S", **DEAD_LETTERS), "text": _delivery(**DEAD_LETTERS)})
def without_details(broker: BrokerConversation) -> None:
    """After a time-out, or a success that is no event, a dead letter says nothing about the failure."""
    broker.react("slow", Reaction(seconds=10))
    broker.react("text", NO_EVENT)
    broker.post(EVENT)
    letters = broker.settled("dead-letter")
    assert [header(letter, "ce-id") for letter in letters] == ["1", "1"]
    assert [header(letter, "ce-knativeerrorcode") for letter in letters] == ["", ""]


@case({"step": _delivery(retry=2, **DEAD_LETTERS)})
def failing_sink(broker: BrokerConversation) -> None:
    """The sink follows the same delivery; when it fails, the event is lost."""
    broker.react("step", Reaction(400))
    broker.react("dead-letter", Reaction(503))
    broker.post(EVENT)
    assert len(broker.settled("dead-letter")) == 3
    assert len(broker.settled("step")) == 1


@case(
    {
        "only-retry": _delivery(retry=1),
        "empty": _delivery(),
        "inherits": {},
        "own": _delivery(retry=1, **OTHER),
    },
    delivery={"retry": 2, **DEAD_LETTERS},
)
def fallback(broker: BrokerConversation) -> None:
    """A trigger's delivery without a sink falls back to the broker's sink, and to nothing else."""
    for name in ("only-retry", "empty", "inherits", "own"):
        broker.react(name, Reaction(503))
    broker.post(EVENT)
    assert len(broker.settled("dead-letter")) == 3
    assert len(broker.settled("other")) == 1
    assert [len(broker.settled(name)) for name in ("only-retry", "inherits", "own")] == [2, 3, 2]


@case({"step": _delivery(**DEAD_LETTERS)})
def headers_of_a_dead_letter(broker: BrokerConversation) -> None:
    """The sink gets the passed headers of the event, not those of the answer."""
    broker.react("step", Reaction(400, {"X-Request-Id": "of-the-answer", "Knative-Test": "of-the-answer"}))
    trace = {"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    broker.post(EVENT | trace | {"X-Request-Id": "of-the-event", "X-B3-TraceId": "0af7651916cd43dd"})
    (letter,) = broker.settled("dead-letter")
    assert header(letter, "x-request-id") == "of-the-event"


@case({"step": _delivery(**DEAD_LETTERS)})
def sent_again(broker: BrokerConversation) -> None:
    """A dead letter that is posted again keeps the attributes of the earlier failure."""
    broker.react("step", Reaction(400))
    broker.post(
        EVENT
        | {
            "Ce-Knativeerrorcode": "503",
            "Ce-Knativeerrordest": "http://before",
            "Ce-Knativeerrordata": "YQ==",
            "Ce-Knativearrivaltime": "2020-01-01T00:00:00Z",
        }
    )
    (letter,) = broker.settled("dead-letter")
    assert header(letter, "ce-knativeerrorcode") == "503"
    assert header(letter, "ce-knativearrivaltime") > "2026"
