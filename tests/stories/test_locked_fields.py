"""The administrator's ConfigMap in Muster's namespace: a policy for all namespaces, and locked fields."""

from __future__ import annotations

import pytest

from muster.local.stories.story import STORIES
from muster.objects.resources import CONFIGMAPS, JOBS, NAMESPACES
from muster.policy.model import PatchType
from muster.replay.snapshots import Object
from tests.stories.stage import TEAM, LocalStage

pytestmark = pytest.mark.usefixtures("in_process")

ADMIN = "muster-system"
POLICY = "muster.dev/pod-group-policy"


def lock(stage: LocalStage, **data: str) -> Object:
    """Create the administrator's ConfigMap."""
    if stage.stack.client.get(NAMESPACES, ADMIN) is None:
        stage.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ADMIN}})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "muster-policy"}, "data": data}
    return stage.create(body, ADMIN)


def test_the_policy_of_the_administrator_applies_where_there_is_no_other() -> None:
    """It is below the namespace's."""
    with LocalStage() as stage:
        lock(stage, policy="workload: {groups: [{name: main, disruptionMode: {all: {}}}]}")
        stage.create_job()
        stage.until("all pods are bound", lambda: stage.bound() == 4)
        (group,) = stage.all("PodGroup")
        assert group["spec"]["disruptionMode"] == {"all": {}}
        (workload,) = stage.all("Workload")
        assert ADMIN in workload["metadata"]["annotations"]["muster.dev/policy-source"]


def test_an_owner_cannot_weaken_locked_fields() -> None:
    """Its pods keep their gate until its policy is repaired; then they are a gang as locked."""
    with LocalStage() as stage:
        lock(stage, locked="{onFailure: Hold, disruptionMode: {all: {}}, minCount: All}")
        weaker = "workload: {groups: [{name: main, schedulingPolicy: {gang: {minCount: 1}}}]}"
        (job,) = STORIES["indexed-job"].manifest
        job["metadata"]["annotations"] = {POLICY: weaker}
        stage.create(job)
        stage.until("a pod is gated", lambda: stage.gated() == 1)
        stage.until("it says why", lambda: stage.says("PodGroupsReady").get("reason") == "InvalidPolicy")
        assert f"{ADMIN}/muster-policy" in stage.says("PodGroupsReady")["message"]
        stage.settle()
        stage.sweep()
        assert (stage.all("PodGroup"), stage.bound(), stage.gated()) == ([], 0, 1)

        fixed = {"metadata": {"annotations": {POLICY: None}}}
        name = job["metadata"]["name"]
        stage.stack.client.patch(JOBS, name, TEAM, fixed, patch=PatchType.MERGE, manager="kubectl")
        stage.sweep()
        stage.until("all pods are bound", lambda: stage.bound() == 4)
        (group,) = stage.all("PodGroup")
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
        assert group["spec"]["disruptionMode"] == {"all": {}}


def test_the_groups_of_an_owner_keep_the_locked_values() -> None:
    """A lock that is taken away, or added, counts for the next owner."""
    with LocalStage() as stage:
        lock(stage, locked="disruptionMode: {all: {}}")
        stage.create_job()
        stage.until("all pods are bound", lambda: stage.bound() == 4)
        stage.stack.client.delete(CONFIGMAPS, "muster-policy", ADMIN)
        lock(stage, locked="onFailure: broken")
        stage.sweep()
        assert stage.says("PodGroupsReady")["status"] == "True"
        (workload,) = stage.all("Workload")
        assert "disruptionMode" in workload["metadata"]["annotations"]["muster.dev/locked-policy"]
