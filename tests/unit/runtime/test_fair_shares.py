"""A free worker goes to the event that waited longest; namespaces that held workers for long wait longer."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle, product

import pytest

from muster.runtime.config import Settings
from muster.runtime.turns import (
    MOST_COSTLY,
    MOST_NEW,
    TURN_SECONDS,
    USUAL_CPU_SECONDS,
    Turn,
    Turns,
)

DEADLINE = 8.0


class Simulation:
    """Turns of the default number of workers whose clock stands still between events.

    Args:
        hostile: the namespaces of the events that are sent all the time, 150 in flight.
        seconds: how long each of them works.
    """

    def __init__(self, hostile: Iterator[str], seconds: float) -> None:
        self.now = 0.0
        settings = Settings()
        self.turns = Turns(settings.workers, settings.waiting, clock=lambda: self.now)
        self._hostile = hostile
        self._seconds = seconds
        self._number = count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._waiting: list[tuple[Turn, float]] = []
        self._waits: list[float] = []

    def run(self, until: float) -> list[float]:
        """Return the waits of events of `quiet`, two a second, each of which works for 0.1 s."""
        for number in range(150):
            self._at(number * 0.02, self._send_hostile)
        for number in range(int(until * 2)):
            self._at(number / 2, self._send_quiet)
        return self._run(until)

    def _run(self, until: float) -> list[float]:
        for number in range(int(until * 20)):
            self._at(number / 20, self._look)
        while self._agenda and self._agenda[0][0] < until:
            self.now, _, action = heapq.heappop(self._agenda)
            action()
        return self._waits

    def _at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (time, next(self._number), action))

    def _send_hostile(self) -> None:
        self._send(next(self._hostile), self.now)

    def _send_quiet(self) -> None:
        self._send("quiet", self.now)

    def _send(self, namespace: str, since: float) -> None:
        self._waiting.append((self.turns.join(namespace), since))
        self._look()

    def _look(self) -> None:
        """Let events work that have begun, and give up those that are sent back or have waited too long."""
        waiting, self._waiting = self._waiting, []
        for turn, since in waiting:
            if turn.begun.is_set() and not turn.sent_back:
                self._works(turn, since)
            elif turn.sent_back or self.now - since >= DEADLINE:
                assert turn.sent_back or self.turns.leave(turn)
                self._comes_again(turn.namespace, since)
            else:
                self._waiting.append((turn, since))

    def _comes_again(self, namespace: str, since: float) -> None:
        """Send an event of `quiet` again, as a broker does, and another one of the others."""
        if namespace == "quiet":
            self._at(self.now + 0.4, lambda: self._send(namespace, since))
        else:
            self._at(self.now + 0.1, self._send_hostile)

    def _works(self, turn: Turn, since: float) -> None:
        if turn.namespace == "quiet":
            self._waits.append(self.now - since)
        self._at(self.now + (0.1 if turn.namespace == "quiet" else self._seconds), lambda: self._end(turn))

    def _end(self, turn: Turn) -> None:
        self.turns.end(turn)
        if turn.namespace != "quiet":
            self._at(self.now + 0.02, self._send_hostile)
        self._look()


def namespaces(number: int) -> Iterator[str]:
    """Return so many names, again and again."""
    return cycle([f"hostile-{one}" for one in range(number)])


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


def test_a_burst_of_quick_events_does_not_wait_behind_new_namespaces() -> None:
    """A trigger sends a hundred events at once; they used seconds of work, and forged ones nothing yet."""
    waits = Bursts((f"new-{number}" for number in count()), 0.055).run(12)
    assert len(waits) == 200
    assert max(waits) <= 2


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


class Costly:
    """Turns of four workers in which events of some namespaces take CPU.

    Args:
        seconds: of each of their events.
        events: of each namespace.
    """

    def __init__(self, seconds: float, events: int = 1) -> None:
        self._cpu = 0.0
        self.turns = Turns(workers=4, waiting=155, clock=lambda: 0.0, cpu_clock=lambda: self._cpu)
        for number in range(10 * events):
            with self.turns.turn(f"dense-{number % 10}", 0):
                self._cpu += seconds
        with self.turns.turn("quiet", 0):
            pass

    def in_work(self) -> int:
        """Return how many of their events are in work if each of them has two, and `quiet` four."""
        waiting = [self.turns.join(f"dense-{number % 10}") for number in range(20)]
        quiet = [self.turns.join("quiet") for _ in range(4)]
        assert sum(turn.begun.is_set() for turn in [*waiting, *quiet]) == 5
        return sum(turn.begun.is_set() for turn in waiting)


def test_one_event_of_costly_namespaces_is_in_work() -> None:
    """Five that parse megabytes each kept probes waiting for seconds, two the threads that refuse others."""
    assert Costly(0.2).in_work() == MOST_COSTLY


def test_usual_events_are_not_costly() -> None:
    """However many there are."""
    assert Costly(USUAL_CPU_SECONDS, events=20).in_work() == 5


def test_a_namespace_stays_costly_for_a_while() -> None:
    """Of ten, each is behind nine others, and would be taken for usual when its next event begins."""
    now, cpu = 0.0, 0.0
    turns = Turns(workers=4, waiting=155, clock=lambda: now, cpu_clock=lambda: cpu)
    with turns.turn("dense", 0):
        cpu += 0.3
    now += 20
    assert turns._is_costly("dense", now)
    now += 60
    assert not turns._is_costly("dense", now)


def test_the_cpu_of_an_event_counts_while_it_works() -> None:
    """At each of its calls, and not that of its other threads, which have clocks of their own."""
    cpu = 0.0
    turns = Turns(workers=4, waiting=8, clock=lambda: 0.0, cpu_clock=lambda: cpu)
    with turns.turn("dense", 0) as turn, ThreadPoolExecutor(1) as other_thread:
        cpu += 0.2
        assert other_thread.submit(turn.pause, 0).result()
        assert not turns._is_costly("dense", 0.0)
        assert turn.pause(0)
        assert turns._is_costly("dense", 0.0)


def test_an_event_that_turns_out_to_be_costly_pauses() -> None:
    """Ten namespaces of usual events could all begin costly ones at the same moment."""
    turns = Turns(workers=12, waiting=8, clock=lambda: 0.0)
    usual = turns.join("usual")
    costly = [turns.join(f"dense-{number}") for number in range(MOST_COSTLY + 1)]
    for turn in costly:
        turn.cpu = 0.2
    assert [turn.pause(0) for turn in [*costly, usual]] == [True] * MOST_COSTLY + [False, True]


@pytest.mark.parametrize(
    ("new", "costly", "begin"),
    [(True, True, MOST_NEW + 1), (True, False, 13), (False, True, 13)],
    ids=["beside a costly one", "alone", "not new"],
)
def test_how_many_events_of_new_namespaces_are_in_work(*, new: bool, costly: bool, begin: int) -> None:
    """Nobody knows what they cost; they take all workers, but not beside a costly one."""
    cpu = 0.0
    turns = Turns(workers=12, waiting=115, clock=lambda: 0.0, cpu_clock=lambda: cpu)
    for number in range(0 if new else 20):
        with turns.turn(f"namespace-{number}", 0):
            pass
    with turns.turn("dense", 0):
        cpu += 0.2 if costly else 0.0
    waiting = [turns.join("dense"), *(turns.join(f"namespace-{number}") for number in range(20))]
    assert sum(turn.begun.is_set() for turn in waiting) == begin


def test_an_event_goes_on_after_a_pause_in_which_no_other_began() -> None:
    """Those that wait are costly, and as many of them as may are in work."""
    turns = Costly(0.2).turns
    for number in range(MOST_COSTLY + 1):
        turns.join(f"dense-{number}")
    with turns.turn("quiet", 0) as quiet:
        assert quiet.pause(0)


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
    turns = Turns(settings.workers, settings.waiting, clock=lambda: 0.0)
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
    turns = Turns(settings.workers, settings.waiting, clock=lambda: float(next(seconds)))
    names = [*(f"known-{number}" for number in range(settings.workers + 1)), "real"]
    for name in names:
        with turns.turn(name, 0):
            pass
    known = [turns.join(name) for name in names]
    new = [turns.join(f"new-{number}") for number in range(400)]
    assert not sent_back(known)
    assert all(turn.sent_back for turn in new[settings.waiting + MOST_NEW :]), "the others came first"
    assert sum(not turn.begun.is_set() for turn in [*known, *new]) == settings.waiting


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
