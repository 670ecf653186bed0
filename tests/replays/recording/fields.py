"""The fields of JSON documents, and the changes between two documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Leaf = tuple[str, str]
"""Path and value of a field: `data.spec.containers[main].image`."""

_SILENT = {"generation", "message", "observedGeneration"}
"""Fields that are ignored because their changes follow from others."""


def leaves(document: Any, path: str = "") -> Iterator[Leaf]:
    """Yield every leaf of a document."""
    if isinstance(document, list):
        document = _keyed(document)
    if not isinstance(document, dict) or not document:
        yield path, repr(document)
        return
    for name, value in document.items():
        yield from leaves(value, _path(path, name))


def changes(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the changes of an object, in short: `spec.nodeName=<node>`, `-spec.schedulingGates`."""
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


def without_numbers(document: Any) -> Any:
    """Return a document without fields whose values are numbers."""
    if isinstance(document, list):
        return [without_numbers(value) for value in document]
    if not isinstance(document, dict):
        return document
    return {name: without_numbers(value) for name, value in document.items() if type(value) is not int}


def _keyed(items: list[Any]) -> dict[str, Any]:
    """Return a list as a dict by type or name, so that an added item does not shift the others."""
    for key in ("type", "name"):
        named = {f"[{item[key]}]": item for item in items if isinstance(item, dict) and key in item}
        if len(named) == len(items):
            return named
    return {f"[{number}]": one for number, one in enumerate(items)}


def _path(path: str, name: str) -> str:
    return f"{path}{name}" if name.startswith("[") or not path else f"{path}.{name}"
