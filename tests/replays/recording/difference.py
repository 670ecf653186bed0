"""Two recordings of a story side by side: which events are new, gone or other than before."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

from tests.replays.recording.outline import Outline, Section, outline
from tests.replays.recording.take import Take

CONTEXT = 1
"""Lines shown around what differs."""


def difference(story: str, before: Take, after: Take) -> str:
    """What differs, section by section; empty where the same happened."""
    return "\n".join(_all(story, outline(before), outline(after)))


def _all(story: str, before: Outline, after: Outline) -> Iterator[str]:
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name, {}), after.get(name, {})
        yield from difflib.unified_diff(
            _lines(old), _lines(new), f"{story}: {name}, as it was", "now", lineterm="", n=CONTEXT
        )
        values = list(_values(old, new))
        if values:
            yield f"{story}: {name}, values in lines that are as they were"
            yield from values


def _lines(section: Section) -> list[str]:
    return [text if line.count == 1 else f"{text} ({line.count} times)" for text, line in section.items()]


def _values(before: Section, after: Section) -> Iterator[str]:
    """Fields with other values than before in the same lines, each told once."""
    found: Counter[str] = Counter()
    for text in before.keys() & after.keys():
        old, new = before[text].fields, after[text].fields
        for path in old.keys() | new.keys():
            if old.get(path) != new.get(path):
                found[f"{path}: {_told(old.get(path))} -> {_told(new.get(path))}"] += 1
    for change, count in sorted(found.items()):
        yield f"  {change}" + (f" (in {count} lines)" if count > 1 else "")


def _told(values: set[str] | None) -> str:
    return " | ".join(sorted(values)) if values else "nothing"
