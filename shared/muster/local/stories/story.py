"""The stories of `muster run`, what a story can do and wait for, and how it is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.cluster.http.client import Client
from muster.cluster.interface import PatchType
from muster.local.stories.checks import Check, check_timeline, group_label
from muster.local.stories.watching import TimelineRecorder
from muster.objects import yaml_files
from muster.objects.resources import NAMESPACES, PODS, by_kind
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import group_of, muster_conditions
from muster.simulator.controllers import node
from muster.simulator.controllers.kubelet import COMPLETE_DELAY

USER = "muster-story"
"""Field manager of what the user of a story writes."""
TIMEOUT_SECONDS = 10.0
"""How long an expected state may take; most take less than half a second."""

_PAUSES = 10
"""Pauses between an object and the last event that follows from it, at most."""


@dataclass(frozen=True)
class LocalStory:
    """A story: what a user does, and what has to happen.

    Attributes:
        name: of the story, of its namespace, and of the file with its objects.
        title: one line for people.
        owner: kind and name of the object that the user creates.
        groups: the expected minCount by group; 0 for a basic group.
        script: does what the user does, and waits for what has to happen.
    """

    name: str
    title: str
    owner: tuple[str, str]
    groups: Mapping[str, int]
    script: Callable[[StoryRun], None]
    own_namespace: str = ""

    @property
    def namespace(self) -> str:
        """The namespace in which it happens."""
        return self.own_namespace or self.name

    @property
    def manifest(self) -> Objects:
        """The objects that the user creates."""
        text = (Path(__file__).parent / f"{self.name}.yaml").read_text()
        return yaml_files.load_all(text)


class StoryEndedError(Exception):
    """An expected state was not reached, so the rest of the story is skipped."""


@dataclass
class StoryRun:
    """One run of a story, with the checks so far; `ended` is 0 while it runs.

    It waits `pause_seconds` after each expected state, so that a person can look.
    """

    story: LocalStory
    client: Client
    recorder: TimelineRecorder
    checks: list[Check] = field(default_factory=list)
    pause_seconds: float = 0.0
    began: float = field(default_factory=time.time)
    ended: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether there were checks and all of them passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def objects(self) -> Objects:
        """The objects of the story as they are now."""
        return self.recorder.objects(self.story.namespace)

    def run(self) -> bool:
        """Run the script, then check the timeline; return whether all checks passed."""
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": self.story.namespace, "labels": {"muster.dev/gang-jobs": "enabled"}},
            }
        )
        try:
            self.story.script(self)
        except StoryEndedError:
            pass
        else:
            history = self.recorder.history(self.story.namespace)
            self.checks += check_timeline(history, self.story.groups)
        self.ended = time.time()
        return self.passed

    def create(self, body: Object) -> None:
        """Create an object in the story's namespace, as `kubectl create` does."""
        resource = by_kind(body["apiVersion"], body["kind"])
        if resource != NAMESPACES and resource.namespaced:
            body = {**body, "metadata": {**body["metadata"], "namespace": self.story.namespace}}
        self.client.create(resource, body, manager=USER)

    def create_manifest(self) -> None:
        """Create the objects of the story's file."""
        for body in self.story.manifest:
            self.create(body)

    def until(self, description: str, condition: Callable[[], Any], seconds: float = TIMEOUT_SECONDS) -> None:
        """Wait until a condition is true.

        Raises:
            StoryEndedError: it was not in time.
        """
        seconds += self.pause_seconds * _PAUSES
        passed = self.recorder.until(condition, seconds)
        self.checks.append(Check(description, passed, "" if passed else f"not within {seconds:g} s"))
        if not passed:
            raise StoryEndedError
        time.sleep(self.pause_seconds)

    def expect(self, description: str, passed: object, detail: str = "") -> None:
        """Add a check of the present state."""
        self.checks.append(Check(description, bool(passed), "" if passed else detail))

    def pods(self, group: str = "") -> Objects:
        """Return the grouped pods of the story, or of one of its groups."""
        grouped = [body for body in self.objects if body["kind"] == "Pod" and group_of(body)]
        return [pod for pod in grouped if not group or group_label(pod) == group]

    def complete(self, group: str) -> None:
        """Let the simulated kubelets end the pods of a group with success."""
        ended = {"metadata": {"annotations": {COMPLETE_DELAY: "0s"}}}
        for pod in self.pods(group):
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            self.client.patch(PODS, name, namespace, ended, patch=PatchType.MERGE, manager=USER)

    def bound(self, group: str) -> int:
        """Return how many pods of a group are bound to a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.pods(group))

    def all_bound(self) -> bool:
        """Whether every group has all its pods, and all of them are bound."""
        return all(self.bound(group) >= max(1, size) for group, size in self.story.groups.items())

    def has_condition(self, kind: str, status: str, reason: str) -> bool:
        """Whether the owner has a condition of Muster with this type, status and reason."""
        expected = (kind, status, reason)
        owner = next((body for body in self.objects if _kind_and_name(body) == self.story.owner), None)
        conditions = muster_conditions(owner) if owner else []
        return any((entry["type"], entry["status"], entry["reason"]) == expected for entry in conditions)

    def is_scheduled(self) -> bool:
        """Whether the owner's conditions say that its groups exist and all its pods are scheduled."""
        return self.has_condition("PodGroupsReady", "True", "PodGroupsExist") and self.has_condition(
            "PodGroupsScheduled", "True", "Scheduled"
        )


def _kind_and_name(body: Object) -> tuple[str, str]:
    return body["kind"], body["metadata"]["name"]


def _runs(run: StoryRun) -> None:
    """Create an owner; its pods run together."""
    run.create_manifest()
    run.until("all pods of every group are bound", run.all_bound)
    run.until("the owner's condition says that all groups are scheduled", run.is_scheduled)


def _runs_after_initializers(run: StoryRun) -> None:
    """Create a TrainJob with initializers; the trainer's PodGroup exists long before its pods."""
    run.create_manifest()
    run.until(
        "the initializers are bound while the trainer has no pods",
        lambda: (
            run.bound("dataset-initializer") and run.bound("model-initializer") and not run.pods("trainer")
        ),
    )
    run.until(
        "the owner's condition says that it waits for the trainer's pods",
        lambda: run.has_condition("PodGroupsScheduled", "False", "WaitingForPods"),
    )
    run.complete("dataset-initializer")
    run.complete("model-initializer")
    run.until("all pods of the trainer are bound", run.all_bound)
    run.until("the owner's condition says that all groups are scheduled", run.is_scheduled)


def _runs_once_there_is_room(run: StoryRun) -> None:
    """Create four pods on three nodes with room for one each; none is bound until there is a fourth node."""
    run.create_manifest()
    run.until(
        "the owner's condition says that there is no room",
        lambda: run.has_condition("PodGroupsScheduled", "False", "Unschedulable"),
    )
    run.expect("no pod is bound while there is no room for all", run.bound("main") == 0)
    run.create(node("node-4", cpu="8", memory="32Gi", gpu=4))
    run.until("with a fourth node all pods are bound", run.all_bound)
    run.until("the owner's condition says that all groups are scheduled", run.is_scheduled)


STORIES = (
    LocalStory("torch", "a torch TrainJob of three nodes", ("TrainJob", "llama"), {"trainer": 3}, _runs),
    LocalStory(
        "torchtune",
        "a torchtune TrainJob whose initializers run first",
        ("TrainJob", "qwen"),
        {"dataset-initializer": 0, "model-initializer": 0, "trainer": 2},
        _runs_after_initializers,
    ),
    LocalStory(
        "mpi",
        "an MPI TrainJob: a launcher and two more nodes",
        ("TrainJob", "deepspeed"),
        {"launcher": 1, "node": 2},
        _runs,
    ),
    LocalStory("indexed-job", "a plain Indexed Job of four pods", ("Job", "sweep"), {"main": 4}, _runs),
    LocalStory(
        "does-not-fit",
        "a gang that does not fit, until it does",
        ("Job", "big"),
        {"main": 4},
        _runs_once_there_is_room,
    ),
)


def story_named(name: str) -> LocalStory:
    """Return a story.

    Raises:
        LookupError: there is no such story; the message lists the names.
    """
    story = next((story for story in STORIES if story.name == name), None)
    if story is None:
        names = ", ".join(story.name for story in STORIES)
        raise LookupError(f"no story {name!r}; known: {names}")
    return story
