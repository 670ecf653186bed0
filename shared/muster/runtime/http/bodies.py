"""Heads and bodies of requests: how large they may be, and why a body is not read to its end."""

from __future__ import annotations

from enum import StrEnum
from threading import Lock

LARGEST_HEAD = 16 * 1024
"""The most bytes of a request before its body."""

FREE_BYTES = 64 * 1024
"""The first bytes of each body are kept without a reservation: the size of usual events."""

FREE_CHUNKS, BYTES_PER_CHUNK = 100, 1024
"""The chunks that a body may have, and the bytes for each further one: a chunk costs a server 15 µs."""

REFUSAL = "muster.refusal"
"""The key of a BodyRefusal in a WSGI environment; absent if the body was read to its end."""


class BodyRefusal(StrEnum):
    """Why a body was not kept."""

    TOO_LARGE = "too large"
    TOO_SLOW = "too slow"
    NO_ROOM = "no room"
    NO_THREAD = "no thread"


def too_many_chunks(chunks: int, size: int) -> bool:
    """Whether a body of so many bytes came in too many chunks."""
    return chunks > FREE_CHUNKS + size // BYTES_PER_CHUNK


def head_too_large(head: bytes, most_fields: int) -> bool:
    """Whether the head of a request, or its beginning, has too many bytes or header fields.

    Lines of blanks that continue a field count as well: h11 parses them one by one.
    """
    return len(head) > LARGEST_HEAD or head.strip(b"\r\n").count(b"\n") > most_fields


class BodyMemory:
    """The memory that the bodies of all requests share; safe to use from several threads.

    Args:
        limit: bytes for all bodies, beyond the first FREE_BYTES of each.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._lock = Lock()

    @property
    def taken(self) -> int:
        """Bytes reserved now."""
        return self._taken

    def take(self, size: int) -> bool:
        """Reserve bytes; False if there are not as many left."""
        with self._lock:
            if self._taken + size > self._limit:
                return False
            self._taken += size
            return True

    def give_back(self, size: int) -> None:
        """Free reserved bytes."""
        with self._lock:
            self._taken -= size


class BodySize:
    """The size of one body while it arrives.

    Args:
        limit: the most bytes of a body.
        memory: the memory that it shares with other bodies.
    """

    def __init__(self, limit: int, memory: BodyMemory) -> None:
        self._limit = limit
        self._memory = memory
        self._reserved = 0
        self._received = 0

    def grow(self, size: int) -> BodyRefusal | None:
        """Add the bytes of a chunk; the reason to keep neither it nor what came before, or None."""
        self._received += size
        if self._received > self._limit:
            return BodyRefusal.TOO_LARGE
        missing = self._received - FREE_BYTES - self._reserved
        if missing > 0:
            if not self._memory.take(missing):
                return BodyRefusal.NO_ROOM
            self._reserved += missing
        return None

    def release(self) -> None:
        """Give its memory back; safe to call again."""
        reserved, self._reserved = self._reserved, 0
        self._memory.give_back(reserved)
