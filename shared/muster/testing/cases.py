"""Cases: one event, and the objects of the cluster when a step handles it; and what a step plans for them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from muster.cluster.observe.snapshot import Snapshot
from muster.events.parse import STRUCTURED
from muster.events.replies import reply_event
from muster.policy.model import Action, Decision, NoOp, Reply
from muster.replay.files import BadFileError, RecordedRequest, read_events, time_of
from muster.replay.plans import as_yaml, decisions, to_document
from muster.replay.replay import event_of
from muster.replay.snapshots import Object, Objects, read_snapshots
from muster.runtime.step import Step
from muster.simulator.source import ChangeType, Mode, to_event

EVENT_FILE, OBJECTS_FILE = "event.json", "cluster.yaml"
_TIME = "2026-11-21T08:30:00Z"


@dataclass(frozen=True)
class Case:
    """One event, and all objects of the cluster when a step handles it.

    `now` is the time of the plan; `older` are recorded events about the same object, for the law that older
    events change nothing.
    """

    event: RecordedRequest
    objects: Objects = field(repr=False)
    now: datetime
    older: tuple[RecordedRequest, ...] = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        event: RecordedRequest,
        objects: Iterable[Object],
        now: datetime | None = None,
        older: tuple[RecordedRequest, ...] = (),
    ) -> Case:
        """Return the case of an event; without `now` at the time of the event, or 1970 if it has none."""
        return cls(event, list(objects), now or time_of(event), older)

    @classmethod
    def read(cls, folder: Path) -> Case:
        """Return the case in a folder with the files event.json and cluster.yaml.

        Raises:
            BadFileError: a file cannot be read, or event.json has not exactly one event.
        """
        requests = read_events(folder / EVENT_FILE)
        if len(requests) != 1:
            raise BadFileError(str(folder / EVENT_FILE), f"has {len(requests)} events; a case has one")
        return cls.of(requests[0], read_snapshots([folder / OBJECTS_FILE])[0].objects)

    def copied_objects(self) -> Objects:
        """Return a copy of the objects."""
        return copy.deepcopy(self.objects)

    def cluster(self) -> Snapshot:
        """Return a read-only cluster with a copy of the objects."""
        return Snapshot(self.copied_objects())


def change(obj: Object, change: str = "update", *, time: str = _TIME) -> RecordedRequest:
    """Return the event of an ApiServerSource about an object that changed by `add`, `update` or `delete`.

    Of a deleted object it is the last state.
    """
    headers, body = to_event(ChangeType(change), obj, Mode.RESOURCE, "/muster/testing")
    attributes = {name[3:].lower(): value for name, value in headers.items() if name.startswith("Ce-")}
    metadata = obj["metadata"]
    event_id = "-".join(
        (metadata.get("uid") or metadata["name"], metadata.get("resourceVersion", "0"), change)
    )
    return structured({**attributes, "id": event_id, "time": time, "data": json.loads(body)})


def reply(step: str, reply: Reply, *, time: str = _TIME) -> RecordedRequest:
    """Return the reply event of a step, as the steps get it that subscribe to `dev.muster.<step>.<suffix>`.

    The reply is that of a plan, `plan_of(step, case).decision.reply`, or one of your own.
    """
    message = reply_event(reply, step, "event-1", datetime.fromisoformat(time))
    return RecordedRequest(message.headers, message.body, "event")


def sweep(time: str = _TIME) -> RecordedRequest:
    """Return the event that makes a step examine all objects that it is responsible for."""
    return structured(
        {"id": "sweep-1", "source": "/muster/testing", "type": "dev.muster.sweep", "time": time}
    )


def structured(event: Mapping[str, Any], location: str = "event") -> RecordedRequest:
    """Return a CloudEvent in JSON format as a function receives it; `specversion` may be left out."""
    body = json.dumps({"specversion": "1.0", **event}).encode()
    return RecordedRequest({"content-type": STRUCTURED}, body, location)


def envelope(request: RecordedRequest) -> Object:
    """Return an event as a JSON object with its attributes and data, whichever mode it was sent in."""
    return event_of(request).structured()


@dataclass(frozen=True)
class Planned:
    """The decisions of a step: one for an event, one for each object of a sweep."""

    step: Step
    decisions: tuple[Decision, ...]

    @property
    def decision(self) -> Decision:
        """The only decision.

        Raises:
            ValueError: it was a sweep that found another number of objects.
        """
        if len(self.decisions) != 1:
            raise ValueError(f"{self.step.name} made {len(self.decisions)} decisions; look at `decisions`")
        return self.decisions[0]

    @property
    def reason(self) -> str:
        """The reason of the only decision."""
        return str(self.decision.reason)

    @property
    def message(self) -> str:
        """The message of the only decision."""
        return self.decision.message

    @property
    def actions(self) -> tuple[Action, ...]:
        """The writes of all decisions."""
        plans = [decision for decision in self.decisions if not isinstance(decision, NoOp)]
        return tuple(action for plan in plans for action in plan.actions)

    def as_yaml(self) -> str:
        """Return the decisions as `muster plan` prints them; equal decisions give equal text."""
        return as_yaml(to_document(self.step, decision) for decision in self.decisions)


def plan_of(step: Step, case: Case) -> Planned:
    """Return the plans of a step for a case, without a server and without writes.

    Raises:
        UnreadableEvent: the event is no CloudEvent, or one of ApiServerSource without its object.
        pydantic.ValidationError: a field of an object has a type that no API server would have stored.
    """
    return Planned(step, tuple(decisions(step, case.event, case.cluster(), case.now)))
