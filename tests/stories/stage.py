"""A local stack from which a step is left out, with an opted-in namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3
import yaml

from muster.kustomize import CLUSTER
from muster.local.stack import Stack, StackOptions
from muster.local.stories.story import story_named
from muster.local.stories.watching import TimelineRecorder
from muster.objects.patches import PatchType
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, by_kind
from muster.policy.group_labels import GATE
from muster.replay.activity import Activity
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import muster_conditions

SECONDS = 20.0
TEAM = "team-a"


class LocalStage:
    """A local stack without one step, and actions and queries in its namespace."""

    def __init__(self, stack: Stack, recorder: TimelineRecorder, activities: list[Activity]) -> None:
        self.stack = stack
        self.recorder = recorder
        self.activities = activities

    def create(self, obj: Object, namespace: str = TEAM) -> Object:
        """Create an object, by default in the namespace TEAM."""
        resource = by_kind(obj["apiVersion"], obj["kind"])
        if resource.namespaced:
            obj = {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
        return self.stack.client.create(resource, obj, manager="kubectl")

    def create_job(self, **annotations: str) -> Object:
        """Create the Indexed Job of four pods of `muster run`, with these annotations on its pods."""
        (job,) = story_named("indexed-job").manifest
        job["spec"]["template"]["metadata"] = {"annotations": annotations}
        return self.create(job)

    def until(self, what: str, holds: Callable[[], Any]) -> None:
        """Wait until a condition holds; fail after SECONDS."""
        assert self.recorder.until(holds, SECONDS), what

    def all(self, kind: str, namespace: str = TEAM) -> Objects:
        """Return the existing objects of a kind."""
        return [obj for obj in self.recorder.objects(namespace) if obj["kind"] == kind]

    def reasons(self, step: str) -> set[str]:
        """Return the reasons of all decisions of a function so far."""
        return {activity.reason for activity in self.activities if activity.step == step}

    def bound(self, namespace: str = TEAM) -> int:
        """Return the number of pods with a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.all("Pod", namespace))

    def gated(self) -> int:
        """Return the number of pods with Muster's gate and the condition SchedulingGated."""
        return sum(
            {"name": GATE} in pod["spec"].get("schedulingGates", [])
            and any(
                condition["type"] == "PodScheduled" and condition["reason"] == "SchedulingGated"
                for condition in pod.get("status", {}).get("conditions", [])
            )
            for pod in self.all("Pod")
        )

    def says(self, kind: str) -> dict[str, Any]:
        """Return Muster's condition of this type on the Job; empty without it."""
        (job,) = self.all("Job")
        return next((condition for condition in muster_conditions(job) if condition["type"] == kind), {})

    def patch_runtime(self, name: str, change: Object) -> None:
        """Change a ClusterTrainingRuntime as a user."""
        self.stack.client.patch(
            CLUSTER_TRAINING_RUNTIMES, name, "", change, patch=PatchType.MERGE, manager="kubectl"
        )

    def sweep(self) -> None:
        """Send a sweep, and wait until every function has finished it."""
        event = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/test", "ce-type": "dev.muster.sweep"}
        before = len(self._swept())
        assert urllib3.request("POST", self.stack.broker_url, headers=event).status == 202
        steps = len({activity.step for activity in self.activities})
        self.until("every function has swept", lambda: len(self._swept()) >= before + max(1, steps))
        self.settle()

    def _swept(self) -> list[Activity]:
        return [
            activity for activity in self.activities if activity.trigger == "sweep" and not activity.about
        ]

    def settle(self) -> None:
        """Wait until every event was answered, including those that answers cause."""
        assert self.stack.settle(SECONDS)


@contextmanager
def without(step: str, folder: Path) -> Iterator[LocalStage]:
    """Run the local stack from an overlay that deletes one step."""
    with without_all_of({"name": f"(muster-)?{step}"}, folder) as stage:
        yield stage


@contextmanager
def without_all_of(target: dict[str, str], folder: Path) -> Iterator[LocalStage]:
    """Run the local stack from an overlay that deletes every object that a patch's target selects."""
    content = {
        "kind": "Kustomization",
        "resources": [str(CLUSTER)],
        "patches": [{"target": target, "patch": "$patch: delete"}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    activities: list[Activity] = []
    with (
        Stack(StackOptions(overlay=folder), activities.append) as stack,
        TimelineRecorder(stack.client) as recorder,
    ):
        stage = LocalStage(stack, recorder, activities)
        labels = {"muster.dev/gang-jobs": "enabled"}
        stage.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM, "labels": labels}})
        yield stage
