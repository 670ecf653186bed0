"""Prometheus metrics of a function. The only module that uses prometheus_client.

The package adds 9 ms to a cold start (0.26.0, Python 3.11): Flask has loaded most of its imports already.

Every label has few values, whatever a sender puts into an event: unknown kinds and types are `other`, and no
object name is a label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

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

from muster.events.model import Event, OtherEvent, ResourceEvent, Sweep
from muster.objects.resources import ALL
from muster.runtime.outcome import Outcome

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""The content type of the exposition: the format that every version of Prometheus reads."""

OTHER = "other"
UNREADABLE = "unreadable"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds of the latency buckets: from an event without a call up to the timeout of the triggers."""

_OF_PROCESS = "process_"
"""How the names of ProcessCollector's metrics begin; they have no label `function`."""

_KINDS = frozenset(resource.kind for resource in ALL)


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

    def swept_all(self, now: datetime) -> None:
        """Set the time at which sweeps had last covered all objects."""
        self._last_round.labels(self._function).set(now.timestamp())

    def called(self, verb: str, resource: str, status: str) -> None:
        """Count a call to the API server."""
        self._calls.labels(self._function, verb, resource, status).inc()

    def buried(self, code: str) -> None:
        """Count a dead letter, by the HTTP status of its function's answer; "" if there was none."""
        self._dead_letters.labels(self._function, code or "none").inc()

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return exposition_of([self])

    def collect(self) -> Iterable[Metric]:
        """The current values of all metrics."""
        return self._registry.collect()


def exposition_of(functions: Sequence[Metrics]) -> bytes:
    """The metrics of the functions of one process, in Prometheus' text format.

    Samples of all functions stand together below the name of their metric, as the format wants it. Those of
    the process are the same for all functions, and stand there once.
    """
    families: dict[str, Metric] = {}
    for family in (family for metrics in functions for family in metrics.collect()):
        known = families.setdefault(family.name, family)
        if known is not family and not family.name.startswith(_OF_PROCESS):
            known.samples += family.samples
    return generate_latest(_Collected(families.values()))


class _Collected(Collector):
    """Metrics that were collected already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Those metrics."""
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
