"""Whether an API server kept what it was sent."""

from __future__ import annotations


def holds(stored: object, sent: object) -> bool:
    """Whether all that was sent was kept; what the server adds does not matter."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return all(holds(stored.get(name), value) for name, value in sent.items())
    if isinstance(sent, list) and isinstance(stored, list):
        return len(sent) == len(stored) and all(map(holds, stored, sent))
    return stored == sent
