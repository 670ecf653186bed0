"""A free worker goes to the event that waited longest; namespaces that held workers for long wait longer."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count, cycle

import pytest

from muster.runtime.turns import (
    HALF_LIFE_SECONDS,
    MOST_COSTLY,
    MOST_NAMESPACES,
    USUAL_CPU_SECONDS,
    NamespaceBusyError,
    RecentUse,
    Turn,
    Turns,
)

DEADLINE = 8.0


class Simulation:
    """Turns of four workers whose clock stands still between events.

    Args:
        hostile: the namespaces of the events that are sent all the time, 150 in flight.
        seconds: how long each of them works.
    """

    def __init__(self, hostile: Iterator[str], seconds: float) -> None:
        self.now = 0.0
        self.turns = Turns(workers=4, waiting=155, clock=lambda: self.now)
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
        for number in range(int(until * 20)):
            self._at(number / 20, self._look)
        while self._agenda and self._agenda[0][0] < until:
            self.now, _, action = heapq.heappop(self._agenda)
            action()
        return self._waits

    def _at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (time, next(self._number), action))

    def _send_hostile(self) -> None:
        self._send(next(self._hostile))

    def _send_quiet(self) -> None:
        self._send("quiet")

    def _send(self, namespace: str) -> None:
        try:
            turn = self.turns.join(namespace)
        except NamespaceBusyError:
            self._answered(namespace, DEADLINE)
            return
        self._waiting.append((turn, self.now))
        self._look()

    def _look(self) -> None:
        """Let events work that have begun, and give up those whose deadline is over."""
        for turn, since in list(self._waiting):
            namespace = turn.namespace
            if turn.begun.is_set():
                self._waiting.remove((turn, since))
                self._answered(namespace, self.now - since, self._works(turn))
            elif self.now - since >= DEADLINE:
                self._waiting.remove((turn, since))
                assert self.turns.leave(turn)
                self._answered(namespace, DEADLINE)

    def _works(self, turn: Turn) -> float:
        seconds = 0.1 if turn.namespace == "quiet" else self._seconds
        self._at(self.now + seconds, lambda: self._end(turn))
        return seconds

    def _end(self, turn: Turn) -> None:
        self.turns.end(turn)
        self._look()

    def _answered(self, namespace: str, wait: float, works: float = 0.0) -> None:
        """Note how long an event waited; a hostile sender then sends another one."""
        if namespace == "quiet":
            self._waits.append(wait)
        else:
            self._at(self.now + works + 0.02, self._send_hostile)


def namespaces(number: int) -> Iterator[str]:
    """Return so many names, again and again."""
    return cycle([f"hostile-{one}" for one in range(number)])


@pytest.mark.parametrize("number", [1, 2, 5, 9, 10])
@pytest.mark.parametrize("seconds", [0.1, 2.0])
def test_namespaces_that_always_have_events_do_not_keep_out_others(number: int, seconds: float) -> None:
    """Whether their events take a tenth of a second each, or two as behind a slow webhook."""
    waits = Simulation(namespaces(number), seconds).run(28)
    assert len(waits) >= 50
    assert max(waits) <= 1.5 * seconds + 1


def test_namespaces_that_always_come_anew_do_not_keep_out_others() -> None:
    """Forged events may each name another one: those that came before are the only ones that come first."""
    waits = Simulation((f"new-{number}" for number in count()), 0.1).run(28)
    assert len(waits) >= 50
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
    now[0] += 0.25
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

    def in_work(self) -> int:
        """Return how many of their events are in work if each of them has two, and `quiet` four."""
        waiting = [self.turns.join(f"dense-{number % 10}") for number in range(20)]
        quiet = [self.turns.join("quiet") for _ in range(4)]
        assert sum(turn.begun.is_set() for turn in [*waiting, *quiet]) == 5
        return sum(turn.begun.is_set() for turn in waiting)


def test_two_events_of_costly_namespaces_are_in_work() -> None:
    """Five that parse megabytes each kept probes and other namespaces waiting for seconds."""
    assert Costly(0.2).in_work() == MOST_COSTLY


def test_usual_events_are_not_costly() -> None:
    """However many there are."""
    assert Costly(USUAL_CPU_SECONDS, events=20).in_work() == 5


def test_the_cpu_of_an_event_counts_across_its_pauses() -> None:
    """Ten parts of 0.02 seconds each are as costly as 0.2 seconds at once."""
    cpu = 0.0
    turns = Turns(workers=1, waiting=8, clock=lambda: 0.0, cpu_clock=lambda: cpu)
    with turns.turn("dense", 0) as turn, ThreadPoolExecutor(1) as pool:
        for number in range(10):
            cpu += 0.02
            others = [turns.join(f"other-{number}"), turns.join(f"another-{number}")]
            held = pool.submit(turn.pause, 5)
            for other in others:
                assert other.begun.wait(5)
            for other in others:
                turns.end(other)
            assert held.result()
    assert turns._is_costly("dense", 0.0)


def test_an_event_goes_on_after_a_pause_in_which_no_other_began() -> None:
    """Those that wait are costly, and as many of them as may are in work."""
    turns = Costly(0.2).turns
    for number in range(MOST_COSTLY + 1):
        turns.join(f"dense-{number}")
    with turns.turn("quiet", 0) as quiet:
        assert quiet.pause(0)


def test_use_is_forgotten() -> None:
    """A namespace that was busy alone for minutes is not behind others for as long."""
    use = RecentUse()
    for second in range(600):
        use.add("busy", 4.0, float(second))
    assert use.of("busy", 599.0) == pytest.approx(4 * HALF_LIFE_SECONDS / 0.693, rel=0.15)
    assert use.of("busy", 599.0 + 10 * HALF_LIFE_SECONDS) < 0.05
    assert use.of("new", 599.0) == 0


def test_namespaces_that_used_little_take_no_memory_for_good() -> None:
    """Forged events may name any number; they do not make those forgotten that used more."""
    use = RecentUse()
    use.add("busy", 10.0, 0.0)
    for number in range(5 * MOST_NAMESPACES):
        use.add(f"namespace-{number}", 0.001, 1.0)
    assert len(use) <= 2 * MOST_NAMESPACES
    assert use.of("busy", 1.0) > 5


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


def test_an_object_has_a_quarter_of_the_places_of_its_namespace() -> None:
    """So that a flood of events about one leaves places for those about others."""
    turns = Turns(workers=1, waiting=16, clock=lambda: 0.0)
    turns.join("team", "Job/large")
    for _ in range(3):
        turns.join("team", "Job/large")
    with pytest.raises(NamespaceBusyError, match="3 events of team/Job/large"):
        turns.join("team", "Job/large")
    turns.join("team", "Job/small")


def test_many_namespaces_leave_places_for_others() -> None:
    """Ten that send more events than there are places took all of them, and then all threads."""
    turns = Turns(workers=4, waiting=155, clock=lambda: 0.0)
    waiting: Counter[str] = Counter()
    for number in range(400):
        namespace = f"hostile-{number % 10}"
        with suppress(NamespaceBusyError):
            turns.join(namespace, f"Job/{number}")
            waiting[namespace] += 1
    assert waiting.total() - 5 < 155  # five are in work
    assert set(waiting.values()) <= {14, 15, 16}
    for number in range(3):
        turns.join("real", f"Job/{number}")


def test_a_namespace_has_a_few_places_though_none_is_free() -> None:
    """Sixty namespaces with three events each take all 155 places, and a further one could send none."""
    turns = Turns(workers=4, waiting=155, clock=lambda: 0.0)
    for number in range(60 * 3):
        turns.join(f"namespace-{number % 60}")
    for _ in range(3):
        turns.join("real")
    with pytest.raises(NamespaceBusyError, match="3 events of namespace real"):
        turns.join("real")
