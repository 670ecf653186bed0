"""Read the objects of clusters from files: YAML streams of objects and Lists, with or without checkpoints.

A List with the field `moment` is a checkpoint, as `muster.replay.recording.checkpoints` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from muster.objects.memory import DataLimit
from muster.objects.meta import MOST_TEXT, has_too_much_text, overlong_field
from muster.objects.text import cut_to
from muster.replay.files import BadFileError, located, read_text, yaml_documents

Object = dict[str, Any]
Objects = list[Object]

_NAMES_SHOWN, _NAME_SHOWN = 50, 100
"""The most moments that an error lists, and the most characters of each: a file may have any."""


@dataclass(frozen=True)
class RecordedObjects:
    """All objects of a cluster at one checkpoint.

    Attributes:
        checkpoint: its name in the recording; "" if the files have no checkpoints.
        own: the objects of this checkpoint alone, in the order of the files.
        shared: the objects of all checkpoints; the same list for each of them.
    """

    checkpoint: str
    own: Objects
    shared: Objects = field(default_factory=list)

    @cached_property
    def objects(self) -> Objects:
        """All objects; of several with the same kind and name only the last."""
        return _latest([*self.shared, *self.own])


OBJECT_BYTES = 1000
"""Bytes that a command keeps of an object beside its data: its key, its place in the file, and its view."""


@dataclass(frozen=True)
class LocatedObject:
    """An object and where it was written.

    Attributes:
        path: of the file.
        document: number of the document in the file, from 1.
        body: the object.
    """

    path: Path
    document: int
    body: Object


def read_snapshots(
    paths: Iterable[Path],
    limit: DataLimit | None = None,
    *,
    reading: Callable[[str], object] = lambda _step: None,
) -> list[RecordedObjects]:
    """Return the objects at each checkpoint in files, in their order; one entry if they have no checkpoints.

    Objects outside of checkpoints are part of each of them, and checkpoints of the same name in several files
    are merged.

    Args:
        paths: the files.
        limit: of their data together, and of other files of a command; None for one of their own.
        reading: called with `file 7` and so on before each is read.

    Raises:
        BadFileError: a file cannot be read, or has a value that is no object; or the data take more memory
            than the limit.
    """
    limit = limit or DataLimit()
    always: Objects = []
    checkpoints: dict[str, Objects] = {}
    for number, path in enumerate(paths, start=1):
        reading(f"file {number}")
        for location, document in _documents(path, limit):
            checkpoint = document.get("moment") if isinstance(document, dict) else None
            objects = always if checkpoint is None else checkpoints.setdefault(str(checkpoint), [])
            objects.extend(_counted(path, limit, _objects(location, document)))
    if not checkpoints:
        return [RecordedObjects("", always)]
    return [RecordedObjects(name, objects, always) for name, objects in checkpoints.items()]


def read_located(
    path: Path, limit: DataLimit | None = None, *, skip_others: bool = False
) -> Iterator[LocatedObject]:
    """Yield the objects of a file with the number of their document.

    Args:
        path: of the file.
        limit: of the data of all files of a command; None for one of its own.
        skip_others: whether documents that are no objects are skipped.

    Raises:
        BadFileError: the file cannot be read, or has a value that is no object.
        TooMuchReadError: the data take more memory than the limit.
    """
    limit = limit or DataLimit()
    for number, (location, document) in enumerate(_documents(path, limit), start=1):
        if skip_others and not _looks_like_objects(document):
            continue
        for body in _counted(path, limit, _objects(location, document)):
            yield LocatedObject(path, number, body)


def _counted(path: Path, limit: DataLimit, objects: Iterable[Object]) -> Iterator[Object]:
    """Yield objects of a file, each once OBJECT_BYTES of the limit are taken for it."""
    for body in objects:
        with located(str(path)):
            limit.take(OBJECT_BYTES)
        yield body


def _looks_like_objects(document: Any) -> bool:
    """Whether a document is an object or a List of objects; a kustomization has a kind, but no metadata."""
    return isinstance(document, dict) and "kind" in document and bool({"metadata", "items"} & set(document))


def _documents(path: Path, limit: DataLimit | None) -> Iterator[tuple[str, Any]]:
    """Yield the location, `cluster.yaml: document 2`, and the content of each document."""
    for number, document in enumerate(yaml_documents(path, read_text(path, limit), limit), start=1):
        yield f"{path}: document {number}", document


def choose(
    snapshots: Sequence[RecordedObjects],
    checkpoint: str,
    default: Callable[[Sequence[RecordedObjects]], RecordedObjects],
) -> RecordedObjects:
    """Return the objects at a checkpoint, or those that `default` chooses if the name is "".

    Raises:
        LookupError: there is no such checkpoint; the message lists names that there are.
    """
    if not checkpoint:
        return default(snapshots)
    chosen = next((snapshot for snapshot in snapshots if snapshot.checkpoint == checkpoint), None)
    if chosen is None:
        names = [snapshot.checkpoint for snapshot in snapshots if snapshot.checkpoint]
        known = ", ".join(repr(shortened(name)) for name in names[:_NAMES_SHOWN]) or "none"
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        raise LookupError(f"no moment {checkpoint!r}; known: {known}{more}")
    return chosen


def shortened(checkpoint: str) -> str:
    """Return the name of a checkpoint as messages have it, which is cut if it is long."""
    return cut_to(checkpoint, _NAME_SHOWN)


def first(snapshots: Sequence[RecordedObjects]) -> RecordedObjects:
    """Return the earliest snapshot."""
    return snapshots[0]


def _objects(location: str, document: Any) -> Iterator[Object]:
    if isinstance(document, list):
        for number, entry in enumerate(document):
            yield from _objects(f"{location}: [{number}]", entry)
        return
    if not isinstance(document, dict):
        raise BadFileError(location, "is not a Kubernetes object")
    kind = document.get("kind")
    if isinstance(document.get("items"), list) and (kind is None or str(kind).endswith("List")):
        for number, entry in enumerate(document["items"]):
            yield from _objects(f"{location}: items[{number}]", _with_kind(entry, document))
        return
    yield _checked(location, document)


def _with_kind(entry: Any, collection: Mapping[str, Any]) -> Any:
    """Return an item with the kind of its typed list: the API server omits it in the items of a JobList."""
    kind = str(collection.get("kind", "")).removesuffix("List")
    if not isinstance(entry, dict) or not kind or "kind" in entry:
        return entry
    return {"apiVersion": collection.get("apiVersion"), "kind": kind, **entry}


def _checked(location: str, body: Object) -> Object:
    """Return an object, its metadata without nulls, which the API server does not store either."""
    for name in ("apiVersion", "kind"):
        _require_string(location, name, body.get(name))
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        raise BadFileError(f"{location}: metadata", "is missing" if metadata is None else "must be an object")
    _require_string(location, "metadata.name", metadata.get("name"))
    if metadata.get("namespace") is not None:
        _require_string(location, "metadata.namespace", metadata["namespace"])
    long = overlong_field(body)
    if long is not None:
        raise BadFileError(f"{location}: {long[0]}", f"has more than {long[1]} characters")
    if has_too_much_text(body):
        raise BadFileError(
            location, f"has texts of more than {MOST_TEXT} characters, which no API server stores"
        )
    return {**body, "metadata": {name: value for name, value in metadata.items() if value is not None}}


def _require_string(location: str, path: str, value: Any) -> None:
    if value is None:
        raise BadFileError(f"{location}: {path}", "is missing")
    if not isinstance(value, str) or not value:
        raise BadFileError(f"{location}: {path}", "must be a non-empty string")


def _latest(objects: Iterable[Object]) -> Objects:
    """Return the last object of each API group, kind, namespace and name."""
    by_key: dict[tuple[str, ...], Object] = {}
    for body in objects:
        metadata = body["metadata"]
        group = body["apiVersion"].rpartition("/")[0]
        by_key[group, body["kind"], metadata.get("namespace") or "", metadata["name"]] = body
    return list(by_key.values())
