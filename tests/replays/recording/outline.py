"""The outline of a recording: a line for each change of an object before each moment, without random values.

Between two moments order does not count: controllers work at the same time, and the adapter keeps order
within one kind only. Nor does it count by how many updates the numbers in a status came to what they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from tests.replays.recording.fields import Leaf, changes, leaves, without_numbers
from tests.replays.recording.masks import Masks
from tests.replays.recording.take import Object, Take

Fields = dict[str, set[str]]
Section = dict[str, "Line"]
Outline = dict[str, Section]
"""Lines by text in sections: the kinds of the events in mode Resource, `references`, `moments`."""

_COUNTING = {"TrainJob", "JobSet", "Job"}
"""Kinds whose status counts pods or Jobs."""


@dataclass
class Line:
    """A line of the outline.

    Attributes:
        count: how often.
        fields: all values that each field had in what says so.
    """

    count: int = 0
    fields: Fields = field(default_factory=lambda: defaultdict(set))

    def add(self, values: Iterable[Leaf]) -> None:
        """Count one more event, with these values."""
        self.count += 1
        for path, value in values:
            self.fields[path].add(value)


@dataclass
class _Happening:
    """One event of mode Resource.

    Attributes:
        number: of the moment that it led to.
        moment: the name of that moment.
        uid: of its object.
        event: masked, without the numbers in a status.
        numbers: these.
    """

    number: int
    moment: str
    uid: str
    event: Object
    numbers: dict[str, str]


_OutlineLine = tuple[str, int, str, frozenset[Leaf]]
"""Kind, number of the moment, text of the line, and values."""


def outline(take: Take) -> Outline:
    """Return the outline of a recording."""
    masks = Masks(take)
    sections: Outline = defaultdict(lambda: defaultdict(Line))
    happenings = list(_happenings(take, masks))
    entries = [*_changed(happenings), *_counted(happenings)]
    for kind, _, text, values in sorted(entries, key=lambda line: line[:3]):
        sections[kind][text].add(values)
    references = sections["references"]
    for event in sorted(map(masks.document, take.reference), key=_reference):
        line = references[_reference(event)]
        line.add(leaves(event))
        line.count = 1  # both adapters see the same: the other mode says how often
    for moment in take.moments:
        for obj in map(masks.document, moment["items"]):
            text = f"{moment['moment']}: {obj['kind']} {obj['metadata']['name']}"
            sections["moments"][text].add(leaves(obj))
    return {name: dict(lines) for name, lines in sections.items()}


def verb(event: Object) -> str:
    """Return the change of an event's object: add, update or delete."""
    return str(event["type"].rpartition(".")[2])


def _reference(event: Object) -> str:
    return f"{event['kind']} {event['name']} {verb(event)}"


def _happenings(take: Take, masks: Masks) -> Iterator[_Happening]:
    """Yield all events in order of resourceVersion."""
    names = [moment["moment"] for moment in take.moments]
    ends = list(accumulate(map(_newest, take.moments[:-1]), max))
    for event in sorted(take.resource, key=_version):
        masked = masks.document(event)
        numbers: dict[str, str] = {}
        if event["kind"] in _COUNTING:
            status = masked["data"].get("status") or {}
            numbers = {path: value for path, value in leaves(status, "status") if value.isdigit()}
            masked["data"]["status"] = without_numbers(status)
        number = bisect_left(ends, _version(event))
        yield _Happening(number, names[number], event["data"]["metadata"]["uid"], masked, numbers)


def _changed(happenings: Iterable[_Happening]) -> Iterator[_OutlineLine]:
    """Yield a line for each event, with its values; for an update only the new ones."""
    latest: dict[str, _Happening] = {}
    for now in happenings:
        was = latest.get(now.uid, now)
        latest[now.uid] = now
        before, after = was.event["data"], now.event["data"]
        released = _released(before, after)
        changed = list(changes(before, after))
        values = frozenset(leaves(now.event))
        if verb(now.event) == "update":
            if not changed and (released or was.numbers != now.numbers):
                continue
            values -= frozenset(leaves({"data": before}))
        text = " ".join([now.event["name"], verb(now.event), *changed])
        yield now.event["kind"], now.number, f"{now.moment}: {text}", values


def _counted(happenings: Iterable[_Happening]) -> Iterator[_OutlineLine]:
    """Yield a line for each number in a status that changed between two moments."""
    last = {(happening.uid, happening.number): happening for happening in happenings}
    before: dict[str, dict[str, str]] = defaultdict(dict)
    for (uid, number), one in last.items():
        for path in one.numbers.keys() | before[uid].keys():
            if one.numbers.get(path) != before[uid].get(path):
                text = f"{one.moment}: {one.event['name']} counts {path}={one.numbers.get(path, 'nothing')}"
                yield one.event["kind"], number, text, frozenset()
        before[uid] = one.numbers


def _released(before: Object, after: Object) -> bool:
    """Return whether an owner reference was removed because the owner is gone; restore it in that case.

    The garbage collector either does that or deletes the object at once: if one owner is gone and another one
    soon will be, that is a question of milliseconds.
    """
    had, has = (obj["metadata"].get("ownerReferences") or [] for obj in (before, after))
    if len(has) >= len(had) or any(owner not in had for owner in has):
        return False
    after["metadata"]["ownerReferences"] = had
    return True


def _newest(moment: Object) -> int:
    """Return the highest resourceVersion of a moment."""
    return max(int(obj["metadata"].get("resourceVersion", 0)) for obj in moment["items"])


def _version(event: Object) -> int:
    return int(event["data"]["metadata"]["resourceVersion"])
