"""The shape of answers."""

from __future__ import annotations

from typing import Any

from muster.cluster import errors


def mapping_of(path: str, answer: Any, field: str) -> dict[str, Any]:
    """Return a field of an object that is a mapping.

    Raises:
        Unavailable: the answer has no such field; a proxy may answer anything.
    """
    mapping = answer.get(field) if isinstance(answer, dict) else None
    if isinstance(mapping, dict):
        return mapping
    raise errors.Unavailable(f"{path}: the answer has no {field}")
