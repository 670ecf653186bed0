"""The objects whose events took usual CPU, by namespace."""

from __future__ import annotations

from muster.runtime.sharing.recent_use import MOST_NAMESPACES

MOST_OBJECTS = 1000
"""The objects of a namespace that are kept: forged events may name any number."""


class UsualObjects:
    """The objects whose last event took usual CPU.

    If an event of one takes more, all of its namespace are forgotten: a tenant may have made them larger.
    """

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}

    def __contains__(self, known: tuple[str, str]) -> bool:
        namespace, name = known
        return name in self._names.get(namespace, ())

    def ended(self, namespace: str, name: str, *, usual: bool) -> None:
        """Note that an event about an object ended; of too many, forget others."""
        names = self._names.get(namespace, set())
        if not usual:
            if name in names:
                del self._names[namespace]
            return
        if name not in names and len(names) >= MOST_OBJECTS:
            names.pop()
        names.add(name)
        self._names[namespace] = names
        if len(self._names) > MOST_NAMESPACES:
            del self._names[next(iter(self._names))]
