"""Recordings in tests: the events of a cluster, and its objects at several moments."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from muster.data import RECORDINGS
from muster.replay.files import RecordedRequest, read_events
from muster.replay.replay import event_of
from muster.replay.snapshots import Object, Objects, RecordedObjects, choose, read_snapshots
from muster.simulator.broker import CloudEvent
from muster.testing.cases import Case, envelope, structured, sweep

__tracebackhide__ = True  # pytest shows the test and the message, not the check's source
SWEEP = "sweep"
"""The name of a sweep in place of a recorded event."""


@dataclass(frozen=True)
class Recording:
    """The events of a cluster in order of arrival, and its objects at several moments, if recorded."""

    name: str
    events: tuple[RecordedRequest, ...] = field(repr=False)
    moments: tuple[RecordedObjects, ...] = field(default=(), repr=False)

    @classmethod
    def read(cls, events: Path, objects: Path | None = None) -> Recording:
        """Return the recording in files that `muster record FILE --objects FILE` wrote.

        Raises:
            BadFileError: a file cannot be read, or has a value that is no event or object.
        """
        moments = () if objects is None else tuple(read_snapshots([objects]))
        return cls(events.name, tuple(read_events(events)), moments)

    def event(self, description: str, number: int = 1) -> RecordedRequest:
        """Return an event by the kind of its object and the change, `PodGroup update`, and its number from 1.

        Raises:
            LookupError: there are fewer such events; the message counts the events of each description.
        """
        matching = [request for request, event in self._parsed if describe(event) == description]
        if not 1 <= number <= len(matching):
            known = sorted({describe(event) for _, event in self._parsed})
            raise LookupError(
                f"{self.name}: {description!r} was recorded {len(matching)} times, so there is no number "
                f"{number}; recorded were {', '.join(known)}"
            )
        return matching[number - 1]

    def at(self, moment: str = "") -> Objects:
        """Return a copy of the objects at a moment; of the first moment without a name.

        Raises:
            LookupError: there is no such moment; the message lists their names.
        """
        if not self.moments:
            raise LookupError(f"{self.name}: no objects were recorded; read it with its file of objects")
        return copy.deepcopy(choose(self.moments, moment).objects)

    def about(self, request: RecordedRequest) -> tuple[RecordedRequest, ...]:
        """Return all events about the object of an event, that one included."""
        subject = event_of(request)["subject"]
        return tuple(other for other, event in self._parsed if event["subject"] == subject)

    def case(
        self, description: str, *, moment: str = "", number: int = 1, more: Iterable[Object] = ()
    ) -> Case:
        """Return the case of a step that handles an event or a `sweep` at a moment, with `more` objects.

        Raises:
            LookupError: there is no such event or moment.
        """
        objects = [*self.at(moment), *more]
        if description == SWEEP:
            return Case.of(sweep(), objects)
        request = self.event(description, number)
        return Case.of(request, objects, older=self.about(request))

    @cached_property
    def _parsed(self) -> list[tuple[RecordedRequest, CloudEvent]]:
        return [(request, event_of(request)) for request in self.events]


def describe(event: CloudEvent) -> str:
    """Kind and change of an event, `PodGroup update`; the type of an event that is about no object."""
    kind, change = event["kind"], event["type"].rpartition(".")[2]
    return f"{kind} {change}" if kind else event["type"]


@cache
def shipped(name: str, mode: str = "resource") -> Recording:
    """Return a recording that comes with Muster, made on a real control plane.

    Its name is `torch`, `torchtune`, `job-scaled`, `does-not-fit` or `runtime-annotated`; in mode `reference`
    events only name their objects. The README beside them (`muster.data.RECORDINGS`) tells their stories.

    Raises:
        LookupError: there is no such recording or mode; the message lists the names.
    """
    known = {path.name.partition(".")[0].partition("-")[2] for path in RECORDINGS.glob("*.jsonl*")}
    paths = sorted(RECORDINGS.glob(f"?-{name}.{mode}.jsonl*"))
    if name not in known or not paths:
        raise LookupError(f"no recording {name!r} of mode {mode!r}; known: {', '.join(sorted(known))}")
    (events,) = paths
    return Recording.read(events, RECORDINGS / f"{events.name.partition('.')[0]}.objects.yaml.gz")


def slim(data: Any) -> Any:
    """Return a copy of JSON data without fields that no step of Muster reads.

    These are details of containers, volumes, addresses and managedFields.
    """
    if isinstance(data, list):
        return [slim(entry) for entry in data]
    if not isinstance(data, dict):
        return data
    kept: Object = {}
    for name, value in data.items():
        if name in {"containers", "initContainers"}:
            kept[name] = [
                {key: container[key] for key in ("name", "image") if key in container} for container in value
            ]
        elif name not in _NOISE:
            kept[name] = slim(value)
    return kept


def slim_event(request: RecordedRequest) -> RecordedRequest:
    """Return a structured event with slim data."""
    return structured(slim(envelope(request)), request.location)


_NOISE = frozenset(
    {"containerStatuses", "initContainerStatuses", "tolerations", "volumes", "managedFields"}
    | {"hostIP", "hostIPs", "podIP", "podIPs"}
)
