"""A local stack from which a step is left out, with an opted-in namespace."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from muster.local.stories.story import story_named
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES
from muster.policy.group_labels import GATE
from muster.policy.model import PatchType
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import muster_conditions
from muster.simulator.overlays import CLUSTER
from muster.testing import RunningStack

TEAM = "team-a"


class LocalStage(RunningStack):
    """A local stack, and actions and queries in its namespace TEAM."""

    def create(self, body: Object, namespace: str = TEAM) -> Object:
        """Create an object, by default in the namespace TEAM."""
        return super().create(body, namespace)

    def create_job(self, **annotations: str) -> Object:
        """Create the Indexed Job of four pods of `muster run`, with these annotations on its pods."""
        (job,) = story_named("indexed-job").manifest
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


DELETE = "{$patch: delete, apiVersion: v1, kind: Any, metadata: {name: any}}"
"""A patch of kustomize; its target says what is deleted."""


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
        "resources": ["cluster.yaml"],
        "patches": [{"target": target, "patch": DELETE}],
    }
    shutil.copy(CLUSTER, folder / "cluster.yaml")
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    with LocalStage(folder) as stage:
        stage.create_namespace(TEAM)
        yield stage
