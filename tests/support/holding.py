"""Comparison of a stored object with the request that created it."""

from __future__ import annotations


def holds(stored: object, sent: object) -> bool:
    """Return whether every field that was sent is stored unchanged; added fields are ignored."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return all(holds(stored.get(name), value) for name, value in sent.items())
    if isinstance(sent, list) and isinstance(stored, list):
        return len(sent) == len(stored) and all(map(holds, stored, sent))
    return stored == sent
