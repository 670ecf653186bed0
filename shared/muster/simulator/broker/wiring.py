"""A broker with its triggers and PingSources, read from manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from muster.kustomize import Manifest, UnsupportedManifestError, of_kind
from muster.simulator.broker.cron import Schedule
from muster.simulator.broker.delivery import Delivery, destination
from muster.simulator.broker.events import CloudEvent
from muster.simulator.broker.filters import Predicate, compile_filters
from muster.simulator.knative import stored

DEFAULT_DELIVERY = {"retry": 10, "backoffPolicy": "exponential", "backoffDelay": "PT0.2S"}
"""The delivery of a Broker without one, from config-br-defaults of knative.dev/eventing v0.47.0."""


@dataclass(frozen=True)
class Trigger:
    """A Trigger.

    Attributes:
        subscriber: the Knative Service that receives the events, with the path: `muster/create-workload`.
        passes: whether the filter matches an event's attributes.
        delivery: the delivery spec of the trigger, else of the broker; a trigger's own one without a dead
            letter sink has the broker's sink.
    """

    name: str
    namespace: str
    subscriber: str
    passes: Predicate
    delivery: Delivery


@dataclass(frozen=True)
class PingSource:
    """A PingSource: sends events of type `dev.knative.sources.ping` on a schedule."""

    name: str
    namespace: str
    schedule: Schedule
    data: bytes = b""
    content_type: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)

    def event(self, event_id: str, time: str) -> CloudEvent:
        """Return the event of a tick (`pkg/adapter/mtping/runner.go`, knative.dev/eventing v0.47.0)."""
        attributes = {
            "specversion": "1.0",
            "id": event_id,
            "source": f"/apis/v1/namespaces/{self.namespace}/pingsources/{self.name}",
            "type": "dev.knative.sources.ping",
            "time": time,
            **self.extensions,
        }
        if self.data and self.content_type:
            attributes["datacontenttype"] = self.content_type
        return CloudEvent(attributes, self.data)


@dataclass(frozen=True)
class Wiring:
    """A broker with its triggers and the PingSources that send to it."""

    name: str
    namespace: str
    triggers: tuple[Trigger, ...]
    pings: tuple[PingSource, ...]

    @classmethod
    def from_manifests(cls, manifests: Iterable[Manifest], *, broker: str = "muster") -> Wiring:
        """Read the broker of this name, its triggers sorted by name, and the PingSources that send to it.

        Raises:
            UnsupportedManifestError: there is no such broker, or a manifest uses an unsupported feature.
        """
        objects = list(manifests)
        brokers = [item for item in _of_kind(objects, "Broker") if item["metadata"]["name"] == broker]
        if len(brokers) != 1:
            raise UnsupportedManifestError(f"{len(brokers)} brokers are called {broker!r}")
        namespace = brokers[0]["metadata"]["namespace"]
        delivery = brokers[0]["spec"].get("delivery")
        default = Delivery.from_manifest(DEFAULT_DELIVERY if delivery is None else delivery)
        triggers = (item for item in _of_kind(objects, "Trigger") if item["spec"]["broker"] == broker)
        pings = (item for item in _of_kind(objects, "PingSource") if _sink(item) == broker)
        return cls(
            name=broker,
            namespace=namespace,
            triggers=tuple(
                sorted((_trigger(item, default) for item in triggers), key=lambda trigger: trigger.name)
            ),
            pings=tuple(_ping(item) for item in pings),
        )

    def without_timers(self) -> Wiring:
        """Return a copy without PingSources, for replays."""
        return Wiring(self.name, self.namespace, self.triggers, ())


def _of_kind(objects: Iterable[Manifest], kind: str) -> Iterator[Manifest]:
    """Yield the objects of a kind as an API server stores them.

    Raises:
        UnsupportedManifestError: one lacks a field, or has one of another type, which no API server takes.
    """
    return map(stored, of_kind(objects, kind))


def _trigger(manifest: Manifest, default: Delivery) -> Trigger:
    name, spec = manifest["metadata"]["name"], manifest["spec"]
    own = spec.get("delivery")
    try:
        return Trigger(
            name=name,
            namespace=manifest["metadata"]["namespace"],
            subscriber=destination(spec["subscriber"]),
            passes=compile_filters(spec),
            # Only the dead letter sink is taken from the broker's (pkg/reconciler/broker/trigger/trigger.go).
            delivery=default if own is None else Delivery.from_manifest(own).or_sink_of(default),
        )
    except UnsupportedManifestError as error:
        raise UnsupportedManifestError(f"Trigger {name}: {error}") from error


def _sink(source: Manifest) -> str:
    name: str = (source["spec"]["sink"].get("ref") or {}).get("name", "")
    return name


def _ping(manifest: Manifest) -> PingSource:
    name, spec = manifest["metadata"]["name"], manifest["spec"]
    try:
        schedule = Schedule.parse(spec.get("schedule", "* * * * *"), spec.get("timezone", ""))
    except UnsupportedManifestError as error:
        raise UnsupportedManifestError(f"PingSource {name}: {error}") from error
    return PingSource(
        name=name,
        namespace=manifest["metadata"]["namespace"],
        schedule=schedule,
        data=str(spec.get("data", "")).encode(),
        content_type=spec.get("contentType", ""),
        extensions=(spec.get("ceOverrides") or {}).get("extensions") or {},
    )
