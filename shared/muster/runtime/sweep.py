"""Sweeps: a step looks at all its objects, one namespace after another, to make up for lost events."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import TypeVar

from muster.cluster import errors
from muster.cluster.observe.sweep import ListedNamespace, namespaces
from muster.events.parse import Sweep
from muster.objects.meta import ObjectRef
from muster.objects.text import counted
from muster.policy.model import GangReport, NoOp, Reply
from muster.policy.reasons import Reason
from muster.runtime.deadline_client import DeadlineClient, DeadlineExceeded
from muster.runtime.http import responses
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.runtime.runs import Runs
from muster.runtime.step import Step
from muster.runtime.telemetry import logs
from muster.runtime.telemetry.metrics import Metrics

_Item = TypeVar("_Item")


class Sweeps:
    """The sweeps of one function, one at a time.

    A round goes through all namespaces. In each the step's kinds are listed, and the step runs live on the
    objects that need a write by these lists. A sweep ends at its deadline, and the next one goes on with the
    namespace in which it ended. One that began with that namespace is through with it in any case, so that no
    namespace holds up the others. The event's id chooses with which namespace and object a round begins, so
    that each has its turn however often a function is restarted.
    """

    def __init__(
        self,
        step: Step,
        clock: Callable[[], datetime],
        namespace: str,
        run: Callable[[DeadlineClient, ObjectRef], Outcome],
        metrics: Metrics,
    ) -> None:
        self._step, self._clock, self._namespace = step, clock, namespace
        self._run, self._metrics = run, metrics
        self._runs = Runs()
        self._left = deque[str]()
        """The namespaces that are left of the round."""
        self._gangs: list[tuple[str, GangReport]] = []

    def sweep(self, cluster: DeadlineClient, event: Sweep) -> Outcome:
        """Continue the round until its end or the deadline.

        Where writes have replies, the sweep has one too: by it the next step sweeps at once. Sweeps asked for
        while one is in work share the next one, since that one may have listed what came before them.

        Raises:
            DeadlineExceeded: the one in work took until the deadline.
        """
        return self._runs.outcome("sweep", cluster.seconds_left, lambda: self._continue(cluster, event))

    def _continue(self, cluster: DeadlineClient, event: Sweep) -> Outcome:
        cluster.refresh()
        if not self._left:
            names = [self._namespace] if self._namespace else namespaces(cluster)
            self._left.extend(_rotated(names, event))
            self._gangs = []
        outcomes: list[Outcome] = []
        began_with, whole = self._left[0], True
        while self._left and whole:
            name = self._left[0]
            here, whole = self._look_at(cluster, name, event)
            outcomes += here
            if whole or name == began_with:
                self._left.popleft()
                self._gangs += ((name, outcome.gangs) for outcome in here if outcome.gangs is not None)
        if not self._left:
            self._metrics.swept_all(self._clock(), self._gangs)
        counts = sorted(Counter(str(outcome.reason) for outcome in outcomes).items())
        message = ", ".join(f"{count} {reason}" for reason, count in counts) or "no objects"
        message += f"; {counted(len(self._left), 'namespace')} left to the next sweep" if self._left else ""
        actions = sum(outcome.actions for outcome in outcomes)
        kind = OutcomeKind.DONE if actions else OutcomeKind.NOTHING
        replied = next((outcome.subject for outcome in outcomes if outcome.reply is not None), None)
        reply = Reply("swept", replied) if replied is not None and actions else None
        return Outcome(kind, Reason.SWEPT, message, actions=actions, reply=reply)

    def _look_at(self, cluster: DeadlineClient, name: str, event: Sweep) -> tuple[list[Outcome], bool]:
        """Return the outcomes of the objects of a namespace, and whether these are all."""
        outcomes: list[Outcome] = []
        try:
            listed = ListedNamespace(cluster, name, self._step.lists)
            subjects = _rotated([*self._step.swept(listed, name)], event)
        except DeadlineExceeded:
            return outcomes, False
        except Exception as error:
            unanswered = isinstance(error, errors.ClusterError) and not error.status
            if unanswered or isinstance(error, errors.TooManyRequests):
                raise
            return [self._noted(responses.of_error(error), event)], True
        for subject in subjects:
            if cluster.seconds_left <= 0:
                return outcomes, False
            outcome = self._outcome_by_lists(listed, subject) or self._run(cluster, subject)
            outcomes.append(self._noted(outcome, event))
        return outcomes, True

    def _outcome_by_lists(self, listed: ListedNamespace, subject: ObjectRef) -> Outcome | None:
        try:
            decision = self._step.plan(self._step.observe(listed, subject), self._clock())
        except Exception as error:  # noqa: BLE001 - other errors are reported by the live run
            outcome = responses.of_error(error)
            return outcome if outcome.kind is OutcomeKind.NOTHING else None
        if isinstance(decision, NoOp) and not decision.requeue:
            return Outcome(OutcomeKind.NOTHING, decision.reason, decision.message, gangs=decision.gangs)
        return None

    def _noted(self, outcome: Outcome, event: Sweep) -> Outcome:
        """Return an outcome of this sweep, counted, and with a log line if it is a write or a failure."""
        self._metrics.swept(outcome)
        if outcome.kind is not OutcomeKind.NOTHING:
            logs.outcome_line(self._step.name, outcome, event=event.id, type="sweep")
        return outcome


def _rotated(items: list[_Item], event: Sweep) -> list[_Item]:
    first = Random(event.id).randrange(len(items) or 1)  # noqa: S311 - no secret
    return items[first:] + items[:first]
