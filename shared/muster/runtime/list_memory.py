"""The memory of the lists of one event, which a tenant decides by the number and size of objects."""

from __future__ import annotations

import json
import sys

from muster.cluster.errors import ClusterError, Unavailable
from muster.cluster.interface import Objects
from muster.policy.limits import setting
from muster.runtime.bodies import BodyMemory

FREE_BYTES = 4 * 1024 * 1024
"""The first bytes of each event's lists need no reservation: those of 400 pods."""

BYTES_OF_OBJECT, BYTES_OF_VALUE = 4096, 128
"""Memory of a view of an object, and of each value in it beside its text: measured with pods, with labels and
with tolerations."""


class TooManyObjects(ClusterError):
    """The lists of one event need more memory than all events may have."""


class NoRoomForObjects(Unavailable):
    """The lists of all events in work need more memory than they may have."""


class ListMemory:
    """The memory that the lists of one event may take; not for several threads at once.

    Args:
        limit: bytes for the lists of all events in work, beyond the first FREE_BYTES of each.
        shared: the memory that it shares with other events, of the same limit.
    """

    def __init__(self, limit: int, shared: BodyMemory) -> None:
        self._limit = limit
        self._shared = shared
        self._reserved = 0
        self._used = 0

    def add(self, objects: Objects, size: int | None = None) -> None:
        """Reserve memory for the objects of a page.

        Args:
            objects: the objects.
            size: the bytes of their JSON as a text in memory, or more; None if unknown.

        Raises:
            TooManyObjects: this event alone needs more than the limit.
            NoRoomForObjects: there is not as much left beside other events.
        """
        most = None if size is None else _most(len(objects), size)
        if most is not None and self._used + most <= FREE_BYTES:
            self._used += most
            return
        self._used += sum(map(_estimated, objects))
        missing = self._used - FREE_BYTES - self._reserved
        if missing <= 0:
            return
        if self._reserved + missing > self._limit:
            raise TooManyObjects(f"the objects to look at need {self._beyond}")
        if not self._shared.take(missing):
            raise NoRoomForObjects(f"the objects of all events in work need {self._beyond}")
        self._reserved += missing

    def release(self) -> None:
        """Give the memory back, for the next attempt or event."""
        self._shared.give_back(self._reserved)
        self._reserved = self._used = 0

    @property
    def _beyond(self) -> str:
        return f"more than {self._limit} bytes of memory ({setting('event_bytes')})"


def _most(count: int, size: int) -> int:
    """The most that `_estimated` may say of objects whose JSON takes so many bytes in memory."""
    return count * BYTES_OF_OBJECT + size * (1 + BYTES_OF_VALUE)


def _estimated(body: object) -> int:
    """The memory of a parsed object and of its view, from its JSON.

    Python stores all characters of a text as wide as its widest (PEP 393): with one emoji each takes
    four bytes.
    """
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    values = text.count(",") + text.count("{") + text.count("[")
    return sys.getsizeof(text) + BYTES_OF_VALUE * values + BYTES_OF_OBJECT
