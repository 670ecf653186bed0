"""Turns whose events come and work in simulated time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count, cycle

from muster.runtime.config import Settings
from muster.runtime.sharing.turn_queue import Turn
from muster.runtime.sharing.turns import Turns

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
        self.turns = Turns(
            settings.workers,
            settings.waiting,
            settings.most_in_work,
            clock=lambda: self.now,
            process_clock=lambda: self.now,
        )
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
