"""Choose the moment of a recording that has the objects which the events are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.events.model import Happened, ResourceEvent
from muster.events.parse import UnreadableEvent, parse
from muster.policy.owners import kind_of
from muster.replay.recorded_requests import EVENT_LIMITS, RecordedRequest
from muster.replay.snapshots import Object, RecordedObjects, shortened

Named = tuple[str, str, str]
"""Kind, namespace and name of an object."""

SHOWN = 3
"""So many missing objects are named; the others are counted."""


def objects_of_events(requests: Iterable[RecordedRequest], *, owners_only: bool = True) -> Counter[Named]:
    """Return the objects that events are about with the number of their events, without deleted ones.

    Args:
        requests: the events.
        owners_only: whether only TrainJobs, JobSets and Jobs count: the functions may make the others.
    """
    counts: Counter[Named] = Counter()
    deleted: set[Named] = set()
    for request in requests:
        try:
            event = parse(request.headers, request.body, EVENT_LIMITS)
        except UnreadableEvent:
            continue
        if not isinstance(event, ResourceEvent) or (owners_only and kind_of(event.ref) is None):
            continue
        named = (event.ref.kind, event.ref.namespace, event.ref.name)
        counts[named] += 1
        if event.happened is Happened.DELETE:
            deleted.add(named)
    return Counter({named: count for named, count in counts.items() if named not in deleted})


def first_with(objects: Iterable[Named], snapshots: Sequence[RecordedObjects]) -> RecordedObjects:
    """Return the first snapshot with the most of the objects and, of these, with a pod.

    It is the earliest at which the functions can act on the events: later ones have their groups already.
    """
    wanted = set(objects)
    shared = snapshots[0].shared
    in_all, pod_in_all = wanted & _names(shared), _has_pod(shared)
    others = wanted - in_all
    ranked = [
        (len(others & _names(snapshot.own)), pod_in_all or _has_pod(snapshot.own), snapshot)
        for snapshot in snapshots
    ]
    most = max(count for count, _, _ in ranked)
    candidates = [(has_pod, snapshot) for count, has_pod, snapshot in ranked if count == most]
    return next((snapshot for has_pod, snapshot in candidates if has_pod), candidates[0][1])


def missing_objects(
    objects: Mapping[Named, int], chosen: RecordedObjects, snapshots: Sequence[RecordedObjects]
) -> Iterator[str]:
    """Yield a line for each object that a snapshot lacks, with the first moment that has it."""
    present = _names(chosen.objects)
    lacking = [named for named in objects if named not in present]
    place = f"moment {shortened(chosen.checkpoint)!r}" if chosen.checkpoint else "--objects"
    for named in lacking[:SHOWN]:
        kind, namespace, name = named
        count = objects[named]
        about = f"{count} event names" if count == 1 else f"{count} events name"
        elsewhere = [snapshot.checkpoint for snapshot in snapshots if named in _names(snapshot.own)]
        advice = f"; --moment {_quoted(shortened(elsewhere[0]))} has it" if elsewhere and elsewhere[0] else ""
        yield f"{place} lacks {kind} {namespace}/{name}, which {about}{advice}"
    if len(lacking) > SHOWN:
        yield f"{place} lacks {len(lacking) - SHOWN} more objects that events name"


def _quoted(checkpoint: str) -> str:
    return f"{checkpoint!r}" if " " in checkpoint else checkpoint


def _names(objects: Iterable[Object]) -> set[Named]:
    return {
        (body["kind"], body["metadata"].get("namespace") or "", body["metadata"]["name"]) for body in objects
    }


def _has_pod(objects: Iterable[Object]) -> bool:
    return any(body["kind"] == "Pod" for body in objects)
