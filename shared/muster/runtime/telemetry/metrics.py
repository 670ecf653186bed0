"""Prometheus metrics of a function. The only module that uses prometheus_client.

The package adds 9 ms to a cold start (0.26.0, Python 3.11): Flask has loaded most of its imports already.

Every label has few values, whatever a sender puts into an event: unknown kinds and types are `other`, and no
object name is a label.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from threading import Lock

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
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from muster.events.model import Event, OtherEvent, ResourceEvent, Sweep
from muster.objects.resources import ALL
from muster.policy.model import GangGivenUp, GangsPlaced, Milestone
from muster.policy.owners import KINDS
from muster.policy.reasons import Reason
from muster.runtime.outcome import GangTally, Outcome

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""The content type of the exposition: the format that every version of Prometheus reads."""

OTHER = "other"
UNREADABLE = "unreadable"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of the latency buckets: from an event without a call up to the timeout of the triggers."""

_OF_PROCESS = "process_"
"""How the names of ProcessCollector's metrics begin; they have no label `function`."""

PLACEMENT_SECONDS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
"""Bounds of the buckets of waits: from a second, as Kubernetes writes times, to a day in a full cluster."""

_KINDS = frozenset(resource.kind for resource in ALL)
_REASONS = frozenset(map(str, Reason))


class Metrics:
    """The metrics of one function.

    They have a registry of their own: the local stack runs several functions in one process.

    Args:
        function: the name of the function, the label `function` of all metrics.
        in_flight: returns the number of events in work.
    """

    def __init__(self, function: str, in_flight: Callable[[], int]) -> None:
        self._function = function
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._events = Counter(
            "muster_events",
            "Events answered; type is add, update, delete, sweep, other or unreadable.",
            ("function", "type", "kind", "outcome", "reason"),
            registry=self._registry,
        )
        self._swept = Counter(
            "muster_swept_objects",
            "Objects examined by sweeps.",
            ("function", "outcome", "reason"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "muster_event_duration_seconds",
            "From the arrival of an event to its answer.",
            ("function", "type"),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._calls = Counter(
            "muster_api_calls",
            "Calls to the API server; status is ok, the HTTP status of a refusal, or none without an answer.",
            ("function", "verb", "resource", "status"),
            registry=self._registry,
        )
        self._dead_letters = Counter(
            "muster_dead_letters",
            "Events that no function accepted; code is the failed function's answer, none without an answer.",
            ("function", "code"),
            registry=self._registry,
        )
        self._placements = Histogram(
            "muster_gang_placement_seconds",
            "From the creation or resumption of an owner until all its gangs are placed, once per placement.",
            ("function", "kind"),
            buckets=PLACEMENT_SECONDS,
            registry=self._registry,
        )
        self._gave_up = Counter(
            "muster_gave_up",
            "Owners that got no gang, or lack one of their gangs, once per reason that they get.",
            ("function", "reason"),
            registry=self._registry,
        )
        self._gangs = _Gangs(function)
        self._registry.register(self._gangs)
        self._last_sweep = Gauge(
            "muster_last_sweep_timestamp_seconds",
            "When a sweep was last answered; 0 before the first one.",
            ("function",),
            registry=self._registry,
        )
        self._last_sweep.labels(function)
        self._last_round = Gauge(
            "muster_last_whole_sweep_timestamp_seconds",
            "When sweeps had last examined all objects; 0 before the first time.",
            ("function",),
            registry=self._registry,
        )
        self._last_round.labels(function)
        in_flight_now = Gauge(
            "muster_events_in_flight",
            "Events in progress.",
            ("function",),
            registry=self._registry,
        )
        in_flight_now.labels(function).set_function(in_flight)

    def answered(self, event: Event | None, outcome: Outcome, seconds: float, now: datetime) -> None:
        """Count an answered event; None stands for an unreadable one."""
        type_, kind = _labels(event)
        self._events.labels(self._function, type_, kind, str(outcome.kind), str(outcome.reason)).inc()
        self._seconds.labels(self._function, type_).observe(seconds)
        if isinstance(event, Sweep):
            self._last_sweep.labels(self._function).set(now.timestamp())

    def swept(self, outcome: Outcome) -> None:
        """Count an object of a sweep."""
        self._swept.labels(self._function, str(outcome.kind), str(outcome.reason)).inc()

    def swept_all(self, now: datetime, gangs: GangTally) -> None:
        """Set the time at which sweeps had last covered all objects, and the gangs that they found."""
        self._last_round.labels(self._function).set(now.timestamp())
        self._gangs.set(gangs)
        if gangs.reported:
            for kind in KINDS:  # rate() ignores the first value of a series
                self._placements.labels(self._function, kind.resource.kind)

    def milestone_reached(self, milestone: Milestone) -> None:
        """Count a placement, or that a gang was given up."""
        match milestone:
            case GangsPlaced(kind=kind, seconds=seconds):
                self._placements.labels(self._function, kind if kind in _KINDS else OTHER).observe(seconds)
            case GangGivenUp(reason=reason):
                self._gave_up.labels(self._function, _known(reason)).inc()

    def called(self, verb: str, resource: str, status: str) -> None:
        """Count a call to the API server."""
        self._calls.labels(self._function, verb, resource, status).inc()

    def dead_letter_stored(self, code: str) -> None:
        """Count a dead letter, by the HTTP status of its function's answer; "" if there was none."""
        self._dead_letters.labels(self._function, code or "none").inc()

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return exposition_of([self])

    def collect(self) -> Iterable[Metric]:
        """Return the current values of all metrics."""
        return self._registry.collect()


def exposition_of(functions: Sequence[Metrics]) -> bytes:
    """Return the metrics of the functions of one process, in Prometheus' text format.

    Samples of all functions stand together below the name of their metric, as the format wants it. Those of
    the process are the same for all functions, and stand there once.
    """
    families: dict[str, Metric] = {}
    for family in (family for metrics in functions for family in metrics.collect()):
        known = families.setdefault(family.name, family)
        if known is not family and not family.name.startswith(_OF_PROCESS):
            known.samples += family.samples
    return generate_latest(_Collected(families.values()))


class Exposition:
    """The metrics of one process as text, for many requests at once; safe to use from several threads.

    The text is made once for all requests that wait for it: it takes a processor for up to 40 ms, and anyone
    who reaches a function may ask for it.

    Args:
        make: returns the text.
        numbers: yields a number for each request and each text, in the order in which they begin.
    """

    def __init__(self, make: Callable[[], bytes], numbers: Iterator[int] | None = None) -> None:
        self._make = make
        self._numbers = numbers or itertools.count(1)
        self._lock = Lock()
        self._begun = 0
        self._text = b""

    def text(self) -> bytes:
        """Return a text that was begun after this call."""
        called = next(self._numbers)
        with self._lock:
            if self._begun < called:
                self._begun = next(self._numbers)
                self._text = self._make()
            return self._text


@dataclass(frozen=True)
class _GangValues:
    """The gangs that one round of sweeps has found; times in seconds since 1970."""

    placed: int = 0
    waiting: Mapping[str, float] = field(default_factory=dict)
    since: Mapping[str, float] = field(default_factory=dict)
    gave_up: Mapping[str, float] = field(default_factory=dict)


class _Gangs(Collector):
    """The gangs that the last whole round of sweeps has found; no samples before the first of them.

    A reason that was once there and is not any more has the value 0.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._values: _GangValues | None = None

    def set(self, tally: GangTally) -> None:
        """Replace all values at once by those of a whole round."""
        before = self._values
        if before is None:
            if not tally.reported:
                return
            before = _GangValues()
        since: dict[str, float] = {}
        for reason, time in tally.since.items():
            since[_known(reason)] = min(time.timestamp(), since.get(_known(reason), inf))
        self._values = _GangValues(
            tally.placed,
            _by_reason(tally.waiting, before.waiting),
            since,
            _by_reason(tally.gave_up, before.gave_up),
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the values of the last whole round."""
        values = self._values
        if values is None:
            return
        yield self._gauge("muster_gangs_placed", "Gangs that are placed.", {"": values.placed}, ())
        yield self._gauge("muster_gangs_waiting", "Gangs that are to run and are not placed.", values.waiting)
        yield self._gauge(
            "muster_gangs_waiting_since_timestamp_seconds",
            "When the gang began to wait that has waited longest.",
            values.since,
        )
        yield self._gauge(
            "muster_owners_without_gang",
            "Owners that have no gang, or lack one of their gangs.",
            values.gave_up,
        )

    def _gauge(
        self, name: str, text: str, values: Mapping[str, float], labels: tuple[str, ...] = ("reason",)
    ) -> Metric:
        family = GaugeMetricFamily(name, text, labels=("function", *labels))
        for reason, value in values.items():
            family.add_metric((self._function, reason)[: 1 + len(labels)], value)
        return family


def _by_reason(counts: Mapping[str, int], before: Mapping[str, float]) -> Mapping[str, float]:
    """Counts by the reasons that metrics have, with 0 for those that were there before."""
    known = dict.fromkeys(before, 0.0)
    for reason, count in counts.items():
        known[_known(reason)] = known.get(_known(reason), 0.0) + count
    return known


def _known(reason: str) -> str:
    """Return the reason if it is one of `Reason`, else `other`."""
    return str(reason) if str(reason) in _REASONS else OTHER


class _Collected(Collector):
    """Metrics that were collected already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return those metrics."""
        return self._families


def _labels(event: Event | None) -> tuple[str, str]:
    match event:
        case ResourceEvent(happened=happened, ref=ref):
            return str(happened), ref.kind if ref.kind in _KINDS else OTHER
        case Sweep():
            return "sweep", ""
        case OtherEvent():
            return OTHER, ""
        case None:
            return UNREADABLE, ""
