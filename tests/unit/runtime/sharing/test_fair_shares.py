"""A free worker goes to the event that waited longest; namespaces that held workers for long wait longer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, product

import pytest

from muster.runtime.config import Settings
from muster.runtime.sharing.turn_queue import Turn
from muster.runtime.sharing.turns import MOST_NEW, TURN_SECONDS, Turns
from tests.unit.runtime.sharing.simulated_turns import Simulation, namespaces


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "seconds"),
    [*product([1, 5, 10], [0.1, 2.0]), (100, 0.05)],
)
def test_namespaces_that_always_have_events_do_not_keep_out_others(number: int, seconds: float) -> None:
    """Whether their events make five calls of 10 ms each, or take two seconds as behind a slow webhook."""
    waits = Simulation(namespaces(number), seconds).run(12)
    assert len(waits) >= 20
    assert max(waits) <= 1.5 * seconds + 1


class Bursts(Simulation):
    """Hostile events come at a steady rate, and `quiet` sends a hundred at once each five seconds."""

    def run(self, until: float) -> list[float]:
        """Return the waits of events of `quiet`."""
        for number in range(int(until * 195)):
            self._at(number / 195, self._send_hostile)
        for number in range(int(until / 5) * 100):
            self._at(1 + number // 100 * 5, self._send_quiet)
        return self._run(until)

    def _comes_again(self, namespace: str, since: float) -> None:
        if namespace == "quiet":
            super()._comes_again(namespace, since)

    def _end(self, turn: Turn) -> None:
        self.turns.end(turn)
        self._look()


@pytest.mark.thorough
def test_a_burst_of_quick_events_does_not_wait_behind_new_namespaces() -> None:
    """A trigger sends a hundred events at once; they used seconds of work, and forged ones nothing yet."""
    waits = Bursts((f"new-{number}" for number in count()), 0.055).run(12)
    assert len(waits) == 200
    assert max(waits) <= 2


@pytest.mark.thorough
def test_namespaces_that_always_come_anew_do_not_keep_out_others() -> None:
    """Forged events may each name another one: those that came before are the only ones that come first."""
    waits = Simulation((f"new-{number}" for number in count()), 0.1).run(12)
    assert len(waits) >= 20
    assert max(waits) <= 3.5


def test_a_free_worker_goes_to_the_namespace_that_used_the_least_time() -> None:
    """Namespaces whose writes take eight seconds each cannot keep all workers by coming first."""
    now = [0.0]
    turns = Turns(workers=1, waiting=8, clock=lambda: now[0])
    slow = [turns.join("slow-1"), turns.join("slow-2")]
    waiting = [turns.join(name) for name in ("slow-1", "slow-2", "quiet")]
    now[0] += 8
    turns.end(slow[0])
    assert [turn.namespace for turn in waiting if turn.begun.is_set()] == ["quiet"]


def test_time_in_work_counts_before_its_end() -> None:
    """Else a namespace with slow writes would get all workers before the first of its events ends."""
    now = [0.0]
    turns = Turns(workers=2, waiting=8, clock=lambda: now[0])
    slow, _, third = turns.join("slow"), turns.join("other"), turns.join("third")
    waiting = turns.join("slow")
    now[0] += 1
    quiet = turns.join("quiet")
    turns.end(third)
    assert quiet.begun.is_set()
    assert not waiting.begun.is_set()
    assert slow.begun.is_set()


def test_a_pause_lets_another_namespace_begin() -> None:
    """Though events of the own namespace have waited longer."""
    now = [0.0]
    turns = Turns(workers=1, waiting=8, clock=lambda: now[0])
    pausing, _, own = turns.join("busy"), turns.join("other"), turns.join("busy")
    now[0] += 0.01
    quiet = turns.join("quiet")
    assert turns.pause(pausing, 0), "it has just begun"
    now[0] += TURN_SECONDS
    assert not turns.pause(pausing, 0)
    assert quiet.begun.is_set()
    assert not own.begun.is_set()


def test_no_event_pauses_for_a_namespace_that_used_more() -> None:
    """One of many short calls would wait for a slow one at each pause."""
    now = [0.0]
    turns = Turns(workers=1, waiting=8, clock=lambda: now[0])
    slow, _ = turns.join("slow"), turns.join("other")
    waiting = turns.join("slow")
    quiet = turns.join("quiet")
    now[0] += 4
    turns.end(slow)
    assert quiet.begun.is_set()
    now[0] += TURN_SECONDS
    assert turns.pause(quiet, 0)
    assert not waiting.begun.is_set()


def test_objects_of_a_namespace_take_turns() -> None:
    """Events that name one large Job, also forged ones, do not keep those of others until their deadline."""
    turns = Turns(workers=1, waiting=80, clock=lambda: 0.0)
    large = [turns.join("team", "Job/large") for _ in range(11)]
    small = turns.join("team", "Job/small")
    ended = 0
    while not small.begun.is_set():
        turns.end(large[ended])
        ended += 1
    assert ended <= 2


def sent_back(turns: Iterable[Turn]) -> Counter[str]:
    """Return the number of events that lost their places, by namespace and object."""
    return Counter(f"{turn.namespace} {turn.name}".strip() for turn in turns if turn.sent_back)


def test_of_the_object_with_the_most_events_one_is_sent_back() -> None:
    """So that a flood of events about one leaves places for those about others."""
    turns = Turns(workers=1, waiting=4, clock=lambda: 0.0)
    large = [turns.join("team", "Job/large") for _ in range(5)]
    assert not sent_back(large), "one is in work, and four wait"
    small = turns.join("team", "Job/small")
    assert sent_back([*large, small]) == {"team Job/large": 1}
    assert large[-1].sent_back


def test_of_the_namespace_with_the_most_events_one_is_sent_back() -> None:
    """Ten that send more events than there are places took all of them, and then all threads."""
    settings = Settings()
    turns = Turns(settings.workers, settings.waiting, settings.most_in_work, clock=lambda: 0.0)
    hostile = [turns.join(f"hostile-{number % 10}", f"Job/{number}") for number in range(400)]
    real = [turns.join("real", f"Job/{number}") for number in range(3)]
    waiting = Counter(turn.namespace for turn in hostile if not turn.begun.is_set())
    assert not sent_back(real)
    assert waiting.total() + len(real) == settings.waiting
    assert set(waiting.values()) <= {11, 12}


def test_of_objects_with_as_many_events_the_newest_is_sent_back() -> None:
    """Else none would be handled that has to wait."""
    seconds = count()
    turns = Turns(workers=1, waiting=2, clock=lambda: float(next(seconds)))
    waiting = [turns.join("team", f"Job/{number}") for number in range(5)]
    assert [turn.sent_back for turn in waiting] == [False, False, False, True, True]


def test_of_new_namespaces_one_is_sent_back() -> None:
    """Forged events may each name another one: those of a namespace that had events keep their places."""
    settings, seconds = Settings(), count()
    turns = Turns(
        settings.workers, settings.waiting, settings.most_in_work, clock=lambda: float(next(seconds))
    )
    names = [*(f"known-{number}" for number in range(settings.most_in_work)), "real"]
    for name in names:
        with turns.turn(name, 0):
            pass
    known = [turns.join(name) for name in names]
    new = [turns.join(f"new-{number}") for number in range(400)]
    assert not sent_back(known)
    assert all(turn.sent_back for turn in new[settings.waiting + MOST_NEW :]), "the others came first"
    assert sum(not turn.begun.is_set() for turn in [*known, *new]) == settings.waiting


def test_known_namespaces_have_more_events_in_work_than_workers() -> None:
    """Thirteen with calls of 100 ms handle 16 events a second: those of eleven namespaces all wait."""
    turns = Turns(2, 20, most_in_work=7, clock=lambda: 0.0)
    for number in range(4):
        with turns.turn(f"team-{number}", 0):
            pass
    waiting = [turns.join(f"team-{number % 4}") for number in range(20)]
    in_work = Counter(turn.namespace for turn in waiting if turn.begun.is_set())
    assert in_work.total() == 7
    assert max(in_work.values()) == 2


def test_no_more_events_than_usual_are_in_work_of_new_namespaces() -> None:
    """Nobody knows what they cost: forty that read pages of megabytes kept probes waiting for 5 s."""
    turns = Turns(2, 20, most_in_work=7, clock=lambda: 0.0)
    with turns.turn("known", 0):
        pass
    new = [turns.join(f"new-{number}") for number in range(7)]
    assert sum(turn.begun.is_set() for turn in new) == 3
    assert turns.join("known").begun.is_set()


def test_an_event_in_a_pause_keeps_its_place() -> None:
    """It has done a part of its work."""
    now = [0.0]
    turns = Turns(workers=1, waiting=2, clock=lambda: now[0])
    pausing, other = turns.join("busy"), turns.join("other")
    turns.join("quiet")
    now[0] += TURN_SECONDS
    with ThreadPoolExecutor(1) as thread:
        held = thread.submit(turns.pause, pausing, 5)
        while not pausing.paused:
            time.sleep(0.001)
        later = [turns.join("busy") for _ in range(5)]
        assert sent_back([pausing, *later]) == {"busy": 4}
        assert not pausing.sent_back
        turns.end(other)
        assert held.result()
