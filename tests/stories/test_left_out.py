"""What happens without each of the steps, as docs/composing.md describes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.local.stories.story import STORIES
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    EVENTS,
    JOBS,
    POD_GROUPS,
    PODS,
    WORKLOADS,
    Resource,
)
from muster.policy.model import PatchType
from muster.replay.snapshots import Object
from muster.simulator.controllers import node
from tests.stories.stage import TEAM, without, without_all

pytestmark = pytest.mark.usefixtures("in_process")


def of_kind(resource: Resource, name: str, spec: Object) -> Object:
    """An object as a user writes it."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def test_without_emit_conditions_only_the_groups_themselves_say_that_they_wait(tmp_path: Path) -> None:
    """The owner has no condition and no Event of Muster's; once there is room, everything is placed."""
    with without("emit-conditions", tmp_path) as stage:
        (big,) = STORIES["does-not-fit"].manifest
        stage.create(big)
        stage.until(
            "the PodGroup says so",
            lambda: (
                [
                    (condition["status"], condition["reason"])
                    for group in stage.all("PodGroup")
                    for condition in group.get("status", {}).get("conditions", [])
                ]
                == [("False", "Unschedulable")]
            ),
        )
        stage.create(node("node-4", cpu="8", memory="32Gi", gpu=4))
        stage.until("all pods are bound", lambda: stage.bound() == 4)
        stage.settle()
        assert stage.says("PodGroupsReady") == stage.says("PodGroupsScheduled") == {}
        assert [event for event in stage.stack.client.list(EVENTS, TEAM) if "muster" in str(event)] == []


def test_without_gather_pods_pods_of_other_controllers_stay_gated(tmp_path: Path) -> None:
    """Those with the label muster.dev/min-count; those without it run."""
    with without("gather-pods", tmp_path) as stage:
        pod = of_kind(PODS, "alone", {"containers": [{"name": "main", "image": "example.com/train"}]})
        pod["metadata"]["labels"] = {"muster.dev/min-count": "1", "muster.dev/gang": "alone"}
        stage.create(pod)
        stage.create({**pod, "metadata": {"name": "plain"}})
        stage.until("one runs", lambda: stage.bound() == 1)
        stage.sweep()
        stage.settle()
        assert (stage.gated(), stage.bound(), stage.all("PodGroup")) == (1, 1, [])


def test_without_patch_pods_the_pods_stay_gated_and_say_so(tmp_path: Path) -> None:
    """Groups are created; pods and owner show the gate. Pods without the gate do not need patch_pods."""
    with without("patch-pods", tmp_path) as stage:
        stage.create_job()
        stage.until("a pod is gated", lambda: stage.gated() == 1)
        stage.until("the PodGroup is there", lambda: stage.all("PodGroup"))
        stage.sweep()
        stage.until(
            "the Job says so",
            lambda: stage.says("PodGroupsScheduled").get("reason") == "SchedulingGated",
        )
        stage.stack.client.delete(JOBS, "sweep", TEAM)
        stage.until("its pods are gone", lambda: not stage.all("Pod"))
        stage.create_job(**{"muster.dev/gate": "off"})
        stage.until("all pods are bound", lambda: stage.bound() == 4)


def test_without_create_workload_a_users_own_workload_is_made_real(tmp_path: Path) -> None:
    """Pods stay gated, and the Job's condition says why, until a user creates a Workload for the Job."""
    with without("create-workload", tmp_path) as stage:
        job = stage.create_job()
        stage.until("a pod is gated", lambda: stage.gated() == 1)
        stage.settle()
        assert stage.all("Workload") == stage.all("PodGroup") == []
        template = {"name": "main", "schedulingPolicy": {"gang": {"minCount": 4}}}
        named = {"apiGroup": "batch", "kind": "Job", "name": job["metadata"]["name"]}
        spec = {"controllerRef": named, "podGroupTemplates": [template]}
        stage.create(of_kind(WORKLOADS, "my-own", spec))
        stage.until("all pods are bound", lambda: stage.bound() == 4)


def test_without_create_workload_there_are_no_fallback_groups_and_leftovers_stay(tmp_path: Path) -> None:
    """A Job with a broken policy stays gated, and a Workload whose owner is gone stays."""
    with without("create-workload", tmp_path) as stage:
        (job,) = STORIES["indexed-job"].manifest
        job["metadata"]["annotations"] = {"muster.dev/pod-group-policy": "workload: {}\nno: such field"}
        stage.create(job)
        spec = {"podGroupTemplates": [{"name": "main", "schedulingPolicy": {"basic": {}}}]}
        left = of_kind(WORKLOADS, "left", spec)
        left["metadata"]["labels"] = {
            "app.kubernetes.io/managed-by": "muster",
            "muster.dev/owner-uid": "00000000-0000-4000-8000-000000000000",
        }
        stage.create(left)
        stage.until("a pod is gated", lambda: stage.gated() == 1)
        stage.sweep()
        assert stage.all("PodGroup") == []
        assert stage.gated() == 1
        assert [workload["metadata"]["name"] for workload in stage.all("Workload")] == ["left"]


def test_without_create_pod_groups_users_may_create_them(tmp_path: Path) -> None:
    """The gate is lifted when a PodGroup of the stamped name exists, whichever client creates it."""
    with without("create-pod-groups", tmp_path) as stage:
        stage.create_job()
        stage.until("a pod is gated", lambda: stage.gated() == 1)
        stage.until("the Workload is there", lambda: stage.all("Workload"))
        stage.settle()
        assert stage.all("PodGroup") == []
        stage.until("patch-pods says so", lambda: "WaitingForPodGroup" in stage.reasons("patch_pods"))
        name = stage.all("Pod")[0]["spec"]["schedulingGroup"]["podGroupName"]
        spec = {"schedulingPolicy": {"gang": {"minCount": 4}}}
        stage.create(of_kind(POD_GROUPS, name, spec))
        stage.until("all pods are bound", lambda: stage.bound() == 4)


def test_without_resize_gang_a_gang_that_shrank_is_not_placed_again(tmp_path: Path) -> None:
    """The Job goes on running; after a restart its two pods wait for four until a user lowers minCount."""
    with without("resize-gang", tmp_path) as stage:
        stage.create_job()
        stage.until("all pods are bound", lambda: stage.bound() == 4)
        size: Object = {"spec": {"parallelism": 2, "completions": 2}}
        stage.stack.client.patch(JOBS, "sweep", TEAM, size, patch=PatchType.MERGE, manager="kubectl")
        stage.until("two pods are left", lambda: len(stage.all("Pod")) == 2)
        stage.settle()
        (group,) = stage.all("PodGroup")
        assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 4
        for pod in stage.all("Pod"):
            stage.stack.client.delete(PODS, pod["metadata"]["name"], TEAM)
        stage.until("two new pods are there", lambda: [stage.bound(), len(stage.all("Pod"))] == [0, 2])
        stage.settle()
        assert stage.bound() == 0
        size = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
        name = group["metadata"]["name"]
        stage.stack.client.patch(POD_GROUPS, name, TEAM, size, patch=PatchType.MERGE, manager="kubectl")
        stage.sweep()
        stage.until("both pods are bound", lambda: stage.bound() == 2)


def test_without_mark_runtime_runtimes_are_labelled_by_hand_or_not_at_all(tmp_path: Path) -> None:
    """Runtimes are not labelled; a group label that a user set works without the namespace label."""
    with without("mark-runtime", tmp_path) as stage:
        trainjob = next(obj for obj in STORIES["torch"].manifest if obj["kind"] == "TrainJob")
        name = trainjob["spec"]["runtimeRef"]["name"]
        policy = {"metadata": {"annotations": {"muster.dev/pod-group-policy": "workload: {}"}}}
        stage.patch_runtime(name, policy)
        stage.sweep()
        runtime = stage.stack.client.get(CLUSTER_TRAINING_RUNTIMES, name)
        assert "muster.dev/group" not in str(runtime)
        assert runtime is not None
        jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        for job in jobs:
            template = job["template"]["spec"]["template"]
            template["metadata"] = {"labels": {"muster.dev/group": job["name"]}}
        stage.patch_runtime(name, {"spec": {"template": {"spec": {"replicatedJobs": jobs}}}})
        stage.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-b"}})
        stage.create(trainjob, "team-b")
        stage.until("all pods are bound", lambda: stage.bound("team-b") == 3)
        assert len(stage.all("PodGroup", "team-b")) == 1


def test_without_the_admission_policies_only_pods_with_a_group_of_their_own_are_grouped(
    tmp_path: Path,
) -> None:
    """Nothing is labelled, gated or written; pods in a user's own PodGroup are placed as a gang."""
    with without_all(lambda each: each["kind"].startswith("MutatingAdmission"), tmp_path) as stage:
        stage.create_job()
        stage.until("all pods are bound", lambda: stage.bound() == 4)
        (own,) = STORIES["indexed-job"].manifest
        own["metadata"]["name"] = "own"
        own["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
        stage.create(own)
        stage.until("eight pods are there", lambda: len(stage.all("Pod")) == 8)
        stage.sweep()
        assert "muster.dev" not in str(stage.all("Pod"))
        assert stage.bound() == 4
        assert [activity for activity in stage.activities if activity.actions] == []
        stage.create(of_kind(POD_GROUPS, "mine", {"schedulingPolicy": {"gang": {"minCount": 4}}}))
        stage.until("all pods are bound", lambda: stage.bound() == 8)
