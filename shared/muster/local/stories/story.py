"""The stories of `muster run`: what a user does, what has to happen, and the checks of what happened."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.cluster.http.client import Client
from muster.cluster.interface import PatchType
from muster.local.stories.laws import LAWS
from muster.local.stories.watching import Entry, TimelineRecorder
from muster.objects import yaml_files
from muster.objects.resources import NAMESPACES, PODS, by_kind
from muster.objects.text import counted
from muster.policy.group_labels import GROUP, NAMESPACE_SWITCH
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import group_of, is_gated, muster_conditions
from muster.simulator.controllers import node
from muster.simulator.controllers.kubelet import COMPLETE_DELAY

USER = "muster-story"
"""Field manager of what the user of a story writes."""
TIMEOUT_SECONDS = 10.0
"""How long an expected state may take; most take less than half a second."""

Groups = Mapping[str, int]
"""Pods by group: the minCount of a gang; 0 for a basic group."""


@dataclass(frozen=True)
class Check:
    """What had to happen, whether it did, and what happened instead."""

    description: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class LocalStory:
    """A story: what a user does, and what has to happen.

    Its name is that of its namespace too, and of the file with its objects. The script does what the user
    does, and waits for what has to happen.
    """

    name: str
    title: str
    groups: Groups
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


def opted_in(namespace: str) -> Object:
    """Return a new namespace, in which Jobs are grouped."""
    metadata = {"name": namespace, "labels": {NAMESPACE_SWITCH: "enabled"}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


class StoryEndedError(Exception):
    """An expected state was not reached, so the rest of the story is skipped."""


@dataclass
class StoryRun:
    """One run of a story, with the checks so far; `ended` is 0 while it runs."""

    story: LocalStory
    client: Client
    recorder: TimelineRecorder
    checks: list[Check] = field(default_factory=list)
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
        self.create(opted_in(self.story.namespace))
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

    def until(self, description: str, condition: Callable[[], Any]) -> None:
        """Wait until a condition is true; end the story if it is not in time."""
        passed = self.recorder.until(condition, TIMEOUT_SECONDS)
        self.checks.append(Check(description, passed, "" if passed else f"not within {TIMEOUT_SECONDS:g} s"))
        if not passed:
            raise StoryEndedError

    def until_scheduled(self) -> None:
        """Wait until every group has all its pods, all are bound, and the owner's conditions say so."""
        sizes = self.story.groups.items()
        self.until(
            "all pods of every group are bound",
            lambda: all(self.bound(group) >= max(1, size) for group, size in sizes),
        )
        self.until(
            "the owner's condition says that all groups are scheduled",
            lambda: (
                self.has_condition("PodGroupsReady", "True", "PodGroupsExist")
                and self.has_condition("PodGroupsScheduled", "True", "Scheduled")
            ),
        )

    def pods(self, group: str) -> Objects:
        """Return the pods of a group of the story."""
        return [body for body in self.objects if body["kind"] == "Pod" and _label_of(body) == group]

    def complete(self, group: str) -> None:
        """Let the simulated kubelets end the pods of a group with success."""
        ended = {"metadata": {"annotations": {COMPLETE_DELAY: "0s"}}}
        for pod in self.pods(group):
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            self.client.patch(PODS, name, namespace, ended, patch=PatchType.MERGE, manager=USER)

    def bound(self, group: str) -> int:
        """Return how many pods of a group are bound to a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.pods(group))

    def has_condition(self, kind: str, status: str, reason: str) -> bool:
        """Whether the owner has a condition of Muster with this type, status and reason."""
        conditions = [condition for body in self.objects for condition in muster_conditions(body)]
        return (kind, status, reason) in {(one["type"], one["status"], one["reason"]) for one in conditions}


def check_timeline(history: Sequence[Entry], groups: Groups) -> list[Check]:
    """Return a check for each law of stories and each expectation, on the changes of one story."""
    by_laws = [_check(law.__doc__, law(history)) for law in LAWS]
    return by_laws + [_check(expected.__doc__, expected(history, groups)) for expected in EXPECTATIONS]


def _check(text: str | None, violations: Iterable[str]) -> Check:
    detail = "; ".join(violations)
    return Check(str(text).partition("\n")[0].rstrip("."), not detail, detail)


def stamped_at_birth(history: Sequence[Entry], groups: Groups) -> Iterator[str]:
    """Every pod is created with the name of its group, one of each group with Muster's gate."""
    created = [entry for entry in history if entry.kind == "Pod" and entry.change == "ADDED"]
    if len(created) < sum(max(1, size) for size in groups.values()):
        yield f"only {counted(len(created), 'pod')} came"
    yield from (f"pod {one.name} was created without group" for one in created if not group_of(one.object))
    held = {group_of(entry.object) for entry in created if is_gated(entry.object)}
    for group in sorted({group_of(entry.object) for entry in created} - held):
        yield f"no pod of PodGroup {group} was created with the gate"


def groups_as_asked(history: Sequence[Entry], groups: Groups) -> Iterator[str]:
    """The PodGroups of one Workload have the groups and minCounts of the story."""
    workloads = {entry.name for entry in history if entry.kind == "Workload"}
    if len(workloads) != 1:
        yield f"{len(workloads)} Workloads"
    latest = {entry.name: entry.object for entry in history if entry.kind == "PodGroup"}.values()
    made = {
        spec["workloadRef"]["templateName"]: (spec["schedulingPolicy"].get("gang") or {}).get("minCount", 0)
        for spec in (group["spec"] for group in latest)
    }
    if made != groups:
        yield f"the PodGroups are {made}"


def spec_untouched(history: Sequence[Entry], groups: Groups) -> Iterator[str]:  # noqa: ARG001 - an expectation
    """Nobody changes the spec of the object that the user created."""
    created = next(entry for entry in history if not entry.object["metadata"].get("ownerReferences"))
    same = [entry for entry in history if (entry.kind, entry.name) == (created.kind, created.name)]
    if any(entry.object["spec"] != created.object["spec"] for entry in same):
        yield f"the spec of {created.kind} {created.name} changed"


EXPECTATIONS = (stamped_at_birth, groups_as_asked, spec_untouched)


def _label_of(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(GROUP, ""))


def _runs(run: StoryRun) -> None:
    """Create an owner; its pods run together."""
    run.create_manifest()
    run.until_scheduled()


def _runs_after_initializers(run: StoryRun) -> None:
    """Create a TrainJob with initializers; the trainer's PodGroup exists long before its pods."""
    run.create_manifest()
    initializers = ("dataset-initializer", "model-initializer")
    run.until(
        "the initializers are bound while the trainer has no pods",
        lambda: all(map(run.bound, initializers)) and not run.pods("trainer"),
    )
    run.until(
        "the owner's condition says that it waits for the trainer's pods",
        lambda: run.has_condition("PodGroupsScheduled", "False", "WaitingForPods"),
    )
    for group in initializers:
        run.complete(group)
    run.until_scheduled()


def _runs_once_there_is_room(run: StoryRun) -> None:
    """Create four pods on three nodes with room for one each; none is bound until there is a fourth node."""
    run.create_manifest()
    run.until(
        "the owner's condition says that there is no room, and no pod is bound",
        lambda: run.has_condition("PodGroupsScheduled", "False", "Unschedulable") and not run.bound("main"),
    )
    run.create(node("node-4", cpu="8", memory="32Gi", gpu=4))
    run.until_scheduled()


STORIES = {
    story.name: story
    for story in (
        LocalStory("torch", "a torch TrainJob of three nodes", {"trainer": 3}, _runs),
        LocalStory(
            "torchtune",
            "a torchtune TrainJob whose initializers run first",
            {"dataset-initializer": 0, "model-initializer": 0, "trainer": 2},
            _runs_after_initializers,
        ),
        LocalStory(
            "mpi",
            "an MPI TrainJob: a launcher and two more nodes",
            {"launcher": 1, "trainer": 2},
            _runs,
        ),
        LocalStory("indexed-job", "a plain Indexed Job of four pods", {"main": 4}, _runs),
        LocalStory(
            "does-not-fit",
            "a gang that does not fit, until it does",
            {"main": 4},
            _runs_once_there_is_room,
        ),
    )
}
