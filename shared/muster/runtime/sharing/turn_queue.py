"""The turn of an event, and the turns of a namespace that wait."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from operator import itemgetter
from threading import Event, get_ident
from typing import Protocol

from muster.runtime.outcome import Outcome


class Turnkeeper(Protocol):
    """The part of `Turns` that one of its turns uses."""

    cpu_clock: Callable[[], float]

    def pause(self, turn: Turn, seconds: float) -> bool:
        """Let others go first, up to so many seconds; return whether this took time."""


class Turn:
    """The turn of an event, which waits for it or holds it.

    Args:
        turns: the turns that it is one of.

    Attributes:
        namespace: the namespace of the event's object.
        name: kind and name of the object.
        run: equal for events that one run of a step can answer; None for an event that needs its own.
        since: since when the event waits, or works once it has begun.
        begun: set while the event may work, when it is sent back, and when it shares an outcome.
        sent_back: whether the event lost its place to wait.
        paused: whether the event waits in a pause.
        covered_by: the turn in work whose run began after this event came; None if there is none.
        outcome: the outcome that other events may share, or that this one shares; None if there is none.
        cpu: the CPU seconds that its thread has taken.
        counted_cpu: those of them that are counted for its namespace.
    """

    def __init__(self, turns: Turnkeeper, namespace: str, name: str, run: Hashable, since: float) -> None:
        self._turns = turns
        self.namespace = namespace
        self.name = name
        self.run = run
        self.since = since
        self.begun = Event()
        self.sent_back = False
        self.paused = False
        self.covered_by: Turn | None = None
        self.outcome: Outcome | None = None
        self.cpu = 0.0
        self.counted_cpu = 0.0
        self._cpu_since = 0.0
        self._thread = 0

    def start(self) -> None:
        """Count the CPU of this thread from now on."""
        self._thread, self._cpu_since = get_ident(), self._turns.cpu_clock()

    def count_cpu(self) -> None:
        """Count the CPU of the thread since the last time; in another thread of the event, do nothing."""
        if self._thread == get_ident():
            now = self._turns.cpu_clock()
            self.cpu += now - self._cpu_since
            self._cpu_since = now

    def pause(self, seconds: float) -> bool:
        """See `Turns.pause`."""
        return self._turns.pause(self, seconds)


def any_turn(_turn: Turn) -> bool:
    """Whether a turn may begin: yes."""
    return True


class TurnQueue:
    """The turns of a namespace that wait, those about one object in the order in which they came.

    The objects take turns. A turn that is covered by one in work waits for the outcome of that.
    """

    def __init__(self) -> None:
        self._turns: dict[str, deque[Turn]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._turns.values()))

    def newest(self) -> Turn | None:
        """Return the newest turn about the object with the most; None if all are in a pause."""
        last = [(len(turns), turns[-1].since, turns[-1]) for turns in self._turns.values()]
        last.sort(key=itemgetter(0, 1), reverse=True)
        return next((turn for _, _, turn in last if not turn.paused), None)

    def oldest(self, may_begin: Callable[[Turn], bool] = any_turn) -> float:
        """Return since when the turn waits that came first of those that may begin; inf if none may."""
        return min((turn.since for turn in self._ready(may_begin)), default=math.inf)

    def _ready(self, may_begin: Callable[[Turn], bool]) -> Iterator[Turn]:
        turns = (turn for turns in self._turns.values() for turn in turns)
        return (turn for turn in turns if turn.covered_by is None and may_begin(turn))

    def add(self, turn: Turn) -> None:
        """Add a turn."""
        self._turns.setdefault(turn.name, deque()).append(turn)

    def add_first(self, turn: Turn) -> None:
        """Add a turn that comes before all others."""
        turns = self._turns.pop(turn.name, deque())
        turns.appendleft(turn)
        self._turns = {turn.name: turns, **self._turns}

    def pop(self, may_begin: Callable[[Turn], bool] = any_turn) -> Turn:
        """Remove and return the next turn that may begin, and is not covered; it covers those like it.

        Raises:
            StopIteration: none may.
        """
        turn = next(self._ready(may_begin))
        self.remove(turn)
        if turn.name in self._turns:
            self._turns[turn.name] = self._turns.pop(turn.name)  # behind the other objects
        if turn.run is not None and not turn.paused:
            for other in self._turns.get(turn.name, ()):
                if other.run == turn.run and other.covered_by is None and not other.paused:
                    other.covered_by = turn
        return turn

    def covered_by(self, turn: Turn) -> list[Turn]:
        """Return the turns that a turn covers."""
        return [other for other in self._turns.get(turn.name, ()) if other.covered_by is turn]

    def remove(self, turn: Turn) -> None:
        """Remove a turn."""
        turns = self._turns[turn.name]
        turns.remove(turn)
        if not turns:
            del self._turns[turn.name]
