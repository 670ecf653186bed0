"""Recorded events through the functions, against the embedded API server, one by one and always alike.

Nothing runs beside it: no controller, no timer, one thread. The cluster is what the files say, and only the
functions change it. What they write becomes events, as ApiServerSource would send them, until nobody writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Self

from muster import manifests, steps
from muster.cluster.versioned import Versioned
from muster.objects.resources import Resource, by_kind
from muster.policy import bodies
from muster.replay.activity import Activity, Listening
from muster.replay.files import BadFileError
from muster.replay.recorded_requests import Capture
from muster.replay.snapshots import Object, Objects, World
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.broker import Answer, Broker, CloudEvent, NotAnEventError, Target, Wiring
from muster.simulator.direct import Direct
from muster.simulator.source import ChangeType, Mode, SourceSpec, to_event

ROUNDS = 50
"""So often may writes follow writes before the functions are said never to come to rest."""

GROUP_KINDS = ("Workload", "PodGroup", "CompositePodGroup")


class NeverQuietError(Exception):
    """The functions kept writing: each write made an event that made another write."""


@dataclass(frozen=True)
class End:
    """What a replay left behind.

    Attributes:
        objects: all objects of the cluster then.
        activities: what the functions did, in order.
        dead_letters: events that no retry could deliver.
    """

    objects: Objects
    activities: tuple[Activity, ...]
    dead_letters: tuple[CloudEvent, ...]

    def of_kind(self, *kinds: str) -> Objects:
        """The objects of some kinds, by namespace and name."""
        found = [one for one in self.objects if one["kind"] in kinds]
        return sorted(found, key=lambda one: (one["metadata"].get("namespace", ""), one["metadata"]["name"]))


@dataclass(frozen=True)
class Order:
    """What is delivered: a stream, and what is done to it.

    Attributes:
        captures: the recorded events.
        sweep: whether one sweep follows them.
    """

    captures: tuple[Capture, ...]
    sweep: bool = False


@dataclass(frozen=True)
class Delivery:
    """One event of the stream, delivered; `changed` tells whether any function wrote anything about it."""

    capture: Capture
    changed: bool


def replay(
    order: Order,
    worlds: Iterable[World],
    now: datetime,
    *,
    told: Callable[[Delivery], None] = lambda _delivery: None,
) -> End:
    """Deliver the events in each world in turn, until all is quiet; how the last one ends.

    Args:
        order: the events.
        worlds: clusters, mostly one; see `walk`.
        now: the time in conditions and Events.
        told: hears of every event of the stream that was delivered.

    Raises:
        BadFileError: something in a file is no CloudEvent.
        NeverQuietError: the functions never came to rest.
    """
    *_, end = walk(order, worlds, now, told=told)
    return end


def walk(
    order: Order,
    worlds: Iterable[World],
    now: datetime,
    *,
    told: Callable[[Delivery], None] = lambda _delivery: None,
) -> Iterator[End]:
    """As `replay`, how each world ends.

    Every world but the first keeps what the functions made in the one before it, with the status that the
    recording tells of.
    """
    end = End([], (), ())
    for number, world in enumerate(worlds):
        objects = carried_over(world.objects, end.objects) if number else world.objects
        with Stage(objects, now) as stage:
            for capture in order.captures:
                told(Delivery(capture, changed=stage.deliver(event_of(capture))))
            if order.sweep:
                stage.deliver(SWEEP)
            end = End(
                stage.server.snapshot(),
                (*end.activities, *stage.activities),
                (*end.dead_letters, *stage.dead_letters),
            )
        yield end


SWEEP = CloudEvent(
    {"specversion": "1.0", "id": "sweep", "source": "/muster/replay", "type": "dev.muster.sweep"}
)


def event_of(capture: Capture) -> CloudEvent:
    """A recorded event as a broker takes it.

    Raises:
        BadFileError: the broker would refuse it.
    """
    try:
        return CloudEvent.from_http(capture.headers, capture.body)
    except NotAnEventError as error:
        raise BadFileError(capture.place, str(error)) from None


def without_groups(world: World) -> World:
    """The same world without what Muster made in it."""
    return World(world.moment, [one for one in world.objects if not is_musters_group(one)])


def is_musters_group(found: Object) -> bool:
    """Whether an object is a group or Workload of Muster's."""
    return found["kind"] in GROUP_KINDS and bodies.is_musters(found["metadata"].get("labels") or {})


def carried_over(objects: Objects, before: Objects) -> Objects:
    """A recorded world in which Muster's groups are those made so far, with their recorded status.

    A group none of whose owners is left would have been collected, and is left out.
    """
    others = [one for one in objects if not is_musters_group(one)]
    recorded = {(one["kind"], one["metadata"]["name"]): one for one in objects if is_musters_group(one)}
    alive = {one["metadata"].get("uid") for one in others}
    kept: Objects = []
    for one in sorted(filter(is_musters_group, before), key=lambda found: found["kind"] != "Workload"):
        owners = {owner["uid"] for owner in one["metadata"].get("ownerReferences") or []}
        status = recorded.get((one["kind"], one["metadata"]["name"]), {}).get("status")
        if owners & alive:
            kept.append({**one, **({"status": status} if status else {})})
            alive.add(one["metadata"]["uid"])
    return [*others, *kept]


@dataclass
class Stage:
    """The embedded server, the broker and the functions, for as long as one world lasts.

    Attributes:
        objects: the cluster at the beginning.
        now: the only time there is.
        activities: what the functions did so far.
        dead_letters: what could not be delivered so far.
    """

    objects: Objects
    now: datetime
    server: ApiServer = field(default_factory=ApiServer)
    activities: list[Activity] = field(default_factory=list)
    dead_letters: list[CloudEvent] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.server.start()
        self.server.load(_definitions())
        self.server.load(_servable(self.objects))
        self._client = Direct.to(self.server, user_agent="muster-replay")
        self._broker = Broker(_wiring(), self._subscribers(), workers=0, clock=lambda: "")
        self._known = self._seen()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def deliver(self, event: CloudEvent) -> bool:
        """Deliver one event, and the events that the functions' writes are, until nobody writes.

        Returns:
            Whether anything was written.

        Raises:
            NeverQuietError: that never happens.
        """
        with Listening(self.activities.append):
            self._broker.publish(event)
            for number in range(ROUNDS):
                before = len(self.activities)
                self._broker.pump()
                if not any(one.actions or one.outcome == "come_again" for one in self.activities[before:]):
                    return number > 0
                for written in self._written():
                    self._broker.publish(written)
        raise NeverQuietError(
            f"after {event['subject'] or event['type']} the functions wrote {ROUNDS} times in a row"
        )

    def _subscribers(self) -> Mapping[str, Target | str]:
        subscribers: dict[str, Target | str] = {
            trigger.subscriber: self._function(trigger.subscriber) for trigger in _wiring().triggers
        }
        return subscribers | {
            trigger.delivery.dead_letter: self._bury
            for trigger in _wiring().triggers
            if trigger.delivery.dead_letter
        }

    def _function(self, service: str) -> Target:
        step = steps.step_named(service)
        cluster = Versioned(Direct.to(self.server, user_agent=step.manager))
        handler = Handler(
            step, cluster, Settings(deadline_seconds=60, sweep_jitter_seconds=0), lambda: self.now
        )

        def call(headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:  # noqa: ARG001
            answer = handler.handle(headers, body)
            return Answer(answer.status, answer.headers, answer.body)

        return call

    def _bury(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:  # noqa: ARG002
        self.dead_letters.append(CloudEvent.from_http(headers, body))
        return Answer(202)

    def _written(self) -> Iterator[CloudEvent]:
        """What changed since the last look, as the source would tell it, in order of versions."""
        before, self._known = self._known, self._seen()
        for key in sorted(before.keys() | self._known.keys(), key=self._version_of(before)):
            was, is_now = before.get(key), self._known.get(key)
            if was is None and is_now is not None:
                yield self._event(ChangeType.ADD, is_now)
            elif was is not None and is_now is None:
                yield self._event(ChangeType.DELETE, was)
            elif was is not None and is_now is not None and _version(was) != _version(is_now):
                yield self._event(ChangeType.UPDATE, is_now)

    def _version_of(self, before: Mapping[str, Object]) -> Any:
        return lambda key: _version(self._known.get(key) or before[key])

    def _seen(self) -> dict[str, Object]:
        """All objects that the sources watch, by UID."""
        return {
            found["metadata"]["uid"]: found
            for resource, selector in _watched()
            for found in self._client.list(resource, labels=selector)
        }

    def _event(self, verb: ChangeType, found: Object) -> CloudEvent:
        headers, body = to_event(verb, found, Mode.RESOURCE, self.server.url)
        uid, version = found["metadata"]["uid"], _version(found)
        return CloudEvent.from_http({**headers, "Ce-Id": f"{uid}-{version}-{verb}"}, body)


def _version(found: Object) -> int:
    return int(found["metadata"]["resourceVersion"])


def _servable(objects: Objects) -> Objects:
    """Without what Muster does not know; a dump may hold more than the embedded server serves."""
    return [one for one in objects if _is_known(one)]


def _is_known(found: Object) -> bool:
    try:
        by_kind(found["apiVersion"], found["kind"])
    except LookupError:
        return False
    return True


@cache
def _definitions() -> list[Object]:
    return resource_definitions()


@cache
def _wiring() -> Wiring:
    return Wiring.from_manifests(manifests.load()).without_timers()


@cache
def _watched() -> tuple[tuple[Resource, str], ...]:
    specs = map(SourceSpec.from_manifest, manifests.of_kind(manifests.load(), "ApiServerSource"))
    return tuple((kind.resource, kind.selector) for spec in specs for kind in spec.kinds)
