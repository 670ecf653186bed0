"""Completion indexes, and sets of them as `status.completedIndexes` writes them.

The rules are those of kubernetes v1.37.1, pkg/controller/job/indexed_job_utils.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from muster.cluster.interface import Object
from muster.simulator.controllers.framework.fields import annotations_of

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: Object) -> int | None:
    """Return the completion index of a pod; None if unset."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() else None


def parse_indexes(text: str, completions: int) -> frozenset[int]:
    """Parse a text such as `0,3-5` into the indexes below `completions`."""
    indexes: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first:
            indexes.update(range(int(first), int(last or first) + 1))
    return frozenset(index for index in indexes if index < completions)


def format_indexes(indexes: Iterable[int]) -> str:
    """Format a set of indexes: runs of three or more as `first-last`, others separately."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_run(first, last) for first, last in runs)


def first_pending(count: int, completions: int, taken: Collection[int]) -> list[int]:
    """Return the `count` lowest indexes below `completions` that are not in `taken`."""
    free = (index for index in range(completions) if index not in taken)
    return [index for index, _ in zip(free, range(count), strict=False)]


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
