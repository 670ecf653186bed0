"""The seconds that events of each namespace used lately."""

from __future__ import annotations

import heapq

MOST_NAMESPACES = 1000
"""The namespaces whose use is kept: forged events may name any number."""


class RecentUse:
    """The seconds that events of each namespace used lately.

    Args:
        half_life: the seconds in which they halve.
    """

    def __init__(self, half_life: float) -> None:
        self._half_life = half_life
        self._counted: dict[str, tuple[float, float]] = {}
        """By namespace, the seconds, and the time for which they were computed."""

    def __len__(self) -> int:
        return len(self._counted)

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._counted

    def of(self, namespace: str, now: float) -> float:
        """Return the seconds of a namespace."""
        used, then = self._counted.get(namespace, (0.0, now))
        return float(used * 0.5 ** ((now - then) / self._half_life))

    def add(self, namespace: str, seconds: float, now: float) -> None:
        """Add seconds to those of a namespace; of too many, forget the namespaces with the fewest."""
        self._counted[namespace] = (self.of(namespace, now) + seconds, now)
        if len(self) > 2 * MOST_NAMESPACES:
            most_used = heapq.nlargest(MOST_NAMESPACES, self._counted, key=lambda name: self.of(name, now))
            self._counted = {name: self._counted[name] for name in most_used}
