"""A free worker goes to the namespace that has used the least of its fair share of the time of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import Event

import pytest

from muster.runtime.turns import MOST_NAMESPACES, NamespaceBusyError, Turn, Turns, UsedTime

SHARES = 8


def test_a_free_worker_goes_to_the_namespace_that_used_the_least_time() -> None:
    """Namespaces whose writes take eight seconds each cannot keep all workers by coming first."""
    now = [0.0]
    turns = Turns(workers=1, waiting=8, clock=lambda: now[0])
    with turns.turn("slow-1", 1):
        with turns.turn("slow-2", 1):
            tickets = {name: turns._ticket(name) for name in ("slow-1", "slow-2", "quiet")}
            now[0] += 8
        assert [name for name, ticket in tickets.items() if ticket.is_set()] == ["quiet"]


def test_time_that_nobody_else_wanted_does_not_count() -> None:
    """A namespace that was busy alone for minutes is not behind those that come then."""
    used = UsedTime(SHARES)
    used.begin("busy", [])
    used.add("busy", 160.0, ["busy"])
    used.begin("busy", ["busy"])
    used.take_turn("busy")
    used.begin("new", ["busy"])
    assert used.of("new") == used.of("busy")


def test_time_without_events_does_not_count() -> None:
    """A namespace that had none for minutes is not before all others for as long."""
    used = UsedTime(SHARES)
    used.begin("first", [])
    used.begin("second", ["first"])
    for _ in range(60):
        used.take_turn("second")
        used.add("second", 1.0, ["second"])
    used.begin("first", ["second"])
    assert used.of("second") - used.of("first") <= 1


class Clients:
    """Sends events to turns whose clock stands at `now`."""

    def __init__(self, turns: Callable[[Callable[[], float]], Turns]) -> None:
        self.now = 0.0
        self.turns = turns(lambda: self.now)
        self._waiting: list[tuple[str, Event]] = []

    def send(self, namespace: str) -> None:
        """Send an event."""
        self._waiting.append((namespace, self.turns._ticket(namespace)))

    def begun(self) -> list[Turn]:
        """Return the turns that began since the last call."""
        begun = [
            Turn(self.turns, namespace, "", self.now)
            for namespace, ticket in self._waiting
            if ticket.is_set()
        ]
        self._waiting = [entry for entry in self._waiting if not entry[1].is_set()]
        return begun

    def end(self, turn: Turn) -> None:
        """End a turn."""
        self.turns._end(turn)
        self.turns._begin_next()


def test_a_namespace_with_few_events_does_not_hold_back_the_fair_share() -> None:
    """New namespaces do not come before one that used four workers beside one that used one all the time."""
    clients = Clients(lambda clock: Turns(workers=4, waiting=8, clock=clock))
    for namespace in ["busy"] * 4 + ["steady"]:
        clients.send(namespace)
    in_work = clients.begun()
    for _ in range(100):
        clients.now += 1.0
        for turn in in_work:
            clients.end(turn)
            clients.send(turn.namespace)
        in_work = clients.begun()
    used = clients.turns._used
    assert used.of("busy") > 300
    clients.send("new")
    assert used.of("busy") - used.of("new") <= 4


@pytest.mark.parametrize("others", [20, 150])
def test_namespaces_that_always_come_anew_do_not_keep_out_others(others: int) -> None:
    """Forged events that each name another one: in work for 0.03 s, five at a time."""
    clients, numbers = Clients(lambda clock: Turns(workers=4, waiting=200, clock=clock)), count()
    clients.send("real")
    (real,) = clients.begun()
    for _ in range(others):
        clients.send(f"new-{next(numbers)}")
    clients.now += 0.1
    clients.end(real)
    clients.send("real")
    in_work = clients.begun()
    while "real" not in {turn.namespace for turn in in_work} and clients.now < 10:
        clients.now += 0.03
        for turn in in_work:
            clients.end(turn)
            clients.send(f"new-{next(numbers)}")
        in_work = clients.begun()
    assert clients.now < 2


def test_objects_of_a_namespace_take_turns() -> None:
    """Events that name one large Job, also forged ones, do not keep those of others until their deadline."""
    turns = Turns(workers=1, waiting=80, clock=lambda: 0.0)
    turns._ticket("team", "Job/large").wait(0)
    large = [turns._ticket("team", "Job/large") for _ in range(10)]
    small = turns._ticket("team", "Job/small")
    begun = 0
    while not small.is_set():
        turns._end(Turn(turns, "team", "", 0.0))
        turns._begin_next()
        begun = sum(ticket.is_set() for ticket in large)
    assert begun <= 1


def test_an_object_has_a_quarter_of_the_places_of_its_namespace() -> None:
    """So that a flood of events about one leaves places for those about others."""
    turns = Turns(workers=1, waiting=16, clock=lambda: 0.0)
    turns._ticket("team", "Job/large")
    for _ in range(3):
        turns._ticket("team", "Job/large")
    with pytest.raises(NamespaceBusyError, match="3 events of team/Job/large"):
        turns._ticket("team", "Job/large")
    turns._ticket("team", "Job/small")


def test_many_namespaces_leave_places_for_others() -> None:
    """Ten that send more events than there are places took all of them, and then all threads."""
    turns = Turns(workers=4, waiting=155, clock=lambda: 0.0)
    waiting: Counter[str] = Counter()
    for number in range(400):
        namespace = f"hostile-{number % 10}"
        with suppress(NamespaceBusyError):
            turns._ticket(namespace, f"Job/{number}")
            waiting[namespace] += 1
    assert waiting.total() - 5 < 155  # five are in work
    assert set(waiting.values()) <= {14, 15, 16}
    for number in range(3):
        turns._ticket("real", f"Job/{number}")


def test_namespaces_without_events_take_no_memory_for_good() -> None:
    """Forged events may name any number."""
    used = UsedTime(SHARES)
    used.begin("real", [])
    for number in range(5 * MOST_NAMESPACES):
        used.add("real", 0.001, ["real"])
        used.begin(f"namespace-{number}", ["real"])
        used.add(f"namespace-{number}", 1000.0, ["real", f"namespace-{number}"])
    assert len(used._used) <= MOST_NAMESPACES + 2
