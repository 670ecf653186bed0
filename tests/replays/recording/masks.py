"""Replaces values that differ in each run, such as UIDs and times, by placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tests.replays.recording.take import Object, Take

_FIELDS = {
    "resourceVersion": "<version>",
    "id": "<id>",
    "podIP": "<ip>",
    "ip": "<ip>",
    "nodeName": "<node>",
    "nominatedNodeName": "<node>",
    "batch.kubernetes.io/job-completion-index": "<index>",
}
"""Fields whose values are random. Pods of a Job are alike, so the index of a pod counts as random."""

_PATTERNS = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"(?<=://127\.0\.0\.1:)\d+", "<port>"),
        (r"(?<=^kube-api-access-)[a-z0-9]{5}$", "<random>"),
    )
)


class Masks:
    """Placeholders for the UIDs and random names of one recording."""

    def __init__(self, take: Take) -> None:
        """Collect the names from the objects of a recording."""
        names = dict(_names(_objects(take)))
        # Longest first, so that none is found inside another one.
        ordered = sorted(names, key=lambda name: (-len(name), name))
        self._names = names
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
        self._known: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return a text with placeholders for random values."""
        if text not in self._known:
            self._known[text] = self._masked(text)
        return self._known[text]

    def _masked(self, text: str) -> str:
        for pattern, word in _PATTERNS:
            text = pattern.sub(word, text)
        return self._pattern.sub(lambda match: self._names[match[0]], text)

    def document(self, document: Any, field: str = "") -> Any:
        """Return a copy of a document with placeholders for random values."""
        if isinstance(document, dict):
            return {name: self.document(value, name) for name, value in document.items()}
        if isinstance(document, list):
            return [self.document(value) for value in document]
        if document is not None and field in _FIELDS:
            return _FIELDS[field]
        return self.text(document) if isinstance(document, str) else document


def _objects(take: Take) -> Iterator[Object]:
    for event in take.resource:
        yield event["data"]
    for moment in take.moments:
        yield from moment["items"]


def _names(objects: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Yield random names and their placeholders.

    A pod's name ends in five random characters, behind its index; the names of a Job's Workload and of
    PodGroups end in what was made of a UID.
    """
    for obj in objects:
        metadata = obj["metadata"]
        name = metadata["name"]
        if obj["kind"] == "Pod":
            pods = re.sub(r"-\d+-$", "-<index>", metadata["generateName"])
            yield name, f"{pods}-<random>"
            yield obj["spec"].get("hostname") or name, pods
        owners: list[Object] = metadata.get("ownerReferences") or []
        controller: Object = next((owner for owner in owners if owner.get("controller")), {})
        if obj["kind"] == "Workload" and name != controller.get("name"):
            yield name, f"{controller.get('name')}-<hash>"
        if obj["kind"] == "PodGroup" and controller:
            yield name, re.sub(r"[0-9a-f]{8}$", "<uid8>", name)
