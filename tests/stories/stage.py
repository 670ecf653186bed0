"""The local stack without one of its parts, and a namespace to try it in."""

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


class Stage:
    """The local stack without one step, and an opted-in namespace."""

    def __init__(self, stack: Stack, recorder: TimelineRecorder, activities: list[Activity]) -> None:
        self.stack = stack
        self.recorder = recorder
        self.activities = activities

    def create(self, found: Object, namespace: str = TEAM) -> Object:
        """Create one object in the namespace, or in another."""
        resource = by_kind(found["apiVersion"], found["kind"])
        if resource.namespaced:
            found = {**found, "metadata": {**found["metadata"], "namespace": namespace}}
        return self.stack.client.create(resource, found, manager="kubectl")

    def create_job(self, **annotations: str) -> Object:
        """The Indexed Job of four pods that `muster run` shows."""
        (job,) = story_named("indexed-job").manifest
        job["spec"]["template"]["metadata"] = {"annotations": annotations}
        return self.create(job)

    def until(self, what: str, holds: Callable[[], Any]) -> None:
        """Wait until something holds."""
        assert self.recorder.until(holds, SECONDS), what

    def all(self, kind: str, namespace: str = TEAM) -> Objects:
        """The objects of a kind that exist now."""
        return [one for one in self.recorder.objects(namespace) if one["kind"] == kind]

    def reasons(self, step: str) -> set[str]:
        """Every reason that a function has given so far."""
        return {one.reason for one in self.activities if one.step == step}

    def bound(self, namespace: str = TEAM) -> int:
        """How many pods have a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.all("Pod", namespace))

    def gated(self) -> int:
        """How many pods have Muster's gate, and say so by their own condition."""
        return sum(
            {"name": GATE} in pod["spec"].get("schedulingGates", [])
            and any(
                one["type"] == "PodScheduled" and one["reason"] == "SchedulingGated"
                for one in pod.get("status", {}).get("conditions", [])
            )
            for pod in self.all("Pod")
        )

    def says(self, kind: str) -> dict[str, Any]:
        """Muster's condition of that kind on the Job."""
        (job,) = self.all("Job")
        return next((one for one in muster_conditions(job) if one["type"] == kind), {})

    def patch_runtime(self, name: str, change: Object) -> None:
        """Change a ClusterTrainingRuntime as a person would."""
        self.stack.client.patch(
            CLUSTER_TRAINING_RUNTIMES, name, "", change, patch=PatchType.MERGE, manager="kubectl"
        )

    def sweep(self) -> None:
        """Let every function look at everything, and wait until they have."""
        event = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/test", "ce-type": "dev.muster.sweep"}
        before = len(self._swept())
        assert urllib3.request("POST", self.stack.broker_url, headers=event).status == 202
        steps = len({one.step for one in self.activities})
        self.until("every function has swept", lambda: len(self._swept()) >= before + max(1, steps))
        self.settle()

    def _swept(self) -> list[Activity]:
        return [one for one in self.activities if one.trigger == "sweep" and not one.about]

    def settle(self) -> None:
        """Wait until every event so far was answered, also those that answers cause."""
        assert self.stack.settle(SECONDS)


@contextmanager
def without(step: str, folder: Path) -> Iterator[Stage]:
    """The overlay of a team that leaves a step out, running."""
    with without_all_of({"name": f"(muster-)?{step}"}, folder) as stage:
        yield stage


@contextmanager
def without_all_of(target: dict[str, str], folder: Path) -> Iterator[Stage]:
    """The overlay of a team that leaves out whatever a patch's target names, running."""
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
        stage = Stage(stack, recorder, activities)
        labels = {"muster.dev/gang-jobs": "enabled"}
        stage.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM, "labels": labels}})
        yield stage
