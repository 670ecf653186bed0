"""What differs each time although the same thing happened, and the words that stand for it in an outline."""

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
"""Fields whose values are chance. Which of a Job's pods is which counts as chance, too: all are alike."""

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
    """Takes out of one recording what every recording has of its own: UIDs and names with chance in them."""

    def __init__(self, take: Take) -> None:
        """Collects the names from the objects of a recording; its references speak of the same ones."""
        names = dict(_names(_objects(take)))
        # Longest first, so that none is found inside another one.
        ordered = sorted(names, key=lambda name: (-len(name), name))
        self._names = names
        self._pattern = re.compile("|".join(map(re.escape, ordered)) or r"(?!)")
        self._known: dict[str, str] = {}

    def text(self, text: str) -> str:
        """A text with words in place of what is chance."""
        if text not in self._known:
            self._known[text] = self._masked(text)
        return self._known[text]

    def _masked(self, text: str) -> str:
        for pattern, word in _PATTERNS:
            text = pattern.sub(word, text)
        return self._pattern.sub(lambda found: self._names[found[0]], text)

    def document(self, found: Any, field: str = "") -> Any:
        """A document likewise, as a copy."""
        if isinstance(found, dict):
            return {name: self.document(value, name) for name, value in found.items()}
        if isinstance(found, list):
            return [self.document(value) for value in found]
        if found is not None and field in _FIELDS:
            return _FIELDS[field]
        return self.text(found) if isinstance(found, str) else found


def _objects(take: Take) -> Iterator[Object]:
    for event in take.resource:
        yield event["data"]
    for moment in take.moments:
        yield from moment["items"]


def _names(objects: Iterable[Object]) -> Iterator[tuple[str, str]]:
    """Names with chance in them, and what stands for them.

    A pod's name ends in five random characters, behind its index; the names of a Job's Workload and of
    PodGroups end in what was made of a UID.
    """
    for found in objects:
        metadata = found["metadata"]
        name = metadata["name"]
        if found["kind"] == "Pod":
            pods = re.sub(r"-\d+-$", "-<index>", metadata["generateName"])
            yield name, f"{pods}-<random>"
            yield found["spec"].get("hostname") or name, pods
        owners: list[Object] = metadata.get("ownerReferences") or []
        controller: Object = next((one for one in owners if one.get("controller")), {})
        if found["kind"] == "Workload" and name != controller.get("name"):
            yield name, f"{controller.get('name')}-<hash>"
        if found["kind"] == "PodGroup" and controller:
            yield name, re.sub(r"[0-9a-f]{8}$", "<uid8>", name)
