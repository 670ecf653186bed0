"""Count the memory of data that are made of files, so that all files of a command have one limit."""

from __future__ import annotations

from sys import getsizeof
from typing import Any

import yaml

MOST_MEMORY = 256 * 1024 * 1024
"""The most memory of the data of all files that a command reads: some ten thousand Jobs of JobSets as
`kubectl get -o yaml` prints them. Commands copy objects, and take up to 700 MiB with this."""
TEXT_SHARE = 8
"""The bytes of a text that count as one of its data, so that files of comments come to an end."""
MAPPING = 200
"""Bytes of a mapping and its place in a list."""
LIST = 100
"""Bytes of a list and its place in another."""
SCALAR = 64
"""Bytes of a number, a boolean or null and its place in a mapping; strings take as many at least."""
_KEY = 100
"""Bytes of a place in a large mapping, and in that of all keys, while it grows."""
_PLACE = 16
"""Bytes of a place in a list or mapping."""


class TooMuchDataError(yaml.YAMLError):
    """The data of files take more memory than the limit of their command."""


class DataLimit:
    """How much memory the data of further files of a command may take.

    Args:
        most: bytes of all files together; None for MOST_MEMORY.

    Attributes:
        left: bytes of those that are not taken yet.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = MOST_MEMORY if most is None else most
        self.left = self._most

    def take(self, size: int) -> None:
        """Take bytes.

        Raises:
            TooMuchDataError: fewer are left.
        """
        self.left -= size
        self.require(0)

    def require(self, size: int) -> None:
        """Refuse to go on if fewer bytes are left than are needed for a moment.

        Raises:
            TooMuchDataError: fewer are left.
        """
        if self.left < size:
            raise TooMuchDataError(
                f"the data of this file and those before it take more than {self._most} bytes of memory; "
                "use fewer or smaller files"
            )


def memory_of_string(text: str) -> int:
    """Return the bytes of a string and its place: four for each character if one is an emoji."""
    return _PLACE + getsizeof(text)


def memory_of_key(text: str) -> int:
    """Return the bytes of a key of a mapping that no other mapping has."""
    return _KEY + getsizeof(text)


def memory_of(value: Any) -> int:
    """Return the bytes of JSON data; what several aliases of YAML stand for counts once."""
    rest, size = [value], 0
    counted: set[int] = set()
    while rest:
        last = rest.pop()
        if isinstance(last, str):
            size += memory_of_string(last)
        elif not isinstance(last, dict | list):
            size += SCALAR
        elif id(last) not in counted:
            counted.add(id(last))
            if isinstance(last, dict):
                size += max(MAPPING, _PLACE + getsizeof(last)) + sum(map(getsizeof, last))
                rest.extend(last.values())
            else:
                size += max(LIST, _PLACE + getsizeof(last))
                rest.extend(last)
    return size
