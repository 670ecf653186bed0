"""A local stack from which a step is left out, with an opted-in namespace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from muster.local.stories.story import STORIES
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES
from muster.policy.group_labels import GATE
from muster.policy.model import PatchType
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import muster_conditions
from muster.simulator.overlays import Manifest, load
from muster.testing import RunningStack

TEAM = "team-a"


class LocalStage(RunningStack):
    """A local stack, and actions and queries in its namespace TEAM."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.create_namespace(TEAM)
        return self

    def create(self, body: Object, namespace: str = TEAM) -> Object:
        """Create an object, by default in the namespace TEAM."""
        return super().create(body, namespace)

    def create_job(self, **annotations: str) -> Object:
        """Create the Indexed Job of four pods of `muster run`, with these annotations on its pods."""
        (job,) = STORIES["indexed-job"].manifest
        job["spec"]["template"]["metadata"] = {"annotations": annotations}
        return self.create(job)

    def all(self, kind: str, namespace: str = TEAM) -> Objects:
        """Return the existing objects of a kind, by default in the namespace TEAM."""
        return super().all(kind, namespace)

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
        self.client.patch(
            CLUSTER_TRAINING_RUNTIMES, name, "", change, patch=PatchType.MERGE, manager="kubectl"
        )


def without(step: str, folder: Path) -> LocalStage:
    """Return the local stack of an overlay without the objects of one step."""
    return without_all(lambda each: each["metadata"]["name"].removeprefix("muster-") == step, folder)


def without_all(left_out: Callable[[Manifest], bool], folder: Path) -> LocalStage:
    """Return the local stack of an overlay without some objects."""
    return LocalStage(written([each for each in load() if not left_out(each)], folder))


def written(objects: list[Manifest], folder: Path) -> Path:
    """Write manifests to a file in a folder, and return its path."""
    path = folder / "cluster.yaml"
    path.write_text("\n---\n".join(map(json.dumps, objects)))
    return path
