"""Documents field by field: what is in one, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Leaf = tuple[str, str]
"""A field that holds a value: `data.spec.containers[main].image`, and the value."""

_SILENT = {"generation", "message", "observedGeneration"}
"""Fields whose changes follow from others."""


def leaves(found: Any, path: str = "") -> Iterator[Leaf]:
    """Every field of a document that holds a value."""
    if isinstance(found, list):
        found = _keyed(found)
    if not isinstance(found, dict) or not found:
        yield path, repr(found)
        return
    for name, value in found.items():
        yield from leaves(value, _path(path, name))


def changes(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """What became of an object, in few words: `spec.nodeName=<node>`, `-spec.schedulingGates`."""
    if before == after:
        return
    if isinstance(before, list) and isinstance(after, list):
        before, after = _keyed(before), _keyed(after)
    if before is None:
        yield f"+{path}"
    elif after is None:
        yield f"-{path}"
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            if name not in _SILENT:
                yield from changes(before.get(name), after.get(name), _path(path, name))
    else:
        yield f"{path}={after}"


def without_numbers(found: Any) -> Any:
    """A document without the fields that hold a number."""
    if isinstance(found, list):
        return [without_numbers(value) for value in found]
    if not isinstance(found, dict):
        return found
    return {name: without_numbers(value) for name, value in found.items() if type(value) is not int}


def _keyed(found: list[Any]) -> dict[str, Any]:
    """A list by what tells its entries apart, so that one more does not shift the others."""
    for key in ("type", "name"):
        named = {f"[{one[key]}]": one for one in found if isinstance(one, dict) and key in one}
        if len(named) == len(found):
            return named
    return {f"[{number}]": one for number, one in enumerate(found)}


def _path(path: str, name: str) -> str:
    return f"{path}{name}" if name.startswith("[") or not path else f"{path}.{name}"
