"""The objects of clusters in files: YAML streams of objects and Lists, with or without moments.

A List with the field `moment` is a moment of a recording, as `muster.replay.recording` writes it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.events.parse import Happened, ResourceEvent, UnreadableEvent, parse
from muster.objects.meta import ObjectRef
from muster.policy.owners import kind_of
from muster.replay.files import BadFileError, RecordedRequest, read_text, yaml_documents

Object = dict[str, Any]
Objects = list[Object]

Named = tuple[str, str, str]
"""Kind, namespace and name of an object."""


@dataclass(frozen=True)
class RecordedObjects:
    """All objects of a cluster at a moment; its name is "" if the files have no moments."""

    name: str
    objects: Objects


@dataclass(frozen=True)
class LocatedObject:
    """An object, its file, and the number of its document in the file, from 1."""

    path: Path
    document: int
    body: Object


def read_snapshots(paths: Iterable[Path]) -> list[RecordedObjects]:
    """Return the objects at each moment in files, in their order; one entry if they have no moments.

    Objects outside of moments are part of each of them; moments of the same name in several files are merged.

    Raises:
        BadFileError: a file cannot be read, or has a value that is no object.
    """
    always: Objects = []
    moments: dict[str, Objects] = {}
    for path in paths:
        for location, document in _documents(path):
            moment = document.get("moment") if isinstance(document, dict) else None
            objects = always if moment is None else moments.setdefault(str(moment), [])
            objects.extend(_objects(location, document))
    if not moments:
        return [RecordedObjects("", _latest(always))]
    return [RecordedObjects(name, _latest([*always, *own])) for name, own in moments.items()]


def _latest(objects: Iterable[Object]) -> Objects:
    """Return the last object of each API group, kind, namespace and name."""
    return list({(body["apiVersion"].rpartition("/")[0], name_of(body)): body for body in objects}.values())


def read_located(path: Path, *, skip_others: bool = False) -> Iterator[LocatedObject]:
    """Yield the objects of a file; documents such as a kustomization are skipped, or refused."""
    for number, (location, document) in enumerate(_documents(path), start=1):
        if skip_others and not _looks_like_objects(document):
            continue
        for body in _objects(location, document):
            yield LocatedObject(path, number, body)


def choose(snapshots: Sequence[RecordedObjects], moment: str = "") -> RecordedObjects:
    """Return the objects at a moment, of the first moment without a name; LookupError lists the moments."""
    chosen = next((snapshot for snapshot in snapshots if moment in {"", snapshot.name}), None)
    if chosen is None:
        raise LookupError(f"no moment {moment!r}; known: {moments_of(snapshots) or 'none'}")
    return chosen


def moments_of(snapshots: Iterable[RecordedObjects]) -> str:
    """Return the names of the moments as text; "" if the files have none."""
    return ", ".join(repr(snapshot.name) for snapshot in snapshots if snapshot.name)


def choose_for(
    objects: Sequence[ObjectRef], snapshots: Sequence[RecordedObjects], moment: str
) -> RecordedObjects:
    """Return a moment; without its name the first with the most of the objects and, of these, with a pod.

    It is the earliest at which the functions can act on the events: later ones have their groups already.
    """
    if moment:
        return choose(snapshots, moment)
    counts = [sum(_is_among(one, snapshot.objects) for one in set(objects)) for snapshot in snapshots]
    candidates = [snapshot for count, snapshot in zip(counts, snapshots, strict=True) if count == max(counts)]
    with_pod = (one for one in candidates if any(body["kind"] == "Pod" for body in one.objects))
    return next(with_pod, candidates[0])


def objects_of_events(requests: Iterable[RecordedRequest], *, owners_only: bool = True) -> list[ObjectRef]:
    """Return the objects that events are about, without deleted ones.

    With `owners_only` only TrainJobs, JobSets and Jobs count: the functions may make the others.
    """
    exists: dict[ObjectRef, bool] = {}
    for request in requests:
        try:
            event = parse(request.headers, request.body)
        except UnreadableEvent:
            continue
        if isinstance(event, ResourceEvent) and not (owners_only and kind_of(event.ref) is None):
            exists[event.ref] = exists.get(event.ref, True) and event.happened is not Happened.DELETE
    return [ref for ref, remains in exists.items() if remains]


def _is_among(ref: ObjectRef, objects: Iterable[Object]) -> bool:
    """Whether an object is there, under its UID if that is known: one made again has the same name."""
    named = ref.kind, ref.namespace, ref.name
    uids = {body["metadata"].get("uid") or ref.uid for body in objects if name_of(body) == named}
    return ref.uid in uids or bool(uids and not ref.uid)


def name_of(body: Object) -> Named:
    """Return kind, namespace ("" for none) and name of an object."""
    return body["kind"], body["metadata"].get("namespace") or "", body["metadata"]["name"]


def _looks_like_objects(document: Any) -> bool:
    """Whether a document is an object or a List of objects; a kustomization has a kind, but no metadata."""
    return isinstance(document, dict) and "kind" in document and bool({"metadata", "items"} & set(document))


def _documents(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the location, `cluster.yaml: document 2`, and the content of each document."""
    for number, document in enumerate(yaml_documents(path, read_text(path)), start=1):
        yield f"{path}: document {number}", document


def _objects(location: str, document: Any) -> Iterator[Object]:
    if isinstance(document, list):
        for number, entry in enumerate(document):
            yield from _objects(f"{location}: [{number}]", entry)
        return
    if not isinstance(document, dict):
        raise BadFileError(location, "is not a Kubernetes object")
    kind = document.get("kind")
    if isinstance(document.get("items"), list) and kind in (None, "List"):
        for number, entry in enumerate(document["items"]):
            yield from _objects(f"{location}: items[{number}]", entry)
        return
    yield _checked(location, document)


def _checked(location: str, body: Object) -> Object:
    """Return an object, its metadata without nulls, which the API server does not store either.

    One with `generateName` alone gets a name that is always the same for its place in the file.
    """
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        raise BadFileError(f"{location}: metadata", "is missing" if metadata is None else "must be an object")
    generated = metadata.get("generateName")
    if metadata.get("name") is None and isinstance(generated, str) and generated:
        metadata = {
            **metadata,
            "name": f"{generated}{zlib.crc32(location.encode()):08x}"[: len(generated) + 5],
        }
    named = {
        "apiVersion": body.get("apiVersion"),
        "kind": body.get("kind"),
        "metadata.name": metadata.get("name"),
    }
    if metadata.get("namespace") is not None:
        named["metadata.namespace"] = metadata["namespace"]
    for path, value in named.items():
        if value is None:
            raise BadFileError(f"{location}: {path}", "is missing")
        if not isinstance(value, str) or not value:
            raise BadFileError(f"{location}: {path}", "must be a non-empty string")
    return {**body, "metadata": {name: value for name, value in metadata.items() if value is not None}}
