"""The recordings as Python sees them."""

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
"""Those that the steps of today replay; 7 is about runtimes."""


@cache
def events(story: str, mode: str = "resource") -> tuple[RecordedRequest, ...]:
    """All events of a story, in order of arrival."""
    ending = ".gz" if mode == "resource" else ""
    return tuple(read_events(FOLDER / f"{story}.{mode}.jsonl{ending}"))


@cache
def moments(story: str) -> tuple[RecordedObjects, ...]:
    """All moments of a story."""
    return tuple(read_snapshots([FOLDER / f"{story}.objects.yaml.gz"]))


def world_at(story: str, moment: str) -> RecordedObjects:
    """One moment of a story.

    Raises:
        LookupError: there is none of that name.
    """
    for world in moments(story):
        if world.checkpoint == moment:
            return world
    raise LookupError(f"{story}: no moment {moment!r}")


@cache
def _about(story: str) -> dict[tuple[str, ...], list[RecordedRequest]]:
    found: dict[tuple[str, ...], list[RecordedRequest]] = {}
    for capture in events(story):
        found.setdefault(subject(envelope(capture)), []).append(capture)
    return found


def subject(event: Object) -> tuple[str, ...]:
    """What an event is about: kind, namespace and name."""
    return tuple(event[key] for key in ("kind", "namespace", "name"))


def events_about(event: Object) -> list[RecordedRequest]:
    """All recorded events about the same object, of whatever story."""
    return [capture for story in STORIES for capture in _about(story).get(subject(event), [])]


def envelope(capture: RecordedRequest) -> Object:
    """A recorded event as JSON."""
    event: Object = json.loads(capture.body)
    return event


def event(story: str, what: str, number: int = 1, mode: str = "resource") -> Object:
    """One recorded event, by kind and what happened, `PodGroup update`; the first such one is number 1.

    Raises:
        LookupError: there are not as many.
    """
    kind, happened = what.split()
    found = [
        one for one in _envelopes(story, mode) if one["kind"] == kind and one["type"].endswith(f".{happened}")
    ]
    if not 1 <= number <= len(found):
        raise LookupError(f"{story}: {len(found)} times {what}, there is no number {number}")
    return copy.deepcopy(found[number - 1])


@cache
def _envelopes(story: str, mode: str) -> list[Object]:
    return [envelope(capture) for capture in events(story, mode)]


def slim(found: Any) -> Any:
    """An object without what no step reads: containers' details, volumes, addresses."""
    if isinstance(found, list):
        return [slim(entry) for entry in found]
    if not isinstance(found, dict):
        return found
    kept: Object = {}
    for name, value in found.items():
        if name in {"containers", "initContainers"}:
            kept[name] = [{key: one[key] for key in ("name", "image") if key in one} for one in value]
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
