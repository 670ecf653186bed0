"""Each step can be left out or replaced, and this is what then happens; docs/composing.md says the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from eventing.local import outline
from eventing.local.manifests import CLUSTER
from eventing.local.stack import Options, Stack
from eventing.local.stories.catalogue import story_named
from eventing.local.watching import Recorder
from eventing.local.worlds import Object, Objects
from shared.objects.patches import PatchType
from shared.objects.resources import JOBS, POD_GROUPS, WORKLOADS, by_kind
from shared.policy.marks import GATE

SECONDS = 20.0
TEAM = "team-a"


class Stage:
    """The local stack without one step, and an opted-in namespace."""

    def __init__(self, stack: Stack, recorder: Recorder) -> None:
        self.stack = stack
        self.recorder = recorder

    def create(self, found: Object) -> Object:
        """Create one object in the namespace."""
        resource = by_kind(found["apiVersion"], found["kind"])
        if resource.plural != "namespaces":
            found = {**found, "metadata": {**found["metadata"], "namespace": TEAM}}
        return self.stack.client.create(resource, found, manager="kubectl")

    def create_job(self, **annotations: str) -> Object:
        """The Indexed Job of four pods that `muster run` shows."""
        (job,) = story_named("indexed-job").manifest
        job["spec"]["template"]["metadata"] = {"annotations": annotations}
        return self.create(job)

    def until(self, what: str, holds: Callable[[], Any]) -> None:
        """Wait until something holds."""
        assert self.recorder.until(holds, SECONDS), what

    def all(self, kind: str) -> Objects:
        """The objects of a kind that exist now."""
        return [one for one in self.recorder.objects(TEAM) if one["kind"] == kind]

    def bound(self) -> int:
        """How many pods have a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.all("Pod"))

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
        return next((one for one in outline.conditions_of(job) if one["type"] == kind), {})

    def settle(self) -> None:
        """Wait until every event so far was answered, also those that answers cause."""
        assert self.stack.settle(SECONDS)


@contextmanager
def without(step: str, folder: Path) -> Iterator[Stage]:
    """The overlay of a team that leaves a step out, running."""
    content = {
        "kind": "Kustomization",
        "resources": [str(CLUSTER)],
        "patches": [{"target": {"name": f"(muster-)?{step}"}, "patch": "$patch: delete"}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    with Stack(Options(overlay=folder)) as stack, Recorder(stack.client) as recorder:
        stage = Stage(stack, recorder)
        labels = {"muster.dev/gang-jobs": "enabled"}
        stage.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM, "labels": labels}})
        yield stage


def test_without_emit_conditions_everything_is_placed(tmp_path: Path) -> None:
    """Nobody tells the owner, and nothing waits for that."""
    with without("emit-conditions", tmp_path) as stage:
        stage.create_job()
        stage.until("all pods are bound", lambda: stage.bound() == 4)
        stage.settle()
        assert stage.says("PodGroupsScheduled") == {}


def test_without_patch_pods_the_pods_stay_gated_and_say_so(tmp_path: Path) -> None:
    """The groups are made; pods and owner name the gate. Pods born without the gate need no patch_pods."""
    with without("patch-pods", tmp_path) as stage:
        stage.create_job()
        stage.until("all pods are gated", lambda: stage.gated() == 4)
        stage.until("the PodGroup is there", lambda: stage.all("PodGroup"))
        stage.until(
            "the Job says so",
            lambda: stage.says("PodGroupsScheduled").get("reason") == "SchedulingGated",
        )
        stage.stack.client.delete(JOBS, "sweep", TEAM)
        stage.until("its pods are gone", lambda: not stage.all("Pod"))
        stage.create_job(**{"muster.dev/gate": "off"})
        stage.until("all pods are bound", lambda: stage.bound() == 4)


def test_without_create_workload_a_users_own_workload_is_made_real(tmp_path: Path) -> None:
    """Pods wait at the gate and the Job says for what, until somebody makes a Workload that names the Job."""
    with without("create-workload", tmp_path) as stage:
        job = stage.create_job()
        stage.until("all pods are gated", lambda: stage.gated() == 4)
        stage.settle()
        assert stage.all("Workload") == stage.all("PodGroup") == []
        template = {"name": "main", "schedulingPolicy": {"gang": {"minCount": 4}}}
        named = {"apiGroup": "batch", "kind": "Job", "name": job["metadata"]["name"]}
        spec = {"controllerRef": named, "podGroupTemplates": [template]}
        stage.create(
            {
                "apiVersion": WORKLOADS.api_version,
                "kind": "Workload",
                "metadata": {"name": "my-own"},
                "spec": spec,
            }
        )
        stage.until("all pods are bound", lambda: stage.bound() == 4)


def test_without_create_pod_groups_anybody_may_make_them(tmp_path: Path) -> None:
    """A PodGroup of the name that the pods were born with lets them go, whoever makes it."""
    with without("create-pod-groups", tmp_path) as stage:
        stage.create_job()
        stage.until("all pods are gated", lambda: stage.gated() == 4)
        stage.until("the Workload is there", lambda: stage.all("Workload"))
        stage.settle()
        assert stage.all("PodGroup") == []
        name = stage.all("Pod")[0]["spec"]["schedulingGroup"]["podGroupName"]
        spec = {"schedulingPolicy": {"gang": {"minCount": 4}}}
        stage.create(
            {
                "apiVersion": POD_GROUPS.api_version,
                "kind": "PodGroup",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
        stage.until("all pods are bound", lambda: stage.bound() == 4)


def test_without_resize_gang_min_count_stays(tmp_path: Path) -> None:
    """A Job that shrinks goes on running; its group keeps the size that it began with."""
    with without("resize-gang", tmp_path) as stage:
        stage.create_job()
        stage.until("all pods are bound", lambda: stage.bound() == 4)
        size = {"spec": {"parallelism": 2, "completions": 2}}
        stage.stack.client.patch(JOBS, "sweep", TEAM, size, patch=PatchType.MERGE, manager="kubectl")
        stage.until("two pods are left", lambda: len(stage.all("Pod")) == 2)
        stage.settle()
        (group,) = stage.all("PodGroup")
        assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 4


def test_without_mark_runtime_a_label_on_the_namespace_does(tmp_path: Path) -> None:
    """A TrainJob is grouped by mark-jobs alone."""
    with without("mark-runtime", tmp_path) as stage:
        for found in story_named("torch").manifest:
            stage.create(found)
        stage.until("all pods are bound", lambda: stage.bound() == 3)
        assert len(stage.all("PodGroup")) == 1


@pytest.mark.parametrize("step", ["create-workload"])
def test_a_step_left_out_is_left_out_whole(tmp_path: Path, step: str) -> None:
    """Nothing of it runs: these tests would prove nothing otherwise."""
    with without(step, tmp_path) as stage:
        stage.create_job()
        stage.until("all pods are gated", lambda: stage.gated() == 4)
        stage.settle()
        managers = {
            one.get("manager")
            for found in stage.recorder.objects(TEAM)
            for one in found["metadata"].get("managedFields", [])
        }
        assert f"muster-{step}" not in managers
