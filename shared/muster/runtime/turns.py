"""Turns of events: the workers of a process are shared fairly between namespaces."""

from __future__ import annotations

import heapq
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from threading import Event, Lock

from muster.policy.limits import DEFAULT_LIMITS
from muster.runtime.deadline_client import DeadlineExceeded
from muster.runtime.list_memory import SharedListMemory


class NamespaceBusyError(Exception):
    """A namespace, or an object, has as many events in work and waiting as one may have; 503."""


MOST_NAMESPACES = 1000
"""The namespaces without events whose time is kept: forged events may name any number."""

SHARES_OF_A_WORKER = 2
"""How many namespaces share the time of a worker at most: a namespace gets half of one, however many others
have events. With 1, slow writes of eight namespaces delay events of others for longer than their deadline;
with 4, forged events that name many namespaces do."""

PLACES_FOR_EACH_FREE = 3
"""How many places to wait a namespace may take for each that is free: one alone gets three quarters."""


class UsedTime:
    """The seconds for which events of each namespace held workers, as far as they count against it.

    The worker that is free next goes to the namespace with the least. A namespace that gets an event while
    none of its own waits begins with `_fair_share`, unless it has used more: so neither counts what it used
    while workers were free, nor does it save up what it left to others. This is start-time fair queueing
    (Goyal, Vin and Cheng, 1996).

    The fair share is the time of the namespace that got a worker last, or more: it also rises with each
    second that is used, divided by the number of namespaces with events. Otherwise forged events that each
    name a new namespace would all come before those of one that has had a turn.

    Args:
        most_shares: the most namespaces by which a second is divided.
    """

    def __init__(self, most_shares: int) -> None:
        self._most_shares = most_shares
        self._used: dict[str, float] = {}
        self._fair_share = 0.0

    def begin(self, namespace: str, active: Collection[str]) -> None:
        """Raise the time of a namespace to the fair share: it gets an event while none of its own waits.

        Args:
            namespace: the namespace.
            active: the namespaces that have events in work or waiting.
        """
        if not active:
            self._used.clear()
        elif len(self._used) > len(active) + MOST_NAMESPACES:
            self._used = {name: self.of(name) for name in active}
        self._used[namespace] = max(self.of(namespace), self._fair_share)

    def of(self, namespace: str) -> float:
        """Return the seconds of a namespace."""
        return self._used.get(namespace, self._fair_share)

    def take_turn(self, namespace: str) -> None:
        """Raise the fair share to the time of a namespace whose event gets a free worker."""
        self._fair_share = max(self._fair_share, self.of(namespace))

    def add(self, namespace: str, seconds: float, active: Collection[str]) -> None:
        """Count a time.

        Args:
            namespace: the namespace.
            seconds: the time.
            active: the namespaces that have events in work or waiting.
        """
        self._used[namespace] = self.of(namespace) + seconds
        self._fair_share += seconds / max(1, min(len(active), self._most_shares))


class _Tickets:
    """The events of a namespace that wait, in turns between the objects that they are about.

    Each has a ticket, which is set when it may begin.
    """

    def __init__(self) -> None:
        self._tickets: dict[str, deque[Event]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._tickets.values()))

    def of(self, name: str) -> int:
        """Return the number of events about an object."""
        return len(self._tickets.get(name, ()))

    def add(self, name: str, ticket: Event) -> None:
        """Add an event."""
        self._tickets.setdefault(name, deque()).append(ticket)

    def add_first(self, name: str, ticket: Event) -> None:
        """Add an event that comes before all others."""
        tickets = self._tickets.pop(name, deque())
        tickets.appendleft(ticket)
        self._tickets = {name: tickets, **self._tickets}

    def pop(self) -> Event:
        """Remove the next event, and return its ticket."""
        name = next(iter(self._tickets))
        tickets = self._tickets.pop(name)
        ticket = tickets.popleft()
        if tickets:
            self._tickets[name] = tickets  # behind the other objects
        return ticket

    def remove(self, name: str, ticket: Event) -> None:
        """Remove an event."""
        self._tickets[name].remove(ticket)
        if not self._tickets[name]:
            del self._tickets[name]


class Turns:
    """Lets events begin, in turns between namespaces; safe to use from several threads.

    A worker that is free goes to the namespace that held workers for the least time: an event whose write the
    API server answers slowly keeps its worker for seconds, and events of several such namespaces would keep
    all.

    The events of one namespace may take all workers; one more works for the others. If that one is taken too,
    an event that has worked for a while pauses for namespaces with less in work; as many may pause at once as
    there are workers, because they keep their memory.

    Of the places to wait a namespace may take PLACES_FOR_EACH_FREE for each that stays free, and further
    events are sent back at once: one namespace gets three quarters, and each of ten a tenth of almost all
    (dynamic thresholds, Choudhury and Hahne, 1998). One object may take a quarter of what one namespace gets.

    Args:
        workers: the most events of one namespace in work.
        waiting: the most events that wait.
        clock: returns the time in seconds.
    """

    def __init__(self, workers: int, waiting: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers = workers
        self._places = waiting
        self._fewest_places = max(1, waiting // 40)  # of a namespace, also while none is free
        self._places_of_object = max(1, waiting * 3 // 16)
        self._clock = clock
        self._used = UsedTime(SHARES_OF_A_WORKER * workers)
        self._lock = Lock()
        self._in_work: Counter[str] = Counter()
        self._paused = 0
        self._waiting: dict[str, _Tickets] = {}
        """By namespace, the one whose turn is next first.

        There is a ticket for each event, because a common condition would wake all that wait whenever one of
        them begins.
        """

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
        ticket = self._ticket(namespace, name)
        if not ticket.wait(seconds) and self._withdraw(namespace, name, ticket):
            raise NamespaceBusyError(f"events of namespace {namespace} took all workers for {seconds:.1f} s")
        turn = Turn(self, namespace, name, self._clock())
        try:
            yield turn
        finally:
            with self._lock:
                if turn.held:
                    self._end(turn)
                self._begin_next()

    def pause(self, turn: Turn, seconds: float) -> bool:
        """Let an event of a namespace with less in work begin, if one waits, and wait for a new turn.

        Args:
            turn: the turn; it is held again afterwards, unless there was none in time.
            seconds: the longest wait.

        Returns:
            Whether the turn is held.
        """
        own, name, ticket = turn.namespace, turn.name, Event()
        with self._lock:
            if self._paused >= self._workers or not any(map(partial(self._has_less, own), self._waiting)):
                return True
            self._paused += 1
            self._end(turn)
            own_tickets = self._waiting.pop(own, _Tickets())
            own_tickets.add_first(name, ticket)
            self._waiting[own] = own_tickets  # behind the others
            self._begin_next()
        turn.held = ticket.wait(seconds) or not self._withdraw(own, name, ticket)
        turn.since = self._clock()
        with self._lock:
            self._paused -= 1
        return turn.held

    def _has_less(self, namespace: str, other: str) -> bool:
        """Whether another namespace has no event in work, or at least two less."""
        in_work = self._in_work[other]
        return other != namespace and (not in_work or in_work < self._in_work[namespace] - 1)

    def _active(self) -> set[str]:
        """Return the namespaces that have events in work or waiting."""
        return self._waiting.keys() | self._in_work.keys()

    def _end(self, turn: Turn) -> None:
        namespace = turn.namespace
        self._used.add(namespace, self._clock() - turn.since, self._active())
        self._in_work[namespace] -= 1
        if not self._in_work[namespace]:
            del self._in_work[namespace]

    def _ticket(self, namespace: str, name: str = "") -> Event:
        with self._lock:
            if namespace not in self._waiting:
                self._used.begin(namespace, self._active())
            tickets = self._waiting.setdefault(namespace, _Tickets())
            all_waiting = sum(map(len, self._waiting.values()))
            if len(tickets) >= max(self._fewest_places, PLACES_FOR_EACH_FREE * (self._places - all_waiting)):
                raise NamespaceBusyError(f"{len(tickets)} events of namespace {namespace} wait already")
            if name and tickets.of(name) >= self._places_of_object:
                raise NamespaceBusyError(f"{tickets.of(name)} events of {namespace}/{name} wait already")
            ticket = Event()
            tickets.add(name, ticket)
            self._begin_next()
            return ticket

    def _withdraw(self, namespace: str, name: str, ticket: Event) -> bool:
        """Withdraw a ticket; False if its event may begin after all."""
        with self._lock:
            if ticket.is_set():
                return False
            self._waiting[namespace].remove(name, ticket)
            self._drop_if_empty(namespace)
            return True

    def _begin_next(self) -> None:
        """Let events begin while a worker is free, those of the namespace with the least time first."""
        while self._waiting and self._in_work.total() <= self._workers:
            ready = [name for name in self._waiting if self._in_work[name] < self._workers]
            if not ready:
                break
            namespace = min(ready, key=self._used.of)
            self._used.take_turn(namespace)
            self._waiting[namespace].pop().set()
            self._in_work[namespace] += 1
            self._waiting[namespace] = self._waiting.pop(namespace)  # behind the others
            self._drop_if_empty(namespace)

    def _drop_if_empty(self, namespace: str) -> None:
        if not self._waiting[namespace]:
            del self._waiting[namespace]


class Turn:
    """The turn of an event.

    Args:
        turns: the turns that it is one of.
        namespace: the namespace of the event's object.
        name: kind and name of the object.
        since: the time when it began, in seconds of the clock of the turns.

    Attributes:
        namespace: that namespace.
        name: that kind and name.
        since: since when it is held.
        held: whether the event may work.
    """

    def __init__(self, turns: Turns, namespace: str, name: str, since: float) -> None:
        self._turns = turns
        self.namespace = namespace
        self.name = name
        self.since = since
        self.held = True

    def pause(self, seconds: float) -> bool:
        """Let others work and wait for the turn again, at most so many seconds; False if it was lost."""
        return self._turns.pause(self, seconds)


BYTES_A_SECOND = 4096
"""The size for which a body waits as if it had come a second later. Events of pods have 4 to 10 KB."""

LONGEST_WAITING_EVERY = 4
"""Of so many turns one is that of the body that has waited longest: else many small ones keep out large ones
for longer than their deadline."""


class SmallestFirst:
    """Lets one body be parsed at a time, small ones before large ones; safe to use from several threads.

    Parsing takes many times the memory of a body, and a time that its sender chooses by its size. However
    many large ones come, they delay events of the usual size by two of them. Every fourth turn is that of the
    body that has waited longest.

    Args:
        clock: returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._parsing = False
        self._number = count()
        self._turns = 0
        self._waiting: list[tuple[float, int, Event]] = []

    @contextmanager
    def turn(self, size: int, seconds: float) -> Iterator[None]:
        """Wait for the turn of a body, and hold it.

        Args:
            size: the bytes of the body.
            seconds: the longest wait.

        Raises:
            DeadlineExceeded: there was no turn in time.
        """
        entry = (self._clock() + size / BYTES_A_SECOND, next(self._number), Event())
        with self._lock:
            heapq.heappush(self._waiting, entry)
            if not self._parsing:
                self._begin_next()
        if not entry[-1].wait(seconds):
            self._withdraw(entry, seconds)
        try:
            yield
        finally:
            with self._lock:
                self._begin_next()

    def _withdraw(self, entry: tuple[float, int, Event], seconds: float) -> None:
        """Take a body out of the queue, unless its turn has come after all."""
        with self._lock:
            if entry[-1].is_set():
                return
            self._remove(entry)
        raise DeadlineExceeded(f"the event waited {seconds:.1f} s to be parsed")

    def _begin_next(self) -> None:
        self._parsing = bool(self._waiting)
        if not self._parsing:
            return
        self._turns += 1
        if self._turns % LONGEST_WAITING_EVERY:
            heapq.heappop(self._waiting)[-1].set()
        else:
            oldest = min(self._waiting, key=lambda entry: entry[1])
            self._remove(oldest)
            oldest[-1].set()

    def _remove(self, entry: tuple[float, int, Event]) -> None:
        self._waiting.remove(entry)
        heapq.heapify(self._waiting)


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
