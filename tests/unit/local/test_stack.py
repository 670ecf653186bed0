"""The connections between the parts of the local stack."""

from __future__ import annotations

import pytest

from muster.local import stack
from muster.simulator.broker import CloudEvent

SWEEP = CloudEvent({"specversion": "1.0", "id": "1", "source": "/test", "type": "dev.muster.sweep"})


def test_the_newest_dead_letters_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the stack runs without a function."""
    monkeypatch.setattr(stack, "MAX_DEAD_LETTERS", 2)
    running = stack.Stack(stack.StackOptions())
    for number in range(3):
        running._store_dead_letter(SWEEP.with_attributes(id=str(number)).headers(), b"", None)
    assert [letter["id"] for letter in running.dead_letters] == ["1", "2"]
