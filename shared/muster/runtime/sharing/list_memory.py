"""The memory of the lists of one event, which a tenant decides by the number and size of objects."""

from __future__ import annotations

from collections import Counter
from threading import BoundedSemaphore, Lock

from pydantic_core import to_json

from muster.cluster.errors import ClusterError, Unavailable
from muster.cluster.http import answer_json
from muster.cluster.interface import Objects
from muster.objects.text import separators, text_bytes

EVENT_BYTES = 96 * 1024 * 1024
"""Memory for the lists of all events in work."""

FREE_BYTES = 1536 * 1024
"""The first bytes of each event's lists need no reservation: those of 150 pods."""

PAGES_AT_ONCE = 13
"""The most pages that events read at once, of 4 MiB or more each: they count when they are parsed."""

LARGE_OBJECTS_AT_ONCE = 2
"""The most objects of more than LARGE_ANSWER, of up to 9 MiB each, that events read at once, one by one or as
answers of writes."""

BYTES_OF_OBJECT, BYTES_OF_VALUE = 4096, 128
"""Memory of a view of an object, and of each of its first values beside their text: measured with pods."""

USUAL_VALUES = 128
"""The first values of an object; those of a pod without containers."""

BYTES_OF_FURTHER_VALUE = 250
"""Memory of each further value beside its text. It may be a label or an annotation: two texts of their own,
in a mapping of the object and in one of its view, both of which may just have grown."""


class TooManyObjects(ClusterError):
    """The lists of one event need more memory than the events of one namespace may have."""


class NoRoomForObjects(Unavailable):
    """The lists of all events in work need more memory than they may have."""


class SharedListMemory:
    """The memory that the lists of all events share; safe to use from several threads.

    The events of one namespace get three quarters of what those of others leave (dynamic thresholds,
    Choudhury and Hahne, 1998), so that large lists of several namespaces leave room for those of others.

    Args:
        limit: bytes for the lists of all events in work, beyond the first FREE_BYTES of each.

    Attributes:
        of_a_namespace: the bytes that the events of one namespace may have if others have none.
        pages: limits the pages that events read at once.
        large_objects: limits the large objects that they read at once, until they are parsed.
        page_lock: held from the parsing of a large page until its containers are dropped and the rest counts,
            or until a sweep has kept of it what it needs: it takes memory that is not reserved.
    """

    def __init__(self, limit: int = EVENT_BYTES) -> None:
        self._limit = limit
        self.pages = BoundedSemaphore(PAGES_AT_ONCE)
        self.large_objects = BoundedSemaphore(LARGE_OBJECTS_AT_ONCE)
        self.page_lock = Lock()
        self.of_a_namespace = limit * 3 // 4
        self._lock = Lock()
        self._taken: Counter[str] = Counter()

    @property
    def beyond_limit(self) -> str:
        """The limit for all events together, for a message."""
        return f"more than {self._limit} bytes of memory"

    @property
    def beyond_share(self) -> str:
        """The limit for one namespace, for a message."""
        return f"more than {self.of_a_namespace} bytes of memory (three quarters of all)"

    @property
    def taken(self) -> int:
        """Bytes reserved now."""
        return self._taken.total()

    def take(self, namespace: str, size: int) -> bool:
        """Reserve bytes for a namespace; False if there are not as many left for it."""
        with self._lock:
            after = self._taken[namespace] + size
            left_by_others = self._limit - (self._taken.total() - self._taken[namespace])
            if after > left_by_others * 3 // 4:
                return False
            self._taken[namespace] = after
            return True

    def give_back(self, namespace: str, size: int) -> None:
        """Free reserved bytes of a namespace."""
        with self._lock:
            self._taken[namespace] -= size
            if not self._taken[namespace]:
                del self._taken[namespace]


class ListMemory:
    """The memory that the lists of one event may take; not for several threads at once.

    Args:
        shared: the memory that it shares with other events.

    Attributes:
        pages: that of the shared memory.
        large_objects: likewise.
        page_lock: likewise.
    """

    def __init__(self, shared: SharedListMemory) -> None:
        self._shared = shared
        self.pages = shared.pages
        self.large_objects = shared.large_objects
        self.page_lock = shared.page_lock
        self._reserved: Counter[str] = Counter()
        self._used = 0

    @property
    def used(self) -> int:
        """Bytes that the objects take, or more; those that need no reservation count too."""
        return self._used

    def add(self, objects: Objects, namespace: str, size: int | None = None) -> None:
        """Reserve memory for the objects of a page.

        Args:
            objects: the objects.
            namespace: the namespace that was listed; "" for all, and for cluster-scoped objects.
            size: the bytes of their JSON as a text in memory, or more; None if unknown.

        Raises:
            TooManyObjects: this event alone needs more than one namespace may have.
            NoRoomForObjects: there is not as much left beside other events.
        """
        most = None if size is None else _most(len(objects), size)
        if most is not None and self._used + most <= FREE_BYTES:
            self._used += most
            return
        self._use(sum(map(_estimated, objects)), namespace)

    def add_text(self, text: bytes, namespace: str) -> None:
        """Reserve memory for an object of a namespace before its JSON is parsed.

        Raises:
            TooManyObjects: this event alone needs more than one namespace may have.
            NoRoomForObjects: there is not as much left beside other events.
        """
        self._use(_needed(answer_json.text_bytes(text), separators(text)), namespace)

    def _use(self, size: int, namespace: str) -> None:
        self._used += size
        missing = self._used - FREE_BYTES - self._reserved.total()
        if missing <= 0:
            return
        if self._reserved.total() + missing > self._shared.of_a_namespace:
            raise TooManyObjects(f"the objects to look at need {self._shared.beyond_share}")
        if not self._shared.take(namespace, missing):
            raise NoRoomForObjects(f"the objects of all events in work need {self._shared.beyond_limit}")
        self._reserved[namespace] += missing

    def release(self) -> None:
        """Give the memory back, for the next attempt or event."""
        for namespace, size in self._reserved.items():
            self._shared.give_back(namespace, size)
        self._reserved.clear()
        self._used = 0


def _most(count: int, size: int) -> int:
    """Return the most that `_estimated` may say of objects whose JSON takes so many bytes in memory."""
    return count * BYTES_OF_OBJECT + size * (1 + BYTES_OF_FURTHER_VALUE)


def _estimated(body: object) -> int:
    """Return the memory of a parsed object and of its view, from its JSON.

    pydantic makes the JSON of 10 pods of 40,000 annotations in 0.07 s, the standard library in 0.35 s.
    """
    text = to_json(body)
    return _needed(text_bytes(text), separators(text))


def _needed(text: int, values: int) -> int:
    usual = min(values, USUAL_VALUES)
    return text + BYTES_OF_VALUE * usual + BYTES_OF_FURTHER_VALUE * (values - usual) + BYTES_OF_OBJECT
