"""What a story can do and ask for, and how it is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster import yaml_files
from muster.cluster.client import Client
from muster.local.stories import rules
from muster.local.stories.rules import Check
from muster.local.stories.watching import Recorder
from muster.objects.resources import NAMESPACES, by_kind
from muster.replay import summary as outline
from muster.replay.snapshots import Object, Objects

USER = "muster-story"
PATIENCE = 10.0
"""Seconds that one expectation may take; most take less than half of one."""


@dataclass(frozen=True)
class Story:
    """One story.

    Attributes:
        name: also of its file of objects.
        title: what it shows.
        owner: kind and name of what the user creates.
        groups: its groups: the minCount of a gang, 0 for a basic group.
        tell: does what the user does, and waits for what has to happen.
        namespace: where it happens; see `place`.
    """

    name: str
    title: str
    owner: tuple[str, str]
    groups: Mapping[str, int]
    tell: Callable[[Scene], None]
    namespace: str = ""

    @property
    def place(self) -> str:
        """The namespace it happens in: named after it where no other is given."""
        return self.namespace or self.name

    @property
    def manifest(self) -> Objects:
        """What the user creates."""
        text = (Path(__file__).parent / f"{self.name}.yaml").read_text()
        return yaml_files.load_all(text)


class StoryEndedError(Exception):
    """Something that had to happen did not, so what comes after it makes no sense."""


@dataclass
class Scene:
    """One telling of a story.

    Attributes:
        story: which.
        client: a client of the API server.
        recorder: sees everything that happens.
        checks: what was expected so far, and whether it held.
        begun: seconds since the epoch.
        ended: likewise; 0 while it is being told.
    """

    story: Story
    client: Client
    recorder: Recorder
    checks: list[Check] = field(default_factory=list)
    begun: float = field(default_factory=time.time)
    ended: float = 0.0

    @property
    def held(self) -> bool:
        """Whether everything that was expected held."""
        return bool(self.checks) and all(check.held for check in self.checks)

    @property
    def objects(self) -> Objects:
        """The objects of the story as they are now."""
        return self.recorder.objects(self.story.place)

    def play(self) -> bool:
        """Tell the story, then look at all that was seen; whether everything held."""
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": self.story.place, "labels": {"muster.dev/gang-jobs": "enabled"}},
            }
        )
        try:
            self.story.tell(self)
        except StoryEndedError:
            pass
        else:
            self.checks += rules.checks(self.recorder.history(self.story.place), self.story.groups)
        self.ended = time.time()
        return self.held

    def create(self, found: Object) -> None:
        """What `kubectl create` does."""
        resource = by_kind(found["apiVersion"], found["kind"])
        if resource != NAMESPACES and resource.namespaced:
            found = {**found, "metadata": {**found["metadata"], "namespace": self.story.place}}
        self.client.create(resource, found, manager=USER)

    def create_manifest(self) -> None:
        """Create what the story's file holds."""
        for found in self.story.manifest:
            self.create(found)

    def until(self, sentence: str, holds: Callable[[], Any], seconds: float = PATIENCE) -> None:
        """Wait until something holds.

        Raises:
            StoryEndedError: it did not in time.
        """
        held = self.recorder.until(holds, seconds)
        self.checks.append(Check(sentence, held, "" if held else f"not within {seconds:g} s"))
        if not held:
            raise StoryEndedError

    def expect(self, sentence: str, held: object, detail: str = "") -> None:
        """Note whether something holds now."""
        self.checks.append(Check(sentence, bool(held), "" if held else detail))

    def pods(self, group: str = "") -> Objects:
        """The pods of the story, or of one of its groups."""
        marked = [one for one in self.objects if one["kind"] == "Pod" and outline.group_of(one)]
        return [one for one in marked if not group or rules.group_label(one) == group]

    def bound(self, group: str) -> int:
        """How many pods of a group have a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.pods(group))

    def all_bound(self) -> bool:
        """Whether every group has all its pods, and each pod a node."""
        return all(self.bound(group) >= max(1, size) for group, size in self.story.groups.items())

    def says(self, kind: str, status: str, reason: str) -> bool:
        """Whether the owner has a condition of Muster's with that status and reason."""
        wanted = (kind, status, reason)
        owner = next((one for one in self.objects if _named(one) == self.story.owner), None)
        told = outline.conditions_of(owner) if owner else []
        return any((one["type"], one["status"], one["reason"]) == wanted for one in told)

    def told(self) -> bool:
        """Whether the owner says that its groups exist and all its pods are placed."""
        return self.says("PodGroupsReady", "True", "PodGroupsExist") and self.says(
            "PodGroupsScheduled", "True", "Scheduled"
        )


def _named(found: Object) -> tuple[str, str]:
    return found["kind"], found["metadata"]["name"]
