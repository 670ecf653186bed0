"""Paged lists of the API server.

See the Kubernetes documentation, docs/reference/using-api/api-concepts, "Retrieving large results sets in
chunks".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from muster.cluster import errors
from muster.policy.group_labels import GATE

_Read = TypeVar("_Read")

_GATE = {"name": GATE}

SHRINKAGE = 8
"""A page that is too large, or too slow, is read again in parts of an eighth: from 500 objects to 1 in three
steps."""


@dataclass(frozen=True)
class Page:
    """One page of a list.

    Attributes:
        objects: parsed JSON, each with apiVersion and kind, as from a GET.
        token: the continue token of the next page; "" on the last page.
        version: the resourceVersion from which a watch sees the changes after the list.
        size: the most bytes of the answer as a text in memory; None if unknown.
    """

    objects: list[dict[str, Any]]
    token: str = ""
    version: str = ""
    size: int | None = None


GATES = 17
"""The most scheduling gates that are kept of a pod, beside Muster's; 1.5 MiB has room for 60,000. With
more than 16, patch_pods leaves a pod alone."""

LEFT_OUT = frozenset({"containers", "initContainers", "ephemeralContainers", "volumes"})
"""Fields of pods and pod templates that decide nothing, and in which a tenant can write 1.5 MiB of text."""


def without_containers(body: Any) -> Any:
    """Return an object without managedFields and the containers and volumes of its pods.

    So what one event keeps of the members of an owner is bounded by their number, and by 256 KiB of
    annotations each (`TotalAnnotationSizeLimitB`, pkg/api/validation, Kubernetes v1.37.1).
    """
    spec = body.get("spec")
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return (
        {**body, "metadata": metadata}
        if spec is None
        else {**body, "metadata": metadata, "spec": _light(spec)}
    )


def _light(spec: Any) -> Any:
    """Return a spec and its nested specs without LEFT_OUT, and with at most GATES gates beside Muster's."""
    if isinstance(spec, list):
        return [_light(entry) for entry in spec]
    if not isinstance(spec, dict):
        return spec
    nested = {"template", "spec", "replicatedJobs"}
    kept = {name: value for name, value in spec.items() if name not in LEFT_OUT}
    gates = kept.get("schedulingGates")
    if isinstance(gates, list) and len(gates) > GATES:
        kept["schedulingGates"] = [*(gate for gate in gates[GATES:] if gate == _GATE), *gates[:GATES]]
    return {name: _light(value) if name in nested else value for name, value in kept.items()}


EVENT_TEXT = 2048
"""The characters that are kept of a text of an Event: as many as the message of a condition may have. The API
server stores messages of 1.5 MiB."""


def with_short_texts(event: Any) -> Any:
    """Return an Event with the beginning of each of its texts, and without managedFields."""
    kept = without_containers(event)
    return {name: value if name == "metadata" else _cut(value) for name, value in kept.items()}


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut(entry) for name, entry in value.items()}
    return value[:EVENT_TEXT] if isinstance(value, str) else value


MOST_OBJECTS = 1_000_000
"""The most objects of a list, of which a page without any counts as one; Kubernetes is tested with 150,000
pods."""

MOST_SIZES = 1_000
"""The most collections whose page size is remembered; the others begin with the largest."""


class PageSizes:
    """The number of objects to ask for in the next page of each collection, by its URL path.

    Whoever may create objects decides how large they are: up to 1.5 MiB each, of which a page of 500 would
    not fit into a function's memory. Small pages for one namespace must not slow down the lists of others.
    Threads may share it: the worst that a race costs is a page.

    Args:
        most: the most objects in a page.
        page_bytes: bytes to aim at.
    """

    def __init__(self, most: int, page_bytes: int) -> None:
        self._most = most
        self._page_bytes = page_bytes
        self._sizes: dict[str, int] = {}

    def of(self, path: str) -> int:
        """Return the number of objects to ask for."""
        return self._sizes.get(path, self._most)

    def most_bytes(self, path: str) -> int | None:
        """Return the most bytes to read of the next page; None for one object: it cannot be smaller."""
        return 2 * self._page_bytes if self.of(path) > 1 else None

    def read(self, path: str, objects: int, size: int) -> None:
        """Note a page of so many objects and bytes: the next aims at `page_bytes`, and at most doubles."""
        if objects:
            aim = self._page_bytes * objects // size
            self._note(path, min(2 * self.of(path), aim))

    def shrink(self, path: str) -> None:
        """Note a page that was too large, or too slow."""
        self._note(path, self.of(path) // SHRINKAGE)

    def _note(self, path: str, size: int) -> None:
        """Remember a size below the largest; of too many, forget the one that was noted first."""
        if size >= self._most:
            self._sizes.pop(path, None)
            return
        self._sizes[path] = max(1, size)
        if len(self._sizes) > MOST_SIZES:
            oldest = list(self._sizes)[0]  # noqa: RUF015 - an iterator fails when another thread adds one
            self._sizes.pop(oldest, None)


def all_pages(page_at: Callable[[str], Page]) -> Page:
    """Return all pages of a list, joined into one.

    All pages show the list at one resourceVersion. If that expires before the last page (410 after five
    minutes, or after a compaction), the list is read once more from the beginning.

    Args:
        page_at: fetches the page of a continue token; "" begins a list.

    Raises:
        Expired: the resourceVersion expired twice.
    """
    return again_if_expired(lambda: _joined(page_at))


def again_if_expired(read: Callable[[], _Read]) -> _Read:
    """Return what `read` returns; if a list expires in it before its last page, read once more.

    What the first reading kept is let go of before the second.

    Raises:
        Expired: the list expired twice.
    """
    with suppress(errors.Expired):
        return read()
    return read()


def _joined(page_at: Callable[[str], Page]) -> Page:
    objects: list[dict[str, Any]] = []
    page = Page([], "", "")
    for page in pages(page_at):
        objects += page.objects
    return Page(objects, "", page.version)


def pages(page_at: Callable[[str], Page]) -> Iterator[Page]:
    """Yield the pages of a list.

    Args:
        page_at: fetches the page of a continue token; "" begins a list.

    Raises:
        Unavailable: a page has the token by which it was read, or there are more than MOST_OBJECTS.
    """
    token, read = "", 0
    while True:
        page = page_at(token)
        yield page
        read += max(1, len(page.objects))
        if not page.token:
            return
        if page.token == token:
            raise errors.Unavailable(
                "the API server gives the same continue token again: its list never ends"
            )
        if read > MOST_OBJECTS:
            raise errors.Unavailable(f"a list of the API server has more than {MOST_OBJECTS} objects")
        token = page.token
