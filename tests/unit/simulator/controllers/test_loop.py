"""The queue hands out each key once, when its time has come."""

from __future__ import annotations

import pytest

from muster.simulator.controllers.framework.worker import Queue
from muster.simulator.controllers.framework.writes import merge_difference
from tests.unit.simulator.controllers.support import merge


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.timeout(5)
def test_key_waits_once_at_the_earliest_time_asked_for() -> None:
    """Asking twice makes one turn, and the earlier of two times wins whichever comes first."""
    clock = _Clock()
    queue = Queue(clock)
    late, early = ("job", ("late",)), ("job", ("early",))
    queue.add(late, 3.0)
    queue.add(late, 1.0)
    queue.add(late, 2.0)
    queue.add(early)
    assert queue.take() == early
    clock.now = 1.0
    assert queue.take() == late
    queue.add(early, 0.5)
    clock.now = 4.0
    assert queue.take() == early
    queue.close()
    assert queue.take() is None


def test_key_that_was_taken_can_be_asked_for_again() -> None:
    """A key comes again when something happened after it was taken."""
    queue = Queue(_Clock())
    queue.add(("job", ("a",)))
    assert queue.take() == ("job", ("a",))
    queue.add(("job", ("a",)))
    assert queue.take() == ("job", ("a",))


def test_difference_of_two_statuses_is_the_patch_between_them() -> None:
    """Applying the difference gives the new object, also where fields and entries go away."""
    old = {"active": 3, "uncounted": {"failed": ["a"], "kept": 1}, "conditions": [{"type": "A"}]}
    new = {"ready": 0, "uncounted": {"kept": 1}, "conditions": [{"type": "B"}]}
    assert merge_difference(old, new) == {
        "active": None,
        "ready": 0,
        "uncounted": {"failed": None},
        "conditions": [{"type": "B"}],
    }
    assert merge(old, merge_difference(old, new)) == new
    assert merge_difference(new, new) == {}
