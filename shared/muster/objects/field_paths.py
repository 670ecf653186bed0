"""Reading and writing single fields of parsed JSON, and their owners by managedFields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

Part = str | tuple[int, str]
"""A key, or an entry of a list that is a map by `name`: its index and that name."""

Path = tuple[Part, ...]


@dataclass(frozen=True)
class FieldPath:
    """One field that holds a string."""

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
        holder: Any = body
        at: Any = body
        key: Any = ""
        for part in above:
            holder, key = at, part[0] if isinstance(part, tuple) else part
            known = at[key] if isinstance(part, tuple) else at.get(key)
            at = holder[key] = {} if known is None else copy(known)
        if value is not None:
            at[last] = value
            return
        at.pop(last, None)
        if not at and isinstance(above[-1], str):
            del holder[key]


def owned_by(body: Mapping[str, Any], manager: str, fields: Iterable[FieldPath]) -> frozenset[FieldPath]:
    """Return those of the fields that a field manager owns, by `metadata.managedFields`.

    The API server removes a field from the entry of a manager when another manager writes it.
    """
    entries = (body.get("metadata") or {}).get("managedFields") or []
    owned = [entry.get("fieldsV1") or {} for entry in entries if entry.get("manager") == manager]
    return frozenset(field for field in fields if any(_has(fields_v1, field.path) for fields_v1 in owned))


def _has(fields_v1: Any, path: Path) -> bool:
    at = fields_v1
    for part in path:
        key = (
            f"f:{part}"
            if isinstance(part, str)
            else "k:" + json.dumps({"name": part[1]}, separators=(",", ":"))
        )
        if not isinstance(at, dict) or key not in at:
            return False
        at = at[key]
    return True
