"""Prometheus metrics of a function. The only module that uses prometheus_client.

Every label has few values, whatever a sender puts into an event: unknown kinds and types are `other`, and no
name of an object is a label, but namespaces of gauges of gangs are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.registry import Collector

from muster.events.parse import Event, OtherEvent, ResourceEvent, Sweep
from muster.objects.resources import ALL
from muster.policy.model import GangGivenUp, GangReport, GangsPlaced, Milestone
from muster.policy.owners import KINDS
from muster.policy.reasons import Reason
from muster.runtime.outcome import Outcome

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""The content type of the exposition: the format that every version of Prometheus reads."""

OTHER = "other"

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of the latency buckets: from an event without a call up to the timeout of the triggers."""

PLACEMENT_SECONDS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
"""Bounds of the buckets of waits: from a second, as Kubernetes writes times, to a day in a full cluster."""

_KINDS = frozenset(kind for _, kind in ALL)
_REASONS = frozenset(map(str, Reason))
_M = TypeVar("_M", Counter, Gauge, Histogram)


class Metrics:
    """The metrics of one function, in a registry of their own: a process may have several functions."""

    def __init__(self, function: str, in_flight: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)

        def new(kind: type[_M], name: str, text: str, labels: str = "", **options: Any) -> _M:
            names = ("function", *labels.split())
            return kind(f"muster_{name}", text, names, registry=self.registry, **options)

        self._function = function
        self._reports_gangs = False
        self._events = new(Counter, "events", "Events answered.", "type kind outcome reason")
        self._swept = new(Counter, "swept_objects", "Objects examined by sweeps.", "outcome reason")
        text = "From the arrival of an event to its answer."
        self._seconds = new(Histogram, "event_duration_seconds", text, "type", buckets=SECONDS)
        self._calls = new(Counter, "api_calls", "Calls to the API server, by status.", "verb resource status")
        self._dead_letters = new(Counter, "dead_letters", "Events that no function accepted.", "code")
        text = "From the creation or resumption of an owner until all its gangs are placed."
        self._placements = new(Histogram, "gang_placement_seconds", text, "kind", buckets=PLACEMENT_SECONDS)
        self._gave_up = new(Counter, "gave_up", "Owners that got no gang, or not all gangs.", "reason")
        self._placed = new(Gauge, "gangs_placed", "Gangs that are placed.", "namespace")
        self._waiting = new(
            Gauge, "gangs_waiting", "Gangs that are to run and are not placed.", "namespace reason"
        )
        text = "When the gang began to wait that has waited longest."
        self._since = new(Gauge, "gangs_waiting_since_timestamp_seconds", text, "namespace reason")
        self._without = new(Gauge, "owners_without_gang", "Owners that lack a gang.", "namespace reason")
        text = "When a sweep was last answered; 0 before the first one."
        self._last_sweep = new(Gauge, "last_sweep_timestamp_seconds", text).labels(function)
        text = "When sweeps had last examined all objects; 0 before the first time."
        self._last_round = new(Gauge, "last_whole_sweep_timestamp_seconds", text).labels(function)
        new(Gauge, "events_in_flight", "Events in progress.").labels(function).set_function(in_flight)

    def answered(self, event: Event | None, outcome: Outcome, seconds: float, now: datetime) -> None:
        """Count an answered event; None stands for an unreadable one."""
        type_, kind = _labels(event)
        self._events.labels(self._function, type_, kind, outcome.kind, outcome.reason).inc()
        self._seconds.labels(self._function, type_).observe(seconds)
        if isinstance(event, Sweep):
            self._last_sweep.set(now.timestamp())

    def swept(self, outcome: Outcome) -> None:
        """Count an object of a sweep."""
        self._swept.labels(self._function, outcome.kind, outcome.reason).inc()

    def swept_all(self, now: datetime, reports: Sequence[tuple[str, GangReport]]) -> None:
        """Set the time at which sweeps had last covered all objects, and the gangs of owners by namespace."""
        self._last_round.set(now.timestamp())
        self._reports_gangs = self._reports_gangs or bool(reports)
        if not self._reports_gangs:
            return
        for kind in KINDS:  # rate() ignores the first value of a series
            self._placements.labels(self._function, kind.resource.kind)
        for gauge in (self._placed, self._waiting, self._since, self._without):
            gauge.clear()
        for namespace, report in reports:
            self._placed.labels(self._function, namespace).inc(report.placed)
            if report.gave_up:
                self._without.labels(self._function, namespace, _known(report.gave_up)).inc()
        waiting = [(namespace, gang) for namespace, report in reports for gang in report.waiting]
        for namespace, gang in sorted(waiting, key=lambda found: found[1].since or now, reverse=True):
            self._waiting.labels(self._function, namespace, _known(gang.reason)).inc()
            if gang.since is not None:
                since = self._since.labels(self._function, namespace, _known(gang.reason))
                since.set(gang.since.timestamp())

    def milestone_reached(self, milestone: Milestone) -> None:
        """Count a placement, or that a gang was given up."""
        match milestone:
            case GangsPlaced(kind=kind, seconds=seconds):
                self._placements.labels(self._function, kind).observe(seconds)
            case GangGivenUp(reason=reason):
                self._gave_up.labels(self._function, _known(reason)).inc()

    def called(self, verb: str, resource: str, status: str) -> None:
        """Count a call to the API server."""
        self._calls.labels(self._function, verb, resource, status).inc()

    def dead_letter_stored(self, code: str) -> None:
        """Count a dead letter, by the HTTP status of its function's answer; "" if there was none."""
        self._dead_letters.labels(self._function, code or "none").inc()


def exposition_of(functions: Sequence[Metrics]) -> bytes:
    """Return the metrics of the functions of one process, in Prometheus' text format.

    Samples of all functions stand together below the name of their metric; those of the process stand once.
    """
    families = _Families()
    for family in (family for metrics in functions for family in metrics.registry.collect()):
        known = families.setdefault(family.name, family)
        if known is not family and not family.name.startswith("process_"):
            known.samples += family.samples
    return generate_latest(families)


class _Families(dict[str, Metric], Collector):
    """Metrics that were collected already, by name."""

    def collect(self) -> Iterable[Metric]:
        """Return those metrics."""
        return self.values()


def _known(reason: str) -> str:
    return str(reason) if reason in _REASONS else OTHER


def _labels(event: Event | None) -> tuple[str, str]:
    match event:
        case ResourceEvent(happened=happened, ref=ref):
            return str(happened), ref.kind if ref.kind in _KINDS else OTHER
        case Sweep():
            return "sweep", ""
        case OtherEvent():
            return OTHER, ""
        case None:
            return "unreadable", ""
