"""A broker with its triggers and PingSources, read from manifests."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from muster.simulator.broker.delivery import Delivery, destination
from muster.simulator.broker.events import CloudEvent
from muster.simulator.clock import now
from muster.simulator.overlays import Manifest, UnsupportedManifestError, of_kind

DEFAULT_DELIVERY = {"retry": 10, "backoffPolicy": "exponential", "backoffDelay": "PT0.2S"}
"""The delivery of a Broker without one, from config-br-defaults of knative.dev/eventing v0.47.0."""

Predicate = Callable[[Mapping[str, str]], bool]
"""Whether an event with these attributes passes."""

_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda actual, value: actual == value,
    "prefix": lambda actual, value: actual.startswith(value),
    "suffix": lambda actual, value: actual.endswith(value),
}
_GROUPS = {"all": all, "any": any}


@dataclass(frozen=True)
class Trigger:
    """A Trigger, with the delivery of its own or of the broker."""

    name: str
    namespace: str
    subscriber: str
    passes: Predicate
    delivery: Delivery


@dataclass(frozen=True)
class PingSource:
    """A PingSource: sends events of type `dev.knative.sources.ping` at the times of a cron expression."""

    name: str
    namespace: str
    schedule: str
    timezone: str
    extensions: Mapping[str, str]

    def times(self, after: datetime) -> Iterator[datetime]:
        """Yield the times of its schedule after a moment."""
        return CronSim(self.schedule, after.astimezone(ZoneInfo(self.timezone)))

    def event(self) -> CloudEvent:
        """Return the event of a tick (`pkg/adapter/mtping/runner.go`, knative.dev/eventing v0.47.0)."""
        attributes = {
            "specversion": "1.0",
            "id": str(uuid.uuid4()),
            "source": f"/apis/v1/namespaces/{self.namespace}/pingsources/{self.name}",
            "type": "dev.knative.sources.ping",
            "time": now(),
            **self.extensions,
        }
        return CloudEvent(attributes)


@dataclass(frozen=True)
class Wiring:
    """A broker with its triggers and the PingSources that send to it."""

    name: str
    namespace: str
    triggers: tuple[Trigger, ...]
    pings: tuple[PingSource, ...]

    @classmethod
    def from_manifests(cls, manifests: Iterable[Manifest], *, broker: str = "muster") -> Wiring:
        """Read the broker of this name, its triggers sorted by name, and the PingSources that send to it."""
        objects = list(manifests)
        brokers = [item for item in of_kind(objects, "Broker") if item["metadata"]["name"] == broker]
        if len(brokers) != 1:
            raise UnsupportedManifestError(f"{len(brokers)} brokers are called {broker!r}")
        default = Delivery.from_manifest((brokers[0].get("spec") or {}).get("delivery", DEFAULT_DELIVERY))
        triggers = [item for item in of_kind(objects, "Trigger") if item["spec"]["broker"] == broker]
        pings = (item for item in of_kind(objects, "PingSource") if _sink(item) == broker)
        return cls(
            name=broker,
            namespace=brokers[0]["metadata"]["namespace"],
            triggers=tuple(
                _trigger(item, default)
                for item in sorted(triggers, key=lambda item: item["metadata"]["name"])
            ),
            pings=tuple(map(_ping, pings)),
        )


class PingTimer:
    """A thread for each PingSource that publishes its event on schedule."""

    def __init__(self, pings: Iterable[PingSource], publish: Callable[[CloudEvent], None]) -> None:
        self._publish = publish
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(ping,), daemon=True) for ping in pings]

    def start(self) -> None:
        """Start the threads; the first events are sent at the next times of the schedules."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads; no event is published after this returns."""
        self._stopped.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _run(self, ping: PingSource) -> None:
        for due in ping.times(_utc_now()):
            if self._stopped.wait(max(0.0, (due - _utc_now()).total_seconds())):
                return
            self._publish(ping.event())


def _trigger(manifest: Manifest, default: Delivery) -> Trigger:
    name, spec = manifest["metadata"]["name"], manifest["spec"]
    try:
        delivery = default
        if "delivery" in spec:
            # Only the dead letter sink is taken from the broker's (pkg/reconciler/broker/trigger/trigger.go).
            delivery = Delivery.from_manifest(spec["delivery"])
            delivery = replace(delivery, dead_letter=delivery.dead_letter or default.dead_letter)
        return Trigger(
            name=name,
            namespace=manifest["metadata"]["namespace"],
            subscriber=destination(spec["subscriber"]),
            passes=_compile_filters(spec),
            delivery=delivery,
        )
    except UnsupportedManifestError as error:
        raise UnsupportedManifestError(f"Trigger {name}: {error}") from error


def _compile_filters(trigger_spec: Mapping[str, Any]) -> Predicate:
    """Return the predicate of `spec.filters`, as in `pkg/eventfilter` of knative.dev/eventing v0.47.0."""
    if trigger_spec.get("filter"):
        raise UnsupportedManifestError("spec.filter: the local broker knows spec.filters only")
    return _compile({"all": trigger_spec.get("filters") or []})


def _compile(entry: Mapping[str, Any]) -> Predicate:
    if len(entry) != 1:
        raise UnsupportedManifestError(f"a filter has one dialect, not {sorted(entry)}")
    ((dialect, body),) = entry.items()
    if dialect == "not":
        inner = _compile(body)
        return lambda attributes: not inner(attributes)
    if dialect in _GROUPS:
        decide, members = _GROUPS[dialect], [_compile(member) for member in body]
        return lambda attributes: decide(member(attributes) for member in members)
    if dialect in _COMPARISONS:
        compare = _COMPARISONS[dialect]
        return lambda attributes: all(
            name in attributes and compare(attributes[name], value) for name, value in body.items()
        )
    raise UnsupportedManifestError(f"filter dialect {dialect} is not understood by the local broker")


def _sink(source: Manifest) -> str:
    name: str = (source["spec"]["sink"].get("ref") or {}).get("name", "")
    return name


def _ping(manifest: Manifest) -> PingSource:
    name, spec = manifest["metadata"]["name"], manifest["spec"]
    ping = PingSource(
        name=name,
        namespace=manifest["metadata"]["namespace"],
        schedule=spec.get("schedule", "* * * * *"),
        timezone=spec.get("timezone", "UTC"),
        extensions=(spec.get("ceOverrides") or {}).get("extensions") or {},
    )
    try:
        next(ping.times(_utc_now()))
    except (CronSimError, LookupError, StopIteration) as error:
        raise UnsupportedManifestError(f"PingSource {name}: {error}") from error
    return ping


def _utc_now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)
