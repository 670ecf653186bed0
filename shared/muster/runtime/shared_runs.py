"""One run of a step for all events about an object that wait at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from threading import Lock

from muster.objects.meta import ObjectRef
from muster.runtime.outcome import Outcome


class SharedRuns:
    """Lets an event take part in a run about its object that waits; safe to use from several threads.

    An event only says which object to look at, so one run that begins after all of them came has seen what
    each of them tells. Senders who repeat an event about a large gang take one run of it at a time, and so
    does a burst of changes.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[ObjectRef, Future[Outcome]] = {}

    def run(
        self, subject: ObjectRef, seconds: float, run: Callable[[Callable[[], None]], Outcome]
    ) -> Outcome:
        """Return the outcome of a run about an object.

        Args:
            subject: the object, with its UID as the event has it.
            seconds: the longest wait for the run of another event.
            run: waits, calls its argument, and runs the step. An event that comes before that call takes part
                in the run; its outcome has no writes and no reply event.

        Raises:
            TimeoutError: the run of another event did not end in time.
            NamespaceBusyError: as `run` raises it.
        """
        with self._lock:
            waiting = self._waiting.get(subject)
            if waiting is None:
                own = self._waiting[subject] = Future[Outcome]()
        if waiting is not None:
            return replace(waiting.result(seconds), actions=0, reply=None, milestones=())
        try:
            outcome = run(lambda: self._begin(subject, own))
        except BaseException as error:
            own.set_exception(error)
            raise
        finally:
            self._begin(subject, own)
        own.set_result(outcome)
        return outcome

    def _begin(self, subject: ObjectRef, run: Future[Outcome]) -> None:
        """Let no more events take part in a run."""
        with self._lock:
            if self._waiting.get(subject) is run:
                del self._waiting[subject]
