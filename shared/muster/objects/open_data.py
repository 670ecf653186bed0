"""Builds data from the events of a YAML parser."""

from __future__ import annotations

from typing import Any


class OpenData:
    """Data that are built from the events of a parser, one document after another, without recursion.

    Attributes:
        documents: the data of the documents so far.
    """

    def __init__(self) -> None:
        self.documents: list[Any] = []
        self._open: list[Any] = [self.documents]
        self._keys: list[str | None] = [None]
        """For each open mapping the key whose value comes next, else None."""

    @property
    def depth(self) -> int:
        """The number of mappings and lists that are open."""
        return len(self._open) - 1

    @property
    def innermost(self) -> Any:
        """The mapping or list that was opened last, or the list of documents."""
        return self._open[-1]

    @property
    def key_is_next(self) -> bool:
        """Whether a key of a mapping comes next."""
        return isinstance(self._open[-1], dict) and self._keys[-1] is None

    def key(self, key: str) -> None:
        """Take the key of the value that comes next."""
        self._keys[-1] = key

    def put(self, value: Any) -> None:
        """Take a value."""
        container, key = self._open[-1], self._keys[-1]
        if isinstance(container, dict):
            container[key] = value
            self._keys[-1] = None
        else:
            container.append(value)

    def start(self, container: dict[str, Any] | list[Any]) -> None:
        """Take an empty mapping or list, whose entries come next."""
        self.put(container)
        self._open.append(container)
        self._keys.append(None)

    def end(self) -> None:
        """End the mapping or list that was opened last."""
        self._open.pop()
        self._keys.pop()
