"""Apply the patches of kustomizations, and limit what an overlay of somebody else takes."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any, Self

import jsonpatch
from jsonpointer import EndOfList, JsonPointer, JsonPointerException

DEEPEST = 10
"""The most folders within one another; more include themselves."""
MOST_FOLDERS = 1000
"""The most folders in all: ten that each name the next one ten times would be read ten billion times."""
MOST_STEPS = 50_000
"""The most steps of work, a few seconds: one for each operation, one for each object that a patch, an image
or a namespace is compared with, and one for each hundred characters that are read or copied. Overlays of
eventing/ take three thousand. A patch of 100 KB could have thousands of operations on thousands of objects,
and a file be named thousands of times."""
CHARACTERS_OF_STEP = 100
MOST_OF_KUSTOMIZATION = 256 * 1024
"""The most bytes of a kustomization.yaml: those of eventing/ have 4 KB. All are kept while the folders below
are read, and each character may take twenty bytes of memory."""
MOST_CHARACTERS = 2**21
"""The most characters of an object, as JSON, with all that the operations of a patch add, each of which may
double it: etcd takes 1.5 MiB."""


_TOO_DEEP = "an object is nested more than 100 levels deep"


class OverlayLimitError(ValueError):
    """An overlay takes more than these limits."""


class PatchError(ValueError):
    """An operation of a patch is none, or cannot be applied."""


@dataclass
class Left:
    """What the load of an overlay may still do.

    Attributes:
        folders: how many may still be read.
        steps: of work.
    """

    folders: int = MOST_FOLDERS
    steps: int = MOST_STEPS

    def enter(self, depth: int) -> None:
        """Count a folder before it is read.

        Raises:
            OverlayLimitError: there are too many, or too many include it.
        """
        self.folders -= 1
        if depth > DEEPEST or self.folders < 0:
            raise OverlayLimitError(
                f"more than {DEEPEST} folders include one another, or more than {MOST_FOLDERS} in all"
            )

    def take(self, steps: int, characters: int = 0) -> None:
        """Count work before it is done.

        Raises:
            OverlayLimitError: it is too much.
        """
        self.steps -= steps + characters // CHARACTERS_OF_STEP
        if self.steps < 0:
            raise OverlayLimitError(
                f"its files, patches and images take more than {MOST_STEPS} steps of work"
            )


@dataclass(frozen=True)
class Operation:
    """One operation of a patch.

    Attributes:
        patch: applies it.
        source: where a copy is taken from; None of other operations.
        characters: of its value, as JSON.
    """

    patch: jsonpatch.JsonPatch
    source: JsonPointer | None
    characters: int

    @classmethod
    def of(cls, operation: Any) -> Self:
        """Return a valid operation.

        Raises:
            PatchError: it is none.
        """
        try:
            patch = jsonpatch.JsonPatch([operation])
            copied = operation.get("from") if operation["op"] == "copy" else None
            source = JsonPointer(copied) if isinstance(copied, str) else None
        except (jsonpatch.JsonPatchException, JsonPointerException) as error:
            raise PatchError(str(error)) from None
        return cls(patch, source, len(json.dumps(operation.get("value"))))

    def added_to(self, manifest: Any) -> int:
        """Return how many characters an object has more after it, if it removes nothing.

        Raises:
            PatchError: it copies from behind the last entry of a list.
        """
        if self.source is None:
            return self.characters
        copied = self.source.resolve(manifest, None)
        if isinstance(copied, EndOfList):
            raise PatchError(f"from {self.source.path}: has nothing behind the last entry of the list")
        return len(json.dumps(copied))


def patched(manifest: dict[str, Any], operations: list[Operation], left: Left) -> Any:
    """Return a copy of an object after the operations of a patch.

    Raises:
        PatchError: one cannot be applied.
        OverlayLimitError: they make an object that is too large, or take too much work.
    """
    text = json.dumps(manifest)
    left.take(len(operations), len(text))
    size, changed = len(text), json.loads(text)
    try:
        for operation in operations:
            added = operation.added_to(changed)
            left.take(0, added)
            size += added
            if size > MOST_CHARACTERS:
                raise OverlayLimitError(f"patches make an object of more than {MOST_CHARACTERS} characters")
            changed = operation.patch.apply(changed, in_place=True)
    except (jsonpatch.JsonPatchException, JsonPointerException) as error:
        raise PatchError(str(error)) from None
    except RecursionError:
        raise PatchError(_TOO_DEEP) from None
    if _is_deep(changed):
        raise PatchError(_TOO_DEEP)
    return changed


def _is_deep(value: Any) -> bool:
    """Return whether operations have nested a value more deeply than a file may be."""
    level = [value]
    for _ in range(100 + 1):
        if not level:
            break
        lists = [
            one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)
        ]
        level = list(itertools.chain.from_iterable(lists))
    return bool(level)
