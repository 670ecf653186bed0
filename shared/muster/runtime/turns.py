"""Turns of events: the workers of a process are shared fairly between namespaces."""

from __future__ import annotations

import heapq
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Lock

from muster.policy.limits import DEFAULT_LIMITS
from muster.runtime.list_memory import SharedListMemory
from muster.runtime.parsing_order import SmallestFirst


class NamespaceBusyError(Exception):
    """A namespace, or an object, has as many events in work and waiting as one may have; 503."""


MOST_NAMESPACES = 1000
"""The namespaces whose use is kept: forged events may name any number."""

FREE_USE = 0.05
"""The part of the recent time of all workers for which a namespace may hold them without delay."""

HALF_LIFE_SECONDS = 2.8
"""The seconds in which the recent use of a namespace halves."""

DELAY = 20.0
"""The seconds for which an event waits longer for each second that its namespace used beyond FREE_USE. With
5, writes of 2 s in ten namespaces make events of others late."""

USUAL_CPU_SECONDS = 0.03
"""The CPU that an event may take without being costly; most take 0.01 s."""

COSTLY_SECONDS = 0.1
"""The CPU beyond that, of its recent events together, that makes a namespace costly."""

MOST_COSTLY = 2
"""The most events of costly namespaces in work. They parse pages of megabytes, each of which keeps all other
threads from running for up to 50 ms: with five at once neither probes nor other events are answered."""

PLACES_FOR_EACH_FREE = 3
"""How many places to wait a namespace may take for each that is free: one alone gets three quarters."""


class RecentUse:
    """The seconds that events of each namespace used lately, which halve every HALF_LIFE_SECONDS."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[float, float]] = {}
        """By namespace, the seconds, and the time for which they were computed."""

    def __len__(self) -> int:
        return len(self._counted)

    def of(self, namespace: str, now: float) -> float:
        """Return the seconds of a namespace."""
        used, then = self._counted.get(namespace, (0.0, now))
        return float(used * 0.5 ** ((now - then) / HALF_LIFE_SECONDS))

    def add(self, namespace: str, seconds: float, now: float) -> None:
        """Add seconds to those of a namespace; of too many, forget the namespaces with the fewest."""
        self._counted[namespace] = (self.of(namespace, now) + seconds, now)
        if len(self) > 2 * MOST_NAMESPACES:
            most_used = heapq.nlargest(MOST_NAMESPACES, self._counted, key=lambda name: self.of(name, now))
            self._counted = {name: self._counted[name] for name in most_used}


class Turn:
    """The turn of an event, which waits for it or holds it.

    Args:
        turns: the turns that it is one of.
        namespace: the namespace of the event's object.
        name: kind and name of the object.
        since: the time of the clock of the turns.

    Attributes:
        namespace: that namespace.
        name: that kind and name.
        since: since when the event waits, or works once it has begun.
        begun: set while the event may work.
        cpu: the CPU seconds that it has taken, as far as they are not counted for its namespace.
    """

    def __init__(self, turns: Turns, namespace: str, name: str, since: float) -> None:
        self._turns = turns
        self.namespace = namespace
        self.name = name
        self.since = since
        self.begun = Event()
        self.cpu = 0.0
        self._cpu_since = 0.0

    def resume(self) -> None:
        """Count the CPU of this thread from now on."""
        self._cpu_since = self._turns.cpu_clock()

    def suspend(self) -> None:
        """Count no more CPU."""
        self.cpu += self._turns.cpu_clock() - self._cpu_since

    def pause(self, seconds: float) -> bool:
        """Let others work and wait for the turn again, at most so many seconds; False if it was lost."""
        return self._turns.pause(self, seconds)


class _Queue:
    """The turns of a namespace that wait, those about one object in the order in which they came.

    The objects take turns.
    """

    def __init__(self) -> None:
        self._turns: dict[str, deque[Turn]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._turns.values()))

    def of(self, name: str) -> int:
        """Return the number of turns about an object."""
        return len(self._turns.get(name, ()))

    def oldest(self) -> float:
        """Return since when the turn waits that came first."""
        return min(turn.since for turns in self._turns.values() for turn in turns)

    def add(self, turn: Turn) -> None:
        """Add a turn."""
        self._turns.setdefault(turn.name, deque()).append(turn)

    def add_first(self, turn: Turn) -> None:
        """Add a turn that comes before all others."""
        turns = self._turns.pop(turn.name, deque())
        turns.appendleft(turn)
        self._turns = {turn.name: turns, **self._turns}

    def pop(self) -> Turn:
        """Remove and return the next turn."""
        name = next(iter(self._turns))
        turns = self._turns.pop(name)
        turn = turns.popleft()
        if turns:
            self._turns[name] = turns  # behind the other objects
        return turn

    def remove(self, turn: Turn) -> None:
        """Remove a turn."""
        turns = self._turns[turn.name]
        turns.remove(turn)
        if not turns:
            del self._turns[turn.name]


class Turns:
    """Lets events begin, in turns between namespaces; safe to use from several threads.

    A worker that is free goes to the namespace whose oldest event has waited longest. If events of a
    namespace held workers for more than FREE_USE lately, its events wait as if they had come later, DELAY
    seconds for each second of it: an event whose write the API server answers slowly keeps its worker for
    seconds, and events of several such namespaces would keep all. Of namespaces whose events took much CPU
    lately, by their number or the size of their objects, MOST_COSTLY are in work at once.

    The events of one namespace may take all workers; one more works for the others. If that one is taken too,
    an event that has worked for a while pauses for namespaces that have less in work and used less; as many
    may pause at once as there are workers, because they keep their memory.

    Of the places to wait a namespace may take PLACES_FOR_EACH_FREE for each that stays free, and further
    events are sent back at once: one namespace gets three quarters, and each of ten a tenth of almost all
    (dynamic thresholds, Choudhury and Hahne, 1998). One object may take a quarter of what one namespace gets.

    Args:
        workers: the most events of one namespace in work.
        waiting: the most events that wait.
        clock: returns the time in seconds.
        cpu_clock: returns the CPU seconds of the calling thread.
    """

    def __init__(
        self,
        workers: int,
        waiting: int,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._workers = workers
        self._free_use = FREE_USE * workers * HALF_LIFE_SECONDS / math.log(2)
        self._places = waiting
        self._fewest_places = max(1, waiting // 40)  # of a namespace, also while none is free
        self._places_of_object = max(1, waiting * 3 // 16)
        self._clock = clock
        self.cpu_clock = cpu_clock
        self._use = RecentUse()
        self._cpu_beyond_usual = RecentUse()
        self._lock = Lock()
        self._paused = 0
        self._in_work: dict[str, set[Turn]] = {}
        self._waiting: dict[str, _Queue] = {}

    @contextmanager
    def turn(self, namespace: str, seconds: float, name: str = "") -> Iterator[Turn]:
        """Wait for a turn, and hold it.

        Args:
            namespace: the namespace of the event's object; "" for a cluster-scoped one.
            seconds: the longest wait.
            name: kind and name of the object.

        Raises:
            NamespaceBusyError: the namespace or the object has no place to wait, or got no turn in time.
        """
        turn = self.join(namespace, name)
        if not turn.begun.wait(seconds) and self.leave(turn):
            raise NamespaceBusyError(f"events of namespace {namespace} took all workers for {seconds:.1f} s")
        turn.resume()
        try:
            yield turn
        finally:
            turn.suspend()
            self.end(turn)

    def join(self, namespace: str, name: str = "") -> Turn:
        """Return a turn that waits, or has begun if a worker is free.

        Raises:
            NamespaceBusyError: the namespace or the object has no place to wait.
        """
        with self._lock:
            queue = self._waiting.get(namespace, _Queue())
            free = self._places - sum(map(len, self._waiting.values()))
            if len(queue) >= max(self._fewest_places, PLACES_FOR_EACH_FREE * free):
                raise NamespaceBusyError(f"{len(queue)} events of namespace {namespace} wait already")
            if name and queue.of(name) >= self._places_of_object:
                raise NamespaceBusyError(f"{queue.of(name)} events of {namespace}/{name} wait already")
            turn = Turn(self, namespace, name, self._clock())
            queue.add(turn)
            self._waiting[namespace] = queue
            self._begin_next()
            return turn

    def leave(self, turn: Turn) -> bool:
        """Wait no longer for a turn; False if it has begun after all."""
        with self._lock:
            if turn.begun.is_set():
                return False
            self._waiting[turn.namespace].remove(turn)
            self._drop_if_empty(turn.namespace)
            return True

    def end(self, turn: Turn) -> None:
        """Let the next event begin; the turn may have been lost in a pause."""
        with self._lock:
            if turn.begun.is_set():
                self._stop(turn)
            self._begin_next()

    def pause(self, turn: Turn, seconds: float) -> bool:
        """Let an event of a namespace with less in work begin, if it is its turn, and wait for a new one.

        Args:
            turn: the turn; it is held again afterwards, unless there was none in time.
            seconds: the longest wait.

        Returns:
            Whether the turn is held.
        """
        with self._lock:
            if self._paused >= self._workers or not self._should_pause(turn.namespace):
                return True
            self._paused += 1
            turn.suspend()
            self._stop(turn)
            self._waiting.setdefault(turn.namespace, _Queue()).add_first(turn)
            self._begin_next(besides=turn.namespace)
            self._begin_next()
        held = turn.begun.wait(seconds) or not self.leave(turn)
        with self._lock:
            self._paused -= 1
        turn.resume()
        return held

    def _should_pause(self, namespace: str) -> bool:
        """Whether a namespace with no event in work, or two less than this one, comes before it."""
        now = self._clock()
        own, own_due = self._events_in_work(namespace), now + self._delay(namespace, now)
        waiting = ((name, self._events_in_work(name)) for name in self._waiting if name != namespace)
        with_less = (name for name, in_work in waiting if not in_work or in_work < own - 1)
        return any(self._due(name, now) <= own_due for name in with_less)

    def _events_in_work(self, namespace: str) -> int:
        return len(self._in_work.get(namespace, ()))

    def _is_costly(self, namespace: str, now: float) -> bool:
        return self._cpu_beyond_usual.of(namespace, now) > COSTLY_SECONDS

    def _costly_in_work(self, now: float) -> int:
        return sum(len(turns) for name, turns in self._in_work.items() if self._is_costly(name, now))

    def _stop(self, turn: Turn) -> None:
        """Take the worker of an event, and count what the event used."""
        now = self._clock()
        self._use.add(turn.namespace, now - turn.since, now)
        beyond_usual = turn.cpu - USUAL_CPU_SECONDS
        if beyond_usual > 0:
            self._cpu_beyond_usual.add(turn.namespace, beyond_usual, now)
            turn.cpu = USUAL_CPU_SECONDS
        turn.begun.clear()
        turn.since = now
        in_work = self._in_work[turn.namespace]
        in_work.remove(turn)
        if not in_work:
            del self._in_work[turn.namespace]

    def _begin_next(self, besides: str | None = None) -> None:
        """Let events begin while a worker is free.

        Args:
            besides: a namespace none of whose events begins.
        """
        now = self._clock()
        while sum(map(len, self._in_work.values())) <= self._workers:
            costly_may_begin = self._costly_in_work(now) < MOST_COSTLY
            ready = [
                name
                for name in self._waiting
                if name != besides
                and self._events_in_work(name) < self._workers
                and (costly_may_begin or not self._is_costly(name, now))
            ]
            namespace = min(ready, key=partial(self._due, now=now), default=None)
            if namespace is None:
                break
            turn = self._waiting[namespace].pop()
            self._drop_if_empty(namespace)
            self._in_work.setdefault(namespace, set()).add(turn)
            turn.since = now
            turn.begun.set()

    def _due(self, namespace: str, now: float) -> float:
        """Return when it is the turn of a waiting namespace: the least comes first."""
        return self._waiting[namespace].oldest() + self._delay(namespace, now)

    def _delay(self, namespace: str, now: float) -> float:
        """Return for how many seconds events of a namespace wait longer, because of its recent use."""
        in_work = sum(now - turn.since for turn in self._in_work.get(namespace, ()))
        return DELAY * max(0.0, self._use.of(namespace, now) + in_work - self._free_use)

    def _drop_if_empty(self, namespace: str) -> None:
        if not self._waiting[namespace]:
            del self._waiting[namespace]


class Workers:
    """The workers of one process, which all of its functions share.

    Args:
        workers: the most events of one namespace in work.
        waiting: the most events that wait.
        event_bytes: memory for the lists of all events in work.

    Attributes:
        turns: the turns of events.
        reading: lets bodies be parsed, which takes up to eight times their memory.
        lists: the memory of the lists of events.
    """

    def __init__(self, workers: int, waiting: int, event_bytes: int = DEFAULT_LIMITS.event_bytes) -> None:
        self.turns = Turns(workers, waiting)
        self.reading = SmallestFirst()
        self.lists = SharedListMemory(event_bytes)
