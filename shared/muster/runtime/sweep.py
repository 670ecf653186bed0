"""Sweeps: a step is run on all objects it is responsible for, to make up for lost events."""

from __future__ import annotations

import heapq
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from datetime import datetime
from hashlib import sha256
from threading import Lock

from muster.cluster import errors
from muster.cluster.observe.list_cache import ListCache
from muster.events.model import Sweep
from muster.objects.meta import ObjectRef
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime.deadline_client import DeadlineClient, DeadlineExceeded
from muster.runtime.http import responses
from muster.runtime.outcome import GangTally, Outcome, OutcomeKind
from muster.runtime.step import Step, Subject
from muster.runtime.telemetry import logs

ROUND_SECONDS = 30 * 60.0
"""The time of a round after its last list page. Of 10,000 Jobs it took up to 19 sweeps, one each minute."""

TURN_SECONDS = 0.01
"""The time of one turn of a namespace in a sweep. Reading and writing an object takes 5 to 20 ms."""

SLOW_SECONDS, ALL_SLOW_SECONDS = 10.0, 60.0
"""A namespace is slow once its objects have taken the first time in a round. Once all slow ones together have
taken the second, they do not keep the round open. 10,000 Jobs of one namespace take 50 s."""

LARGE_SECONDS, ALL_LARGE_SECONDS = 0.1, 15.0
"""The objects of a slow namespace are large if they take the first time on average. All slow namespaces of
large objects together have the second time: two sweeps, where many ordinary objects have eight."""

_TEMPORARY = (errors.Unavailable, errors.TooManyRequests)
"""Errors after which the next sweep continues the list; after any other error it begins a new round."""


class Sweeps:
    """The sweeps of one function, one at a time.

    A round covers all objects that the step is responsible for: it reads the step's lists, plans from them,
    and runs the step live on objects that need a write. A sweep continues the round that the previous sweep
    did not finish, so every object is reached however many there are. A new round begins after a restart, or
    when the lists are old, at an object chosen by the event's id. Namespaces take turns in it.

    Args:
        step: the step.
        limit: the most objects that one sweep runs the step on live.
        clock: returns the time, for plans.
        run: runs the step on an object, live.
        on_outcome: called with the outcome of each object.
        on_finished: called at the end of each round with the gangs of all owners.
    """

    def __init__(
        self,
        step: Step,
        limit: int,
        clock: Callable[[], datetime],
        *,
        run: Callable[[DeadlineClient, Subject], Outcome],
        on_outcome: Callable[[Outcome], None],
        on_finished: Callable[[GangTally], None],
    ) -> None:
        self._step = step
        self._limit = limit
        self._clock = clock
        self._run = run
        self._on_outcome = on_outcome
        self._on_finished = on_finished
        self._sweeping = Lock()
        self._round: _Round | None = None

    def sweep(self, cluster: DeadlineClient, event: Sweep, delay: float = 0.0) -> Outcome:
        """Continue the round until its end, the deadline, or the limit.

        An object that fails neither stops the others nor requeues the sweep: the next sweep comes anyway.
        Every write and every failure is a log line of its own. There is no reply event, because an answer has
        room for one event and a sweep may do many writes.

        Args:
            cluster: the cluster; the sweep ends at its deadline.
            event: the sweep event.
            delay: seconds to wait first.

        Raises:
            ClusterError: a list of the step cannot be read.
        """
        if not self._sweeping.acquire(blocking=False):
            return Outcome(OutcomeKind.NOTHING, Reason.SWEPT, "another sweep is running")
        try:
            time.sleep(delay)
            cluster.refresh()
            return self._continue(cluster, event)
        finally:
            self._sweeping.release()

    def _continue(self, cluster: DeadlineClient, event: Sweep) -> Outcome:
        current = self._round
        if current is None or current.is_old:
            current = _Round(self._step, cluster)
        self._round = None
        try:
            subjects = current.subjects(cluster, event)
        except _TEMPORARY:
            self._round = current
            raise
        if subjects is None:
            self._round = current
            return Outcome(
                OutcomeKind.NOTHING, Reason.SWEPT, f"{current.listed.pages} pages read; lists not complete"
            )
        reasons, actions = self._run_on_each(subjects, current, cluster, event)
        if subjects:
            self._round = current
        else:
            self._on_finished(current.gangs)
        return Outcome(
            OutcomeKind.DONE if actions else OutcomeKind.NOTHING,
            Reason.SWEPT,
            current.summary(reasons),
            actions=actions,
        )

    def _run_on_each(
        self, subjects: _Turns, current: _Round, cluster: DeadlineClient, event: Sweep
    ) -> tuple[Counter[str], int]:
        """Run the step on the objects that are left; returns the counts of reasons and the number of writes.

        An object that exceeds the deadline is put back, and its namespace charged, so that the others are
        reached first. It is dropped once a sweep began with it and it exceeds the deadline again. The
        remaining writes of an object, and the objects of slow namespaces beyond their time, follow after the
        others, as far as there is time. They do not keep the round open, because only the next round sees the
        events that others lose in the meantime.
        """
        reasons: Counter[str] = Counter()
        live = actions = 0
        while (subjects or subjects.unfinished) and live < self._limit and not cluster.time_is_over:
            is_last = not subjects
            subject, began = subjects.take(), time.monotonic()
            outcome = self._outcome_by_lists(current.listed, subject)
            if outcome is None:
                outcome = self._run(cluster, subject)
                live += 1
            late = outcome.reason == Reason.DEADLINE_EXCEEDED and not is_last
            comes_again = late and (bool(reasons) or subject not in current.put_back)
            if comes_again:
                current.put_back.append(subject)
                subjects.put_back(subject)
            subjects.charge(subject, time.monotonic() - began)
            if comes_again:
                break
            if outcome.reason == Reason.WRITE_LIMIT:
                subjects.put_last(subject)
            else:
                current.gangs.add(outcome.gangs)
            self._on_outcome(outcome)
            reasons[outcome.reason] += 1
            actions += outcome.actions
            if outcome.kind is not OutcomeKind.NOTHING:
                logs.outcome_line(self._step.name, outcome, event=logs.claim(event.id), type="sweep")
        return reasons, actions

    def _outcome_by_lists(self, listed: ListCache, subject: Subject) -> Outcome | None:
        """Return the outcome if no write is needed by the lists; None if the step has to run."""
        if not (self._step.lists and self._step.lists_tell_all):
            return None
        try:
            decision = self._step.plan(self._step.inputs(listed, subject), self._clock())
        except Exception as error:  # noqa: BLE001 - other errors are reported by the live run
            outcome = responses.of_error(error)
            return outcome if outcome.kind is OutcomeKind.NOTHING else None
        if isinstance(decision, NoOp) and not decision.requeue:
            return Outcome(OutcomeKind.NOTHING, decision.reason, decision.message, gangs=decision.gangs)
        return None


class _Round:
    """One pass over all objects, with those that are left, and the gangs of those that were examined."""

    def __init__(self, step: Step, cluster: DeadlineClient) -> None:
        self.listed = ListCache(cluster, step.lists)
        self.put_back: list[Subject] = []
        self.gangs = GangTally()
        self._step = step
        self._subjects: _Turns | None = None
        self._all = 0
        self._page_read_at = time.monotonic()

    @property
    def is_old(self) -> bool:
        """Whether the last page of its lists was read too long ago.

        Counted from the first page, lists that take longer than a round would be begun anew for ever.
        """
        return time.monotonic() - self._page_read_at >= ROUND_SECONDS

    def subjects(self, cluster: DeadlineClient, event: Sweep) -> _Turns | None:
        """Return the objects that are left; None if the deadline passed before the lists were complete.

        Args:
            cluster: the cluster, with the deadline.
            event: chooses the first of the objects.
        """
        self.listed.cluster = cluster
        if self._subjects is None:
            try:
                while not self.listed.complete:
                    self.listed.read_page()
                    self._page_read_at = time.monotonic()
            except DeadlineExceeded:
                return None
            self._subjects = _Turns(self._step.responsible_for(self.listed), event.id)
            self._all = len(self._subjects)
        return self._subjects

    def summary(self, reasons: Counter[str]) -> str:
        """Return the counts of reasons and the number of objects that are left, as text."""
        counts = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        left = len(self._subjects or ())
        more = f"; {left} of {self._all} objects left to the next sweep" if left else ""
        return (counts or "no objects") + more


def jitter(event: Sweep, step: Step, spread: float) -> float:
    """Return the delay of a sweep, 0 to `spread` seconds, so that functions do not all list at once.

    It is computed from the event's id and the step's name: all functions get the same event, and a retry has
    the same delay.
    """
    return _stable_number(f"{event.id} {step.name}", 1000) / 1000 * spread


class _Turns:
    """The objects that are left, of each namespace in turn.

    The objects of one namespace so do not hold up those of another, not even where each takes long: an object
    counts as one turn and another for each TURN_SECONDS.

    Args:
        subjects: the objects.
        start: a text that chooses the first namespace, and the first object of each.

    Attributes:
        unfinished: objects with writes that are left, and those of slow namespaces; they are taken last, and
            not counted.
    """

    def __init__(self, subjects: Iterable[Subject], start: str) -> None:
        self._left: dict[str, deque[Subject]] = {}
        for subject in subjects:
            self._left.setdefault(_namespace_of(subject), deque()).append(subject)
        for objects in self._left.values():
            objects.rotate(-_stable_number(start, len(objects)))
        names = deque(self._left)
        names.rotate(-_stable_number(start, len(names)))
        self._waiting = [(0, place, name) for place, name in enumerate(names)]
        self._charged: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._taken: Counter[str] = Counter()
        self.unfinished: deque[Subject] = deque()
        self._number = sum(map(len, self._left.values()))

    def __len__(self) -> int:
        return self._number

    def take(self) -> Subject:
        """Return the next object."""
        if not self._number:
            return self.unfinished.popleft()
        self._number -= 1
        while True:
            turns, place, name = self._waiting[0]
            charged = self._charged.pop(name, 0)
            if not self._left[name]:
                heapq.heappop(self._waiting)
            elif charged:
                heapq.heapreplace(self._waiting, (turns + charged, place, name))
            else:
                heapq.heapreplace(self._waiting, (turns + 1, place, name))
                return self._left[name].popleft()

    def charge(self, subject: Subject, seconds: float) -> None:
        """Count the time that an object took, and the turns beyond its first."""
        name = _namespace_of(subject)
        self._charged[name] += int(seconds / TURN_SECONDS)
        self._seconds[name] += seconds
        self._taken[name] += 1
        if self._seconds[name] >= SLOW_SECONDS and self._left.get(name):
            self._limit_slow_namespaces()

    def put_back(self, subject: Subject) -> None:
        """Take the object that was taken last once more, after the others of its namespace."""
        self._number += 1
        self._left[_namespace_of(subject)].append(subject)

    def _limit_slow_namespaces(self) -> None:
        """Move the objects of slow namespaces behind all others once these took their time together."""
        slow = {name for name, seconds in self._seconds.items() if seconds >= SLOW_SECONDS}
        large = {name for name in slow if self._seconds[name] >= LARGE_SECONDS * self._taken[name]}
        if sum(map(self._seconds.__getitem__, slow)) >= ALL_SLOW_SECONDS:
            self._move_last(slow)
        elif sum(map(self._seconds.__getitem__, large)) >= ALL_LARGE_SECONDS:
            self._move_last(large)

    def _move_last(self, namespaces: set[str]) -> None:
        """Move the objects of these namespaces behind all others."""
        for name in namespaces:
            left = self._left.get(name, deque())
            self.unfinished += left
            self._number -= len(left)
            left.clear()
        self._waiting = [waiting for waiting in self._waiting if waiting[-1] not in namespaces]
        heapq.heapify(self._waiting)

    def put_last(self, subject: Subject) -> None:
        """Take an object once more, after all others."""
        self.unfinished.append(subject)


def _namespace_of(subject: Subject) -> str:
    return (subject if isinstance(subject, ObjectRef) else subject.subject).namespace


def _stable_number(text: str, length: int) -> int:
    """Return a number from 0 below `length`, always the same for a text; 0 if `length` is 0."""
    return int.from_bytes(sha256(text.encode()).digest()[:8]) % length if length else 0
