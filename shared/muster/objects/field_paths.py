"""Reading and writing single fields of parsed JSON, and their owners by managedFields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

Part = str | tuple[int, str]
"""A key, or an entry of a list that is a map by `name`: its index and that name."""

Path = tuple[Part, ...]


@dataclass(frozen=True)
class FieldPath:
    """One field that holds a string.

    Attributes:
        path: from the root of the object.
    """

    path: Path

    def __str__(self) -> str:
        """The list entry, if any, and the key: `node: muster.dev/group`."""
        entry = "".join(f"{part[1]}: " for part in self.path if isinstance(part, tuple))
        return f"{entry}{self.path[-1]}"

    def value_in(self, body: Mapping[str, Any]) -> str | None:
        """Return the value of the field; None if it is absent."""
        at: Any = body
        for part in self.path:
            at = at[part[0]] if isinstance(part, tuple) else (at or {}).get(part)
        return at if at is None else str(at)

    def write(self, body: dict[str, Any], value: str | None) -> None:
        """Set the field and the structs above it; None removes it, and a map that becomes empty.

        The structs above it are replaced by copies, so that others who hold them do not see the change.
        """
        *above, last = self.path
        holders: list[tuple[dict[str, Any], str]] = []
        at: Any = body
        for part in above:
            if isinstance(part, tuple):
                at[part[0]] = copy(at[part[0]])
                at, holders = at[part[0]], []
                continue
            at[part] = {} if at.get(part) is None else copy(at[part])
            holders.append((at, part))
            at = at[part]
        if value is not None:
            at[last] = value
            return
        at.pop(last, None)
        if holders and not at:
            holder, key = holders[-1]
            del holder[key]


def owned_by(body: Mapping[str, Any], manager: str) -> frozenset[FieldPath]:
    """Return the fields that a field manager owns, by `metadata.managedFields`.

    The API server removes a field from the entry of a manager when another manager writes it.
    """
    entries = (body.get("metadata") or {}).get("managedFields") or []
    entries_of_manager = [entry.get("fieldsV1") or {} for entry in entries if entry.get("manager") == manager]
    return frozenset(FieldPath(path) for fields in entries_of_manager for path in _paths(fields, body, ()))


def _paths(fields: Mapping[str, Any], at: Any, above: Path) -> Iterator[Path]:
    """Yield the leaves of a field set (FieldsV1: `f:` a key, `k:` an entry of a list, by its key)."""
    entries = _by_name(at) if isinstance(at, list) else {}
    for key, below in fields.items():
        kind, _, name = key.partition(":")
        if kind == "f":
            value = at.get(name) if isinstance(at, Mapping) else None
            inner = [name for name in below if name != "."] if isinstance(below, Mapping) else []
            if inner:
                yield from _paths(below, value, (*above, name))
            else:
                yield (*above, name)
        elif kind == "k" and isinstance(below, Mapping):
            wanted = _name_in(name)
            for index, entry in [] if wanted is None else entries.get(wanted, []):
                yield from _paths(below, entry, (*above, (index, str(wanted))))


def _by_name(entries: list[Any]) -> dict[str, list[tuple[int, Mapping[str, Any]]]]:
    """Return the entries of a list with their indexes, by name, so that a large list is searched once."""
    by_name: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            by_name.setdefault(entry["name"], []).append((index, entry))
    return by_name


def _name_in(key: str) -> str | None:
    """Return the name in the key of a list entry, `{"name":"node"}`; None if the key has none."""
    try:
        fields = json.loads(key)
    except ValueError:
        return None
    name = fields.get("name") if isinstance(fields, dict) else None
    return name if isinstance(name, str) else None
