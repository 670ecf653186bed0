"""Reading and writing single fields of parsed JSON, and their owners by managedFields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

Part = str | tuple[int, str]
"""A key, or an entry of a list that is a map by `name`: its index and that name."""

Path = tuple[Part, ...]

MANAGER_ENTRIES = 8
"""The entries of one field manager that are read: it has one for each operation, version and subresource."""


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


def owned_by(body: Mapping[str, Any], manager: str, fields: Iterable[FieldPath]) -> frozenset[FieldPath]:
    """Return those of the fields that a field manager owns, by `metadata.managedFields`.

    The API server removes a field from the entry of a manager when another manager writes it. It stores any
    entry that a client writes, so only the given fields are looked up, in the first MANAGER_ENTRIES.
    """
    entries = (body.get("metadata") or {}).get("managedFields") or []
    of_manager = (entry.get("fieldsV1") or {} for entry in entries if entry.get("manager") == manager)
    owned = tuple(islice(of_manager, MANAGER_ENTRIES))
    keys = {field: [_key_of(part) for part in field.path] for field in fields} if owned else {}
    return frozenset(field for field in keys if any(_has(fields_v1, keys[field]) for fields_v1 in owned))


def _has(fields_v1: Any, keys: Iterable[str]) -> bool:
    """Whether a field set has a field, by the keys that lead to it."""
    at = fields_v1
    for key in keys:
        if type(at) is not dict or key not in at:
            return False
        at = at[key]
    return True


@lru_cache(maxsize=4096)
def _key_of(part: Part) -> str:
    """Return the key in a field set (FieldsV1): `f:labels`, or of a list entry `k:{"name":"node"}`."""
    if isinstance(part, str):
        return f"f:{part}"
    return "k:" + json.dumps({"name": part[1]}, separators=(",", ":"), ensure_ascii=False)
