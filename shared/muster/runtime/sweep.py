"""A sweep: the step is run on everything it is responsible for, so that lost events are made good."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from threading import Lock

from muster.cluster import errors
from muster.cluster.interface import Cluster
from muster.cluster.list_cache import ListCache
from muster.events.model import Sweep
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime import logs, responses
from muster.runtime.deadline_client import DeadlineClient, DeadlineExceeded
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.runtime.step import Step, Subject

ROUND_SECONDS = 30 * 60.0
"""A round whose lists are older is begun anew. That of 10,000 Jobs took up to 19 sweeps, one each minute."""

_PASSING = (errors.Unavailable, errors.TooManyRequests)
"""Failures after which a list is gone on with; after any other it is begun anew."""


class Sweeps:
    """The sweeps of one function, one at a time.

    A round looks at everything the step is responsible for. It reads the lists that the step decides from,
    decides, and runs the step live where there is something to do. A sweep goes on with the round that the
    one before it could not finish, so everything has its turn however much there is. After a restart, or
    where its lists are old, a round begins anew, and elsewhere: where is told by the id of the event.

    Args:
        step: the step.
        limit: the most objects that one sweep runs the step on live.
        clock: tells the time, for plans.
        run: runs the step on an object, live.
        told: hears what became of each object.
        finished: hears of the end of each round.
    """

    def __init__(
        self,
        step: Step,
        limit: int,
        clock: Callable[[], datetime],
        *,
        run: Callable[[Cluster, Subject], Outcome],
        told: Callable[[Outcome], None],
        finished: Callable[[], None],
    ) -> None:
        self._step = step
        self._limit = limit
        self._clock = clock
        self._run = run
        self._told = told
        self._finished = finished
        self._one_at_a_time = Lock()
        self._round: _Round | None = None

    def sweep(self, cluster: DeadlineClient, event: Sweep, delay: float = 0.0) -> Outcome:
        """Go on with the round until its end, the end of the time, or the limit.

        One object that fails does not stop the others, and does not make the sweep come again: the next one
        comes anyway. Whatever was done or went wrong has a line of its own in the log. There is no reply
        event, because an answer is one event at most and a sweep does many things: who must not miss one
        watches the objects.

        Args:
            cluster: where; the sweep ends when its time is over.
            event: the sweep.
            delay: seconds to wait first.

        Raises:
            ClusterError: what the step is responsible for cannot be listed.
        """
        if not self._one_at_a_time.acquire(blocking=False):
            return Outcome(OutcomeKind.NOTHING, Reason.SWEPT, "another sweep is under way")
        try:
            time.sleep(delay)
            cluster.refresh()
            return self._go_on(cluster, event)
        finally:
            self._one_at_a_time.release()

    def _go_on(self, cluster: DeadlineClient, event: Sweep) -> Outcome:
        now = self._round
        if now is None or now.is_old:
            now = _Round(self._step, cluster)
        self._round = None
        try:
            subjects = now.subjects(cluster, event)
        except _PASSING:
            self._round = now
            raise
        if subjects is None:
            self._round = now
            return Outcome(
                OutcomeKind.NOTHING, Reason.SWEPT, f"{now.listed.pages} pages read; lists not complete"
            )
        reasons, actions = self._look_at(subjects, now, cluster, event)
        if subjects:
            self._round = now
        else:
            self._finished()
        return Outcome(
            OutcomeKind.DONE if actions else OutcomeKind.NOTHING,
            Reason.SWEPT,
            now.words(reasons),
            actions=actions,
        )

    def _look_at(
        self, subjects: deque[Subject], now: _Round, cluster: DeadlineClient, event: Sweep
    ) -> tuple[Counter[str], int]:
        """Take objects from the left; how often each reason came up, and the number of writes.

        One that the time does not suffice for is put back once: the next sweep begins with it. After that
        the others have their turn.
        """
        reasons: Counter[str] = Counter()
        live = actions = 0
        while subjects and live < self._limit and not cluster.time_is_over:
            subject = subjects.popleft()
            outcome = self._decided(now.listed, subject)
            if outcome is None:
                outcome = self._run(cluster, subject)
                live += 1
            if outcome.reason == Reason.DEADLINE_EXCEEDED and subject is not now.put_back:
                now.put_back = subject
                subjects.appendleft(subject)
                break
            self._told(outcome)
            reasons[outcome.reason] += 1
            actions += outcome.actions
            if outcome.kind is not OutcomeKind.NOTHING:
                logs.outcome_line(self._step.name, outcome, event=event.id, type="sweep")
        return reasons, actions

    def _decided(self, listed: ListCache, subject: Subject) -> Outcome | None:
        """Why there is nothing to do, as far as the lists tell; None where the step has to run."""
        if not (self._step.lists and self._step.lists_tell_all):
            return None
        try:
            decision = self._step.plan(self._step.inputs(listed, subject), self._clock())
        except Exception as error:  # noqa: BLE001 - where it is not "nothing", the step's own run tells it
            outcome = responses.of_error(error)
            return outcome if outcome.kind is OutcomeKind.NOTHING else None
        if isinstance(decision, NoOp) and not decision.requeue:
            return Outcome(OutcomeKind.NOTHING, decision.reason, decision.message)
        return None


class _Round:
    """One look at everything, as far as it has come."""

    def __init__(self, step: Step, cluster: DeadlineClient) -> None:
        self.listed = ListCache(cluster, step.lists)
        self.put_back: Subject | None = None
        self._step = step
        self._subjects: deque[Subject] | None = None
        self._all = 0
        self._began = time.monotonic()

    @property
    def is_old(self) -> bool:
        """Whether too much may have happened since its lists were read."""
        return time.monotonic() - self._began >= ROUND_SECONDS

    def subjects(self, cluster: DeadlineClient, event: Sweep) -> deque[Subject] | None:
        """What is left to look at; None while the lists are not complete and the time is over."""
        self.listed.cluster = cluster
        if self._subjects is None:
            try:
                while not self.listed.complete:
                    self.listed.read_page()
            except DeadlineExceeded:
                return None
            self._subjects = deque(self._step.responsible_for(self.listed))
            self._all = len(self._subjects)
            self._subjects.rotate(-_anywhere(event.id, self._all))
        return self._subjects

    def words(self, reasons: Counter[str]) -> str:
        """What came of the objects that were looked at, and how many are left."""
        told = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        left = len(self._subjects or ())
        more = f"; {left} of {self._all} objects left to the next sweep" if left else ""
        return (told or "nothing to look at") + more


def jitter(event: Sweep, step: Step, spread: float) -> float:
    """Seconds to wait, from 0 up to `spread`, so that not all functions list at the same moment.

    They get one event, so its id alone would not tell them apart; the same event waits the same time again.
    """
    return _anywhere(f"{event.id} {step.name}", 1000) / 1000 * spread


def _anywhere(text: str, length: int) -> int:
    """A number below `length`, always the same for a text; 0 where there is no such number."""
    return int.from_bytes(sha256(text.encode()).digest()[:8]) % length if length else 0
