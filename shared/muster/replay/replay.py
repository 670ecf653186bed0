"""Replay recorded events through the functions, against the embedded API server, with reproducible results.

There is one thread, no controller and no timer. The cluster starts as the objects from files, and only the
functions change it. Their writes become events, as ApiServerSource would send them, until no more are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Self

from muster.cluster.versioned import Versioned
from muster.objects.resources import POD_GROUPS, Resource, is_known
from muster.policy.group_labels import is_musters
from muster.replay.activity import Activity, ActivityHandler
from muster.replay.files import BadFileError, RecordedRequest
from muster.replay.snapshots import Object, Objects
from muster.runtime import steps
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.broker import TTL, Answer, Broker, CloudEvent, NotAnEventError, Target, Wiring
from muster.simulator.direct import Direct
from muster.simulator.overlays import CLUSTER, load_beside_muster, of_kind, step_files
from muster.simulator.source import ChangeType, Mode, SourceSpec, to_event
from muster.simulator.typed import first_type_fault

MAX_ROUNDS = 50
"""How often writes may follow writes before a replay fails with NeverQuietError."""

GROUP_KINDS = ("Workload", "PodGroup", "CompositePodGroup")


class NeverQuietError(Exception):
    """The functions kept writing: the event of each write caused another write."""


@cache
def _wiring_of(overlay: Path) -> Wiring:
    """Return the triggers of an overlay, without its PingSources."""
    return Wiring.from_manifests(load_beside_muster(overlay))


@cache
def _watched_kinds(overlay: Path) -> tuple[tuple[Resource, str], ...]:
    """Return the resources that the ApiServerSources of an overlay watch, each with its label selector."""
    specs = map(SourceSpec.from_manifest, of_kind(load_beside_muster(overlay), "ApiServerSource"))
    return tuple((kind.resource, kind.selector) for spec in specs for kind in spec.kinds)


def _release_of(overlay: Path) -> str:
    """Return the Kubernetes release that an overlay is for: 1.36 alone serves scheduling.k8s.io/v1alpha2."""
    versions = {kind.version for kind, _ in _watched_kinds(overlay) if kind.group == POD_GROUPS.group}
    return "1.36" if "v1alpha2" in versions else "1.37"


@dataclass(frozen=True)
class ReplayResult:
    """All objects after a replay, what the functions did in order, and the events that no retry delivered."""

    objects: Objects
    activities: tuple[Activity, ...]
    dead_letters: tuple[CloudEvent, ...]


def replay(
    requests: Iterable[RecordedRequest],
    objects: Objects,
    now: datetime,
    *,
    sweep: bool = False,
    overlay: Path = CLUSTER,
) -> ReplayResult:
    """Deliver events, and a sweep if wanted, to the functions of an overlay until no function writes.

    The cluster starts with the objects; `now` is the time in conditions and Events. An overlay without a
    Broker is replayed beside Muster's own.

    Raises:
        BadFileError: a request in a file is no CloudEvent, or a field of an object has the wrong type.
        NeverQuietError: the functions never stopped writing.
    """
    # The embedded API server stores objects as they are, also groups whose owners have no uid or name.
    if found := first_type_fault(objects):
        raise BadFileError(*found)
    with ReplayStack(objects, now, overlay=overlay) as stack:
        for request in requests:
            stack.deliver(event_of(request))
        if sweep:
            stack.deliver(SWEEP)
        return ReplayResult(stack.server.snapshot(), tuple(stack.activities), tuple(stack.dead_letters))


SWEEP = CloudEvent(
    {"specversion": "1.0", "id": "sweep", "source": "/muster/replay", "type": "dev.muster.sweep"}
)


def event_of(request: RecordedRequest) -> CloudEvent:
    """Return a recorded event as a broker parses it, without the TTL of the one that it came from.

    Raises:
        BadFileError: the broker would refuse it.
    """
    try:
        event = CloudEvent.from_http(request.headers, request.body)
    except NotAnEventError as error:
        raise BadFileError(request.location, str(error)) from None
    return event.without(TTL)


def is_musters_group(body: Object) -> bool:
    """Whether an object is a group or Workload of Muster."""
    return body["kind"] in GROUP_KINDS and is_musters(body["metadata"].get("labels") or {})


class ReplayStack:
    """The embedded API server, the broker and the functions; `now` is the only time that they see."""

    def __init__(self, objects: Objects, now: datetime, overlay: Path = CLUSTER) -> None:
        self._objects = objects
        self._now = now
        self._overlay = overlay
        self._watched: dict[str, Object] = {}
        self.activities: list[Activity] = []
        self.dead_letters: list[CloudEvent] = []
        self.server = ApiServer(release=_release_of(overlay))

    def __enter__(self) -> Self:
        self.server.start()
        self.server.load(resource_definitions())
        self.server.load(filter(_is_replayed, self._objects))
        self._client = Direct.to(self.server, user_agent="muster-replay")
        self._broker = Broker(_wiring_of(self._overlay), self._subscribers(), workers=0, clock=lambda: "")
        self._watched = self._list_watched()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def deliver(self, event: CloudEvent) -> bool:
        """Deliver an event, then the events of the functions' writes until there are none; whether any wrote.

        Raises:
            NeverQuietError: the functions never stopped writing.
        """
        with ActivityHandler(self.activities.append):
            self._broker.publish(event)
            for number in range(MAX_ROUNDS):
                before = len(self.activities)
                self._broker.pump()
                # A function wrote, or the broker will deliver the event again.
                came = self.activities[before:]
                if not any(each.actions > 0 or each.outcome == "requeue" for each in came):
                    return number > 0
                for change in self._changes():
                    self._broker.publish(change)
        raise NeverQuietError(
            f"after {event['subject'] or event['type']} the functions wrote {MAX_ROUNDS} times in a row"
        )

    def _subscribers(self) -> Mapping[str, Target | str]:
        files = step_files(self._overlay)
        subscribers: dict[str, Target | str] = {}
        for trigger in _wiring_of(self._overlay).triggers:
            file = steps.step_file(trigger.subscriber.rpartition("/")[2], files)
            subscribers[trigger.subscriber] = self._function(file)
            if trigger.delivery.dead_letter:
                subscribers[trigger.delivery.dead_letter] = self._store_dead_letter
        return subscribers

    def _function(self, file: Path) -> Target:
        step = steps.load_step(file)
        cluster = Versioned(Direct.to(self.server, user_agent=step.manager))
        handler = Handler(step, cluster, Settings(deadline_seconds=60), lambda: self._now)

        def call(headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:  # noqa: ARG001
            answer = handler.handle(headers, body)
            return Answer(answer.status, answer.headers, answer.body)

        return call

    def _store_dead_letter(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:  # noqa: ARG002
        self.dead_letters.append(CloudEvent.from_http(headers, body))
        return Answer(202)

    def _changes(self) -> Iterator[CloudEvent]:
        """Yield the events of all changes since the last call, in order of resourceVersion."""
        before, self._watched = self._watched, self._list_watched()
        changed = {**before, **self._watched}
        for uid in sorted(changed, key=lambda uid: _version(changed[uid])):
            if uid not in before:
                yield self._event(ChangeType.ADD, changed[uid])
            elif uid not in self._watched:
                yield self._event(ChangeType.DELETE, changed[uid])
            elif _version(before[uid]) != _version(changed[uid]):
                yield self._event(ChangeType.UPDATE, changed[uid])

    def _list_watched(self) -> dict[str, Object]:
        """Return all objects that the sources watch, by UID."""
        return {
            body["metadata"]["uid"]: body
            for resource, selector in _watched_kinds(self._overlay)
            for body in self._client.list(resource, labels=selector)
        }

    def _event(self, verb: ChangeType, changed: Object) -> CloudEvent:
        headers, body = to_event(verb, changed, Mode.RESOURCE, self.server.url)
        uid, version = changed["metadata"]["uid"], _version(changed)
        return CloudEvent.from_http({**headers, "Ce-Id": f"{uid}-{version}-{verb}"}, body)


def _version(body: Object) -> int:
    return int(body["metadata"]["resourceVersion"])


def _is_replayed(body: Object) -> bool:
    """Whether a kind is served here; admission policies are not, as they may take minutes for each write."""
    group = body["apiVersion"].partition("/")[0]
    return is_known(body["apiVersion"], body["kind"]) and group != "admissionregistration.k8s.io"
