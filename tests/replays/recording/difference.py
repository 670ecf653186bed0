"""Compares two recordings of a story: which events are new, missing or changed."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator

from tests.replays.recording.outline import Outline, Section, outline
from tests.replays.recording.take import Take

CONTEXT = 1
"""Lines of context around a difference."""


def difference(story: str, before: Take, after: Take) -> str:
    """Return the differences by section; empty if there are none."""
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
    """Yield each field whose values differ in lines that are equal otherwise."""
    changes: Counter[str] = Counter()
    for text in before.keys() & after.keys():
        old, new = before[text].fields, after[text].fields
        for path in old.keys() | new.keys():
            if old.get(path) != new.get(path):
                changes[f"{path}: {_as_text(old.get(path))} -> {_as_text(new.get(path))}"] += 1
    for change, count in sorted(changes.items()):
        yield f"  {change}" + (f" (in {count} lines)" if count > 1 else "")


def _as_text(values: set[str] | None) -> str:
    return " | ".join(sorted(values)) if values else "nothing"
