"""The connections between the parts of the local stack."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from muster.local import stack
from muster.simulator.broker import Answer, Broker, CloudEvent, Wiring
from muster.simulator.broker.delivery import Delivery
from muster.simulator.broker.wiring import Trigger

SWEEP = CloudEvent({"specversion": "1.0", "id": "1", "source": "/test", "type": "dev.muster.sweep"})

ONE = Trigger("one", "muster-system", "one", bool, Delivery())
WIRING = Wiring("muster", "muster-system", (ONE,), pings=())


def _take(headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
    del headers, body, timeout
    return Answer(202)


def test_a_full_queue_is_an_answer_to_the_source() -> None:
    """The source tries again for a while, then goes on with what comes after."""
    broker = Broker(WIRING, {"one": _take}, workers=1, capacity=1)
    sink = stack._publish_to(broker)
    assert [sink(SWEEP.headers(), SWEEP.data) for _ in range(2)] == [202, 503]


def test_the_newest_dead_letters_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the stack runs without a function."""
    monkeypatch.setattr(stack, "MAX_DEAD_LETTERS", 2)
    running = stack.Stack(stack.StackOptions())
    for number in range(3):
        running._store_dead_letter(SWEEP.with_attributes(id=str(number)).headers(), b"", None)
    assert [letter["id"] for letter in running.dead_letters] == ["1", "2"]
