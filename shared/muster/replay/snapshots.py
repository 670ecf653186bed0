"""Clusters in files: YAML streams of objects and Lists, and recordings that hold several moments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.replay.files import BadFileError, read_text, yaml_documents

Object = dict[str, Any]
Objects = list[Object]
OWNERS = {"TrainJob", "JobSet", "Job"}


@dataclass(frozen=True)
class World:
    """All objects there are, at one moment or for ever.

    Attributes:
        moment: what the recording calls it; "" where the files tell no moments.
        objects: in the order of the files; of several with the same kind and name the last one counts.
    """

    moment: str
    objects: Objects


def read_worlds(paths: Iterable[Path]) -> list[World]:
    """The worlds that files tell of, in their order; one where they tell no moments.

    A file holds objects and Lists of them. A List with `moment` is part of a recording: the same cluster at
    another time. Objects without a moment are there at every moment, and moments of the same name in several
    files are one.

    Raises:
        BadFileError: a file cannot be read, or something in it is no object.
    """
    always: Objects = []
    moments: dict[str, Objects] = {}
    for path in paths:
        for number, document in enumerate(yaml_documents(path, read_text(path)), start=1):
            place = f"{path}: document {number}"
            moment = document.get("moment") if isinstance(document, dict) else None
            into = always if moment is None else moments.setdefault(str(moment), [])
            into.extend(_objects(place, document))
    if not moments:
        return [World("", _merged(always))]
    return [World(moment, _merged([*always, *objects])) for moment, objects in moments.items()]


def choose(worlds: Sequence[World], moment: str, otherwise: Callable[[Sequence[World]], World]) -> World:
    """The world of a moment, or what `otherwise` takes when no moment is named.

    Raises:
        LookupError: there is no such moment; the message names those there are.
    """
    if not moment:
        return otherwise(worlds)
    found = next((world for world in worlds if world.moment == moment), None)
    if found is None:
        names = ", ".join(repr(world.moment) for world in worlds if world.moment)
        raise LookupError(f"no moment {moment!r}; there are {names or 'no moments in these files'}")
    return found


def first(worlds: Sequence[World]) -> World:
    """The earliest."""
    return worlds[0]


def first_with_pods(worlds: Sequence[World]) -> World:
    """The earliest in which a pod exists: what a recording shows before any step of Muster acted."""
    return next((world for world in worlds if any(one["kind"] == "Pod" for one in world.objects)), worlds[0])


def _objects(place: str, document: Any) -> Iterator[Object]:
    if isinstance(document, list):
        for number, entry in enumerate(document):
            yield from _objects(f"{place}: [{number}]", entry)
        return
    if not isinstance(document, dict):
        raise BadFileError(place, "is no Kubernetes object")
    kind = document.get("kind")
    if isinstance(document.get("items"), list) and (kind is None or str(kind).endswith("List")):
        for number, entry in enumerate(document["items"]):
            yield from _objects(f"{place}: items[{number}]", _typed(entry, document))
        return
    yield _checked(place, document)


def _typed(entry: Any, collection: Mapping[str, Any]) -> Any:
    """An item of a JobList has no kind of its own when it comes from the API itself."""
    kind = str(collection.get("kind", "")).removesuffix("List")
    if not isinstance(entry, dict) or not kind or "kind" in entry:
        return entry
    return {"apiVersion": collection.get("apiVersion"), "kind": kind, **entry}


def _checked(place: str, found: Object) -> Object:
    for field in ("apiVersion", "kind"):
        _text(place, field, found.get(field))
    metadata = found.get("metadata")
    if not isinstance(metadata, dict):
        raise BadFileError(f"{place}: metadata", "is missing" if metadata is None else "must be an object")
    _text(place, "metadata.name", metadata.get("name"))
    if metadata.get("namespace") is not None:
        _text(place, "metadata.namespace", metadata["namespace"])
    return found


def _text(place: str, path: str, value: Any) -> None:
    if value is None:
        raise BadFileError(f"{place}: {path}", "is missing")
    if not isinstance(value, str) or not value:
        raise BadFileError(f"{place}: {path}", "must be a string that is not empty")


def _merged(objects: Iterable[Object]) -> Objects:
    merged: dict[tuple[str, ...], Object] = {}
    for found in objects:
        metadata = found["metadata"]
        group = found["apiVersion"].rpartition("/")[0]
        merged[group, found["kind"], metadata.get("namespace") or "", metadata["name"]] = found
    return list(merged.values())
