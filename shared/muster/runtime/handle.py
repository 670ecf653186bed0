"""Handling one event with one step: parse, observe, plan, execute, answer, log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from threading import Condition
from typing import Any

from cloudevents.core.bindings.http import HTTPMessage
from pydantic import ValidationError

from muster.cluster.interface import Cluster
from muster.events.parse import Event, ResourceEvent, Sweep, UnreadableEvent, parse
from muster.events.replies import reply_event
from muster.objects.meta import ObjectRef
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime.config import Settings
from muster.runtime.deadline_client import DeadlineClient
from muster.runtime.http import responses
from muster.runtime.http.responses import BODY_TOO_LARGE, HttpAnswer
from muster.runtime.memory import Memory
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.runtime.runs import Runs
from muster.runtime.step import Step
from muster.runtime.sweep import Sweeps
from muster.runtime.telemetry import logs, tracing
from muster.runtime.telemetry.metrics import Metrics
from muster.runtime.telemetry.tracing import Spans, no_spans

Clock = Callable[[], datetime]

_TRIES = 4
"""Attempts of a step before a conflict goes to the broker. A TrainJob's status is written several times a
second while it starts: a broker's retries, seconds apart, would be used up."""


def run_step(
    step: Step, cluster: Cluster, subject: ObjectRef, clock: Clock, spans: Spans = no_spans
) -> Outcome:
    """Observe an object, plan, and execute the plan; again a few times after a conflict; never raises."""
    for _ in range(_TRIES):
        outcome = _run_once(step, cluster, subject, clock, spans)
        if outcome.reason != Reason.CONFLICT:
            break
    return outcome


def _run_once(step: Step, cluster: Cluster, subject: ObjectRef, clock: Clock, spans: Spans) -> Outcome:
    try:
        with spans("observe"):
            inputs = step.observe(cluster, subject)
        with spans("plan"):
            decision = step.plan(inputs, clock())
        if isinstance(decision, NoOp):
            kind = OutcomeKind.REQUEUE if decision.requeue else OutcomeKind.NOTHING
            return Outcome(
                kind, decision.reason, decision.message, subject, gangs=decision.gangs, reply=decision.reply
            )
        with spans("execute"):
            plan = step.execute(cluster, decision, step.manager)
    except Exception as error:  # noqa: BLE001 - a step's error must become an answer, else the event is lost
        return replace(responses.of_error(error), subject=subject)
    return Outcome(
        OutcomeKind.REQUEUE if plan.requeue else OutcomeKind.DONE,
        plan.reason,
        plan.message,
        subject,
        status=503 if plan.reason == Reason.WRITE_LIMIT else None,
        actions=len(plan.actions),
        reply=plan.reply,
        gangs=plan.gangs,
        milestones=tuple(milestone for action in plan.actions for milestone in action.milestones),
    )


class InFlight:
    """The number of events in work, so that a shutdown can wait for them."""

    def __init__(self) -> None:
        self._changed = Condition()
        self.count = 0

    def __enter__(self) -> None:
        with self._changed:
            self.count += 1

    def __exit__(self, *_error: object) -> None:
        with self._changed:
            self.count -= 1
            self._changed.notify_all()

    def wait_until_none(self, seconds: float) -> bool:
        """Wait until no event is in work; False if that takes longer than `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: self.count == 0, timeout=seconds)


class Handler:
    """Answers the events of one step; safe to use from several threads."""

    def __init__(
        self, step: Step, cluster: Cluster, settings: Settings, clock: Clock, spans: Spans | None = None
    ) -> None:
        self.step, self.settings = step, settings
        self.name, self.manager, self.permissions = step.name, step.manager, step.all_permissions
        self.namespace = settings.namespace
        self.in_flight = InFlight()
        self.metrics = Metrics(step.name, lambda: self.in_flight.count)
        self.cluster = cluster
        self._clock = clock
        self._spans = tracing.configured(settings.traces, step.name) if spans is None else spans
        self._runs, self._memory = Runs(), Memory()
        self._sweeps = Sweeps(step, clock, settings.namespace, self._run, self.metrics)

    def handle(self, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """Return the answer to a request that should be a CloudEvent; never raises."""
        with self.in_flight, self._spans(self.name, headers) as add_attributes:
            started = time.perf_counter()
            seconds = self.settings.deadline_seconds
            cluster = DeadlineClient(self.cluster, seconds, self.metrics.called, self._spans, self._memory)
            event: Event | None = None
            reply: HTTPMessage | None = None
            about = logs.claimed(headers)
            try:
                event = parse(headers, body)
                about = logs.about(event)
                outcome = self._outcome(event, cluster)
                if outcome.reply is None and isinstance(event, ResourceEvent):
                    outcome = replace(outcome, reply=self.step.passed_on(event))
                if outcome.reply is not None:
                    cluster_name, now = self.settings.cluster_name, self._clock()
                    reply = reply_event(outcome.reply, self.name, event.id, now, cluster_name)
            except Exception as error:  # noqa: BLE001 - an error that escapes here would lose the event
                outcome = responses.of_error(error)
            self._report(event, outcome, started, **about, api_calls=cluster.calls)
            attributes = {**about, "outcome": str(outcome.kind), "reason": str(outcome.reason)}
            add_attributes({f"muster.{name}": str(value) for name, value in attributes.items()})
            return responses.answer(outcome, reply)

    def refuse(self, headers: Mapping[str, str]) -> HttpAnswer:
        """Return the answer to a request whose body is too large."""
        self._report(None, BODY_TOO_LARGE, time.perf_counter(), **logs.claimed(headers))
        return responses.answer(BODY_TOO_LARGE)

    def _outcome(self, event: Event, cluster: DeadlineClient) -> Outcome:
        if isinstance(event, Sweep):
            cluster.newest = True
            return self._sweeps.sweep(cluster, event)
        try:
            subject = self.step.subject_of(event)
        except ValidationError as error:
            path, message = responses.first_fault(error)
            raise UnreadableEvent(message, f"data.{path}") from None
        if isinstance(subject, NoOp):
            return Outcome(OutcomeKind.NOTHING, subject.reason, subject.message)
        cluster.expects_new = True
        return self._runs.outcome(subject, cluster.seconds_left, lambda: self._run(cluster, subject))

    def _run(self, cluster: DeadlineClient, subject: ObjectRef) -> Outcome:
        outcome = run_step(self.step, cluster, subject, self._clock, self._spans)
        for milestone in outcome.milestones:
            self.metrics.milestone_reached(milestone)
        return outcome

    def _report(self, event: Event | None, outcome: Outcome, started: float, /, **fields: Any) -> None:
        seconds = time.perf_counter() - started
        self.metrics.answered(event, outcome, seconds, self._clock())
        fields["duration_ms"] = round(seconds * 1000, 1)
        if self.settings.cluster_name:
            fields["cluster"] = self.settings.cluster_name
        logs.outcome_line(self.name, outcome, **fields)
