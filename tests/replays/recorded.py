"""Access to the recordings: events, moments and objects."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

from muster.replay.recorded_requests import RecordedRequest, read_events
from muster.replay.snapshots import Object, RecordedObjects, read_snapshots

FOLDER = Path(__file__).parent / "recordings"
STORIES = ("1-torch", "2-torchtune", "4-job-scaled", "5-does-not-fit")
"""The recordings that are replayed as a whole; 7 is used by golden cases about runtimes."""


@cache
def events(story: str, mode: str = "resource") -> tuple[RecordedRequest, ...]:
    """Return the events of a story, in order of arrival."""
    ending = ".gz" if mode == "resource" else ""
    return tuple(read_events(FOLDER / f"{story}.{mode}.jsonl{ending}"))


@cache
def moments(story: str) -> tuple[RecordedObjects, ...]:
    """Return the recorded moments of a story, each with all objects."""
    return tuple(read_snapshots([FOLDER / f"{story}.objects.yaml.gz"]))


def world_at(story: str, moment: str) -> RecordedObjects:
    """Return the moment of this name.

    Raises:
        LookupError: the story has no such moment.
    """
    for world in moments(story):
        if world.checkpoint == moment:
            return world
    raise LookupError(f"{story}: no moment {moment!r}")


@cache
def _about(story: str) -> dict[tuple[str, ...], list[RecordedRequest]]:
    by_subject: dict[tuple[str, ...], list[RecordedRequest]] = {}
    for capture in events(story):
        by_subject.setdefault(subject(envelope(capture)), []).append(capture)
    return by_subject


def subject(event: Object) -> tuple[str, ...]:
    """Return kind, namespace and name of an event's object."""
    return tuple(event[key] for key in ("kind", "namespace", "name"))


def events_about(event: Object) -> list[RecordedRequest]:
    """Return the recorded events about the same object, from all stories."""
    return [capture for story in STORIES for capture in _about(story).get(subject(event), [])]


def envelope(capture: RecordedRequest) -> Object:
    """Return a recorded event as JSON."""
    event: Object = json.loads(capture.body)
    return event


def event(story: str, kind_and_change: str, number: int = 1, mode: str = "resource") -> Object:
    """Return a recorded event by kind and change, such as `PodGroup update`, and its number from 1.

    Raises:
        LookupError: there are fewer such events.
    """
    kind, change = kind_and_change.split()
    matching = [
        envelope
        for envelope in _envelopes(story, mode)
        if envelope["kind"] == kind and envelope["type"].endswith(f".{change}")
    ]
    if not 1 <= number <= len(matching):
        raise LookupError(f"{story}: {len(matching)} times {kind_and_change}, there is no number {number}")
    return copy.deepcopy(matching[number - 1])


@cache
def _envelopes(story: str, mode: str) -> list[Object]:
    return [envelope(capture) for capture in events(story, mode)]


def slim(data: Any) -> Any:
    """Return JSON data without fields that no step reads: details of containers, volumes, addresses."""
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


_NOISE = frozenset(
    {
        "containerStatuses",
        "initContainerStatuses",
        "hostIP",
        "hostIPs",
        "podIP",
        "podIPs",
        "tolerations",
        "volumes",
        "managedFields",
    }
)
