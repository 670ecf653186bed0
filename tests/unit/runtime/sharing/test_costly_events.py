"""Of namespaces whose events take much CPU few events are in work, and those that took more wait longer."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from muster.runtime.sharing.list_memory import NoRoomForObjects, TooManyObjects
from muster.runtime.sharing.recent_use import MOST_NAMESPACES
from muster.runtime.sharing.turn_queue import Turn
from muster.runtime.sharing.turns import MOST_COSTLY, MOST_COSTLY_CALLING, MOST_NEW, USUAL_CPU_SECONDS, Turns
from muster.runtime.sharing.usual_objects import MOST_OBJECTS, UsualObjects
from tests.unit.runtime.fakes import BODY, FakeCluster, a_handler, an_event
from tests.unit.runtime.http.servers import wait_until
from tests.unit.runtime.sharing.simulated_turns import Simulation, namespaces


class Costly:
    """Turns of four workers in which events of some namespaces take CPU.

    Args:
        seconds: of each of their events.
        events: of each namespace.
    """

    def __init__(self, seconds: float, events: int = 1) -> None:
        self._cpu = 0.0

        def clock() -> float:
            return self._cpu  # the process computes all the time

        self.turns = Turns(4, 155, clock=clock, cpu_clock=clock, process_clock=clock)
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


def test_costly_events_that_wait_for_answers_are_in_work_together() -> None:
    """Events of 500 pods and calls of 100 ms: one at a time, those of eleven namespaces take ten seconds."""
    now, cpu = 0.0, 0.0
    turns = Turns(12, 115, clock=lambda: now, cpu_clock=lambda: cpu, process_clock=lambda: cpu)
    for number in range(10):
        with turns.turn(f"dense-{number}", 0):
            cpu += 0.2
            now += 0.9
    waiting = [turns.join(f"dense-{number}") for number in range(10)]
    assert sum(turn.begun.is_set() for turn in waiting) == MOST_COSTLY_CALLING


def test_usual_events_are_not_costly() -> None:
    """However many there are."""
    assert Costly(USUAL_CPU_SECONDS, events=20).in_work() == 5


def test_usual_cpu_makes_a_namespace_wait_longer_where_others_wait() -> None:
    """Events about Jobs of 300 KB take usual CPU each, and 195 of them a second more than a core."""
    now = 0.0
    turns = Turns(workers=1, waiting=8, clock=lambda: now)
    works, other = turns.join("dense"), turns.join("other")
    assert works.begun.is_set()
    assert other.begun.is_set()
    first = turns.join("dense")
    now += 0.1
    second = turns.join("quiet")
    works.cpu = USUAL_CPU_SECONDS
    turns.end(works)
    assert second.begun.is_set()
    assert not first.begun.is_set()


@pytest.mark.parametrize("error", [TooManyObjects("too many"), NoRoomForObjects("no room")])
def test_an_event_that_is_refused_for_its_memory_makes_its_namespace_costly(error: Exception) -> None:
    """It read megabytes, which took little CPU, and comes again."""
    handler = a_handler(cluster=FakeCluster(on_read=error))
    handler.handle(*an_event())
    assert handler._workers.turns._is_costly(BODY["metadata"]["namespace"], time.monotonic())


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
    now = 0.0
    turns = Turns(12, 8, clock=lambda: now, process_clock=lambda: now)
    usual = turns.join("usual")
    costly = [turns.join(f"dense-{number}") for number in range(MOST_COSTLY + 1)]
    now += 1.0
    for turn in costly:
        turn.cpu = 2.0
    assert [turn.pause(0) for turn in [*costly, usual]] == [True] * MOST_COSTLY + [False, True]


@pytest.mark.parametrize("places", [115, 2], ids=["usual", "fewer places than pause"])
def test_all_events_in_work_may_turn_out_to_be_costly(places: int) -> None:
    """Tenants may make all their objects large at the same moment; one of 36 goes on beside other events."""
    now = 0.0
    turns = Turns(12, places, 37, clock=lambda: now, process_clock=lambda: now)
    for number in range(10):
        with turns.turn(f"dense-{number}", 0):
            pass
    works = [turns.join(f"dense-{number % 10}") for number in range(36)]
    assert all(turn.begun.is_set() for turn in works)
    now += 1.0
    for turn in works:
        turn.cpu = 0.2
    with ThreadPoolExecutor(len(works)) as threads:
        pauses = [threads.submit(turn.pause, 5) for turn in works]
        assert wait_until(lambda: turns._paused == len(works) - MOST_COSTLY, 5)
        assert turns.join("quiet").begun.is_set()
        assert sum(turn.begun.is_set() for turn in works) == MOST_COSTLY
        for turn in works:
            turn.begun.set()
    assert all(pause.result() for pause in pauses)


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


def _with_a_costly_namespace(*usual: str) -> Turns:
    """Return turns in which `dense` had usual events about some objects, and a costly one is in work."""
    now = 0.0
    turns = Turns(4, 8, clock=lambda: now, process_clock=lambda: now)  # the process computes all the time
    for name in usual:
        with turns.turn("dense", 0, name):
            pass
    large = turns.join("dense", "Job/large")
    large.cpu = 1.0
    now += 1.0
    turns.end(large)
    assert turns.join("dense", "Job/large").begun.is_set()
    return turns


def test_usual_objects_of_a_costly_namespace_do_not_wait_for_its_large_ones() -> None:
    """A gang of 500 pods had all Jobs of its namespace wait behind those of ten hostile ones."""
    turns = _with_a_costly_namespace("Job/small")
    assert turns.join("dense", "Job/small").begun.is_set()
    assert not turns.join("dense", "Job/unknown").begun.is_set()


def test_a_usual_object_that_became_large_has_all_of_its_namespace_distrusted() -> None:
    """A tenant may make hundreds of them large at once."""
    turns = _with_a_costly_namespace("Job/small", "Job/large")
    assert not turns.join("dense", "Job/small").begun.is_set()


def test_few_objects_and_namespaces_are_kept() -> None:
    """Forged events may name any number."""
    usual = UsualObjects()
    for number in range(3000):
        usual.ended("one", f"Job/{number}", usual=True)
    assert sum(("one", f"Job/{number}") in usual for number in range(3000)) == MOST_OBJECTS
    for number in range(3000):
        usual.ended(f"other-{number}", "Job/a", usual=True)
    assert sum((f"other-{number}", "Job/a") in usual for number in range(3000)) == MOST_NAMESPACES


class LargeGangs(Simulation):
    """Events of ten namespaces take 0.19 s, 0.15 s of it CPU; `quiet` has a gang of 500 pods, too.

    Args:
        begin: when the first of them comes.
        rate: how many of them come in a second.
        every: the seconds between two events of `quiet`, each with 0.1 s of CPU.
    """

    def __init__(self, begin: float, rate: int, every: int) -> None:
        super().__init__(namespaces(10), 0.19)
        self._begin, self._rate, self._every = begin, rate, every

    def run(self, until: float) -> list[float]:
        """Return the waits of events of `quiet`."""
        for number in range(int((until - self._begin) * self._rate)):
            self._at(self._begin + number / self._rate, self._send_hostile)
        for number in range(1, int(until / self._every)):
            self._at(number * self._every, self._send_quiet)
        return self._run(until)

    def _comes_again(self, namespace: str, since: float) -> None:
        if namespace == "quiet":
            super()._comes_again(namespace, since)

    def _end(self, turn: Turn) -> None:
        turn.cpu = 0.1 if turn.namespace == "quiet" else 0.15
        self.turns.end(turn)
        self._look()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("begin", "rate", "every", "events", "longest"),
    [(0, 12, 5, 11, 2), (0, 100, 5, 11, 2), (30, 40, 2, 29, 5)],
)
def test_of_costly_namespaces_the_one_with_fewer_events_waits_less(
    begin: float, rate: int, every: int, events: int, longest: int
) -> None:
    """Ten have more events than one worker handles; in the order in which events came, its would be last.

    What it used before they came counts nothing.
    """
    waits = LargeGangs(begin, rate, every).run(60)
    assert len(waits) == events
    assert max(waits) <= longest
