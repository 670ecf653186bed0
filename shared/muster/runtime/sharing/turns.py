"""Turns of events: the workers of a process are shared fairly between namespaces."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import Lock

from muster.runtime.sharing.recent_use import RecentUse
from muster.runtime.sharing.turn_queue import Turn, TurnQueue, any_turn
from muster.runtime.sharing.usual_objects import UsualObjects


class NamespaceBusyError(Exception):
    """More events wait than may, most of them of the namespace, or it got no worker in time; 503."""


QUICK_SECONDS = 0.2
"""The seconds for which an event may hold a worker without cost: most take 0.05 s, and come in bursts."""

HALF_LIFE_SECONDS = 2.8
"""The seconds in which the recent use of a namespace halves."""

DELAY = 20.0
"""The seconds for which an event waits longer for each second that events of its namespace held a worker
beyond QUICK_SECONDS lately. With 5, writes of 2 s in ten namespaces make events of others late."""

USUAL_CPU_SECONDS = 0.03
"""The CPU that an event may take without being costly; most take 0.01 s."""

COSTLY_SECONDS = 0.1
"""The CPU beyond that, of its recent events together, that makes a namespace costly."""

CPU_HALF_LIFE_SECONDS = 30.0
"""The seconds in which the recent CPU of a namespace halves. Of ten costly ones each waits for seconds."""

REFUSED_CPU_SECONDS = 0.2
"""The CPU that an event counts for beside its own if it was refused for its memory: about as much as one that
is not refused. It read megabytes in less than USUAL_CPU_SECONDS, and comes again: at 50 such events a second
from ten namespaces, a quarter of the events of an eleventh took more than 8 s."""

CPU_DELAY = 10.0
"""The seconds for which an event waits longer for each second of CPU that events of its namespace took
lately, while others waited. Events of a gang of 500 pods take 0.1 s: with 0, where more of them come from ten
namespaces than one worker handles, half of those of an eleventh wait for more than 8 s. Usual CPU counts,
too: an event about a Job of 300 KB takes little less, and 195 of them a second five cores."""

MOST_COSTLY = 1
"""The most events of costly namespaces in work. They parse pages of megabytes, each of which keeps all other
threads from running for up to 50 ms: with two, those that refuse 195 requests a second fall behind."""

MOST_COSTLY_CALLING = 4
"""The most of them while the process took less than BUSY_CORES lately: they wait for the API server then.
With calls of 100 ms each, an event of a gang of 500 pods takes 0.9 s, 0.1 s of it CPU."""

BUSY_CORES = 0.7
"""The CPU of the process in a second above which it does not mostly wait for the API server."""

MEASURED_SECONDS = 0.5
"""The shortest time for which the CPU of the process is measured."""

MOST_NEW = 5
"""The most events in work, beside a costly one, of namespaces none of whose events has ended yet."""

TURN_SECONDS = 0.25
"""The time after which an event lets those of namespaces with less in work go first."""


class Turns:
    """Lets events begin, in turns between namespaces; safe to use from several threads.

    A worker that is free goes to the namespace whose oldest event has waited longest. If events of a
    namespace held workers for more than QUICK_SECONDS each, its events wait as if they had come later, DELAY
    seconds for each second beyond: an event whose write the API server answers slowly keeps its worker for
    seconds, and events of several such namespaces would keep all. CPU counts in the same way, with CPU_DELAY,
    if events of other namespaces waited meanwhile. Of namespaces whose events took much CPU beyond the usual
    lately, by their number or the size of their objects, MOST_COSTLY are in work at once, or
    MOST_COSTLY_CALLING while they hardly compute, and beside them MOST_NEW of namespaces that had no event
    yet. Events about objects of such a namespace whose last event took usual CPU are not among these.

    The events of one namespace may take all workers. One more works for the others, and up to `most_in_work`
    for those that had an event before: mostly they wait for the API server. An event that has worked for
    TURN_SECONDS pauses for namespaces that have less in work and used less, and one that turns out to be
    costly while enough others are pauses until one of them ends. As many may pause at once as may be in work:
    the objects of each namespace may become large at the same moment, and then all in work turn out to be.

    An event only says which object to look at, so those that can be answered by one run, and wait when it
    begins, share its outcome. If it has none to share, the next of them begins.

    If more wait than there are places, the newest event of the namespace with the most is sent back (longest
    queue drop, Suter et al., 1998): one namespace alone gets all places, and each of ten a tenth. Those that
    had no event yet count as one, because forged events may each name another. Of several with the most it is
    the one that used most, or came last; in a namespace it is the newest about the object with the most.

    Args:
        workers: the most events of one namespace in work.
        waiting: the most events that wait.
        most_in_work: the most events in work, if those are more than `workers` and one more.
        clock: returns the time in seconds.
        cpu_clock: returns the CPU seconds of the calling thread.
        process_clock: returns those of the process.
    """

    def __init__(
        self,
        workers: int,
        waiting: int,
        most_in_work: int = 0,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
        process_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._workers = workers
        self._places = waiting
        self._most_in_work = max(workers + 1, most_in_work)
        self._clock = clock
        self.cpu_clock = cpu_clock
        self._use = RecentUse(HALF_LIFE_SECONDS)
        self._cpu_beyond_usual = RecentUse(CPU_HALF_LIFE_SECONDS)
        self._cpu_while_others_waited = RecentUse(CPU_HALF_LIFE_SECONDS)
        self._usual_objects = UsualObjects()
        self._process_clock = process_clock
        self._measured = (clock(), process_clock())
        self._was_busy = False
        self._lock = Lock()
        self._paused = 0
        self._in_work: dict[str, set[Turn]] = {}
        self._waiting: dict[str, TurnQueue] = {}

    @contextmanager
    def turn(self, namespace: str, seconds: float, name: str = "", run: Hashable = None) -> Iterator[Turn]:
        """Wait for a turn, and hold it; a turn with an outcome is over.

        Args:
            namespace: the namespace of the event's object; "" for a cluster-scoped one.
            seconds: the longest wait.
            name: kind and name of the object.
            run: equal for events about the object that one run can answer; None for an event of its own.

        Raises:
            NamespaceBusyError: the event has no place to wait, or got no turn in time.
        """
        turn = self.join(namespace, name, run)
        if not turn.begun.wait(seconds) and self.leave(turn):
            raise NamespaceBusyError(f"events of namespace {namespace} took all workers for {seconds:.1f} s")
        if turn.sent_back:
            raise NamespaceBusyError(f"too many events of namespace {namespace} wait")
        if turn.outcome is not None:
            yield turn
            return
        turn.start()
        try:
            yield turn
        finally:
            turn.count_cpu()
            self.end(turn)

    def join(self, namespace: str, name: str = "", run: Hashable = None) -> Turn:
        """Return a turn that waits, has begun if a worker is free, or is sent back."""
        with self._lock:
            turn = Turn(self, namespace, name, run, self._clock())
            self._waiting.setdefault(namespace, TurnQueue()).add(turn)
            self._begin_next()
            if sum(map(len, self._waiting.values())) > self._places:
                self._send_one_back()
            return turn

    def any_wait(self) -> bool:
        """Whether any event waits for its turn."""
        return bool(self._waiting)

    def has_events(self) -> bool:
        """Whether any event waits for its turn, or holds it."""
        return bool(self._waiting or self._in_work)

    def _send_one_back(self) -> None:
        """Send back the newest event of the namespace with the most that wait; none if all are in a pause."""
        now = self._clock()
        new = sum(len(queue) for name, queue in self._waiting.items() if self._is_new(name))

        def demand(namespace: str) -> tuple[int, int, float, float]:
            queue, is_new = self._waiting[namespace], self._is_new(namespace)
            return new if is_new else len(queue), len(queue), self._use.of(namespace, now), queue.oldest()

        newest = (self._waiting[name].newest() for name in sorted(self._waiting, key=demand, reverse=True))
        turn = next(filter(None, newest), None)
        if turn is None:
            return
        self._withdraw(turn)
        turn.sent_back = True
        turn.begun.set()

    def _withdraw(self, turn: Turn) -> None:
        self._waiting[turn.namespace].remove(turn)
        self._drop_if_empty(turn.namespace)

    def leave(self, turn: Turn) -> bool:
        """Wait no longer for a turn; False if it has begun after all."""
        with self._lock:
            if turn.begun.is_set():
                return False
            self._withdraw(turn)
            return True

    def end(self, turn: Turn) -> None:
        """Let the next event begin; the turn may have been lost in a pause."""
        with self._lock:
            usual = turn.cpu <= USUAL_CPU_SECONDS
            self._usual_objects.ended(turn.namespace, turn.name, usual=usual)
            if turn.begun.is_set():
                self._stop(turn)
            self._share_outcome(turn)
            self._begin_next()

    def _share_outcome(self, turn: Turn) -> None:
        """Give the outcome of a turn to those that it covers; without one, let them wait for their own."""
        queue = self._waiting.get(turn.namespace, TurnQueue())
        for other in queue.covered_by(turn):
            other.covered_by = None
            other.outcome = turn.outcome
            if turn.outcome is not None:
                self._withdraw(other)
                other.begun.set()

    def pause(self, turn: Turn, seconds: float) -> bool:
        """Let others begin if it is their turn; wait at most so many seconds; False if the turn was lost."""
        turn.count_cpu()
        with self._lock:
            now = self._clock()
            self._count_cpu(turn, now)
            if not turn.begun.is_set():
                return False  # another thread of the event lost it
            if self._paused >= self._most_in_work or not self._should_pause(turn, now):
                return True
            self._paused += 1
            self._stop(turn)
            turn.paused = True
            self._waiting.setdefault(turn.namespace, TurnQueue()).add_first(turn)
            self._begin_next(besides=turn.namespace)
            self._begin_next()
        held = turn.begun.wait(seconds) or not self.leave(turn)
        with self._lock:
            self._paused -= 1
            turn.paused = False
        return held

    def _should_pause(self, turn: Turn, now: float) -> bool:
        """Whether too many costly events are in work, or another namespace comes before that of a turn.

        That is one with no event in work, or two less than this one, once this event has worked for a while.
        """
        if self._is_costly_turn(turn, now) and self._costly_in_work(now) > self._most_costly(now):
            return True
        if now - turn.since < TURN_SECONDS:
            return False
        own, own_due = self._events_in_work(turn.namespace), now + self._delay(turn.namespace, now)
        waiting = ((name, self._events_in_work(name)) for name in self._waiting if name != turn.namespace)
        with_less = (name for name, in_work in waiting if not in_work or in_work < own - 1)
        return any(self._due(name, now) <= own_due for name in with_less)

    def _events_in_work(self, namespace: str) -> int:
        return len(self._in_work.get(namespace, ()))

    def _is_costly(self, namespace: str, now: float) -> bool:
        return self._cpu_beyond_usual.of(namespace, now) > COSTLY_SECONDS

    def _is_usual(self, turn: Turn) -> bool:
        """Whether an event, and the one before about the same object, took usual CPU."""
        return turn.cpu <= USUAL_CPU_SECONDS and (turn.namespace, turn.name) in self._usual_objects

    def _is_costly_turn(self, turn: Turn, now: float) -> bool:
        """Whether an event is one of a costly namespace, and not a usual one."""
        return not self._is_usual(turn) and self._is_costly(turn.namespace, now)

    def _costly_in_work(self, now: float) -> int:
        return sum(self._is_costly_turn(turn, now) for turns in self._in_work.values() for turn in turns)

    def _most_costly(self, now: float) -> int:
        """Return how many events of costly namespaces may be in work."""
        return MOST_COSTLY if self._is_busy(now) else MOST_COSTLY_CALLING

    def _is_busy(self, now: float) -> bool:
        """Whether the process took more than BUSY_CORES when that was last measured."""
        since, before = self._measured
        if now - since >= MEASURED_SECONDS:
            cpu = self._process_clock()
            self._was_busy = cpu - before > BUSY_CORES * (now - since)
            self._measured = (now, cpu)
        return self._was_busy

    def _is_new(self, namespace: str) -> bool:
        """Whether no event of a namespace has ended yet."""
        return namespace not in self._use

    def _may_begin(self, now: float) -> Callable[[str], Callable[[Turn], bool] | None]:
        """Return which events of a namespace may begin if a worker is free; None if none may."""
        in_work = sum(map(len, self._in_work.values()))
        costly = self._costly_in_work(now)
        new = sum(
            len(turns)
            for name, turns in self._in_work.items()
            if self._is_new(name) and not self._is_costly(name, now)
        )

        def may_begin(namespace: str) -> Callable[[Turn], bool] | None:
            is_new = self._is_new(namespace)
            if self._events_in_work(namespace) >= self._workers:
                return None
            if in_work > self._workers and is_new:
                return None  # it may be costly: forty that read pages of megabytes at once hold up probes
            if self._is_costly(namespace, now):
                return any_turn if costly < self._most_costly(now) else self._is_usual
            return None if costly and new >= MOST_NEW and is_new else any_turn

        return may_begin

    def _count_cpu(self, turn: Turn, now: float) -> None:
        """Count for its namespace the CPU that an event took since the last time."""
        if self._waiting.keys() - {turn.namespace}:
            self._cpu_while_others_waited.add(turn.namespace, turn.cpu - turn.counted_cpu, now)
        beyond = turn.cpu - max(turn.counted_cpu, USUAL_CPU_SECONDS)
        if beyond > 0:
            self._cpu_beyond_usual.add(turn.namespace, beyond, now)
        turn.counted_cpu = turn.cpu

    def _stop(self, turn: Turn) -> None:
        """Take the worker of an event, and count what the event used."""
        now = self._clock()
        self._use.add(turn.namespace, _use_of(turn, now), now)
        self._count_cpu(turn, now)
        turn.begun.clear()
        turn.since = now
        in_work = self._in_work[turn.namespace]
        in_work.remove(turn)
        if not in_work:
            del self._in_work[turn.namespace]

    def _begin_next(self, besides: str | None = None) -> None:
        """Let events begin while a worker is free, but none of the namespace `besides`."""
        now = self._clock()
        while sum(map(len, self._in_work.values())) < self._most_in_work:
            may_begin = self._may_begin(now)
            chosen = {name: may for name in self._waiting if name != besides and (may := may_begin(name))}
            due = {name: self._due(name, now, may) for name, may in chosen.items()}
            namespace = min(due, key=due.__getitem__, default=None)
            if namespace is None or due[namespace] == math.inf:
                break
            turn = self._waiting[namespace].pop(chosen[namespace])
            self._drop_if_empty(namespace)
            self._in_work.setdefault(namespace, set()).add(turn)
            turn.since = now
            turn.begun.set()

    def _due(self, namespace: str, now: float, may_begin: Callable[[Turn], bool] = any_turn) -> float:
        """Return when it is the turn of a waiting namespace, the least first; inf if no event may begin."""
        return self._waiting[namespace].oldest(may_begin) + self._delay(namespace, now)

    def _delay(self, namespace: str, now: float) -> float:
        """Return for how many seconds events of a namespace wait longer, because of its recent use."""
        in_work = sum(_use_of(turn, now) for turn in self._in_work.get(namespace, ()))
        delay = DELAY * (self._use.of(namespace, now) + in_work)
        return delay + CPU_DELAY * self._cpu_while_others_waited.of(namespace, now)

    def _drop_if_empty(self, namespace: str) -> None:
        if not self._waiting[namespace]:
            del self._waiting[namespace]


def _use_of(turn: Turn, now: float) -> float:
    return max(0.0, now - turn.since - QUICK_SECONDS)
