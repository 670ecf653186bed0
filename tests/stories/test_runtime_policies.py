"""A policy in `spec.podGroupPolicy` of a runtime: the patched CRDs keep it, the Trainer's types drop it."""

from __future__ import annotations

import pytest

from muster.objects import yaml_files
from muster.objects.resources import CONFIGMAPS, TRAINING_RUNTIMES
from muster.replay.snapshots import Object
from muster.simulator.controllers import shipped_runtime
from tests.cluster.api import JSON_PATCH, KubernetesApi
from tests.schemas.policy import crd_patch
from tests.stories.stage import TEAM, LocalStage

pytestmark = pytest.mark.usefixtures("in_process")

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = {
    "name": "workers",
    "replicatedJobs": ["node"],
    "schedulingPolicy": {"gang": {"minCount": 2}},
    "disruptionMode": {"all": {}},
}


def a_trainjob(name: str) -> Object:
    """A TrainJob of three nodes with the runtime `gangs`."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "gangs", "kind": "TrainingRuntime"},
            "trainer": {"numNodes": 3},
        },
    }


def patch_crds(stage: LocalStage) -> None:
    """Patch the CRDs of runtimes as eventing/components/runtime-policy-crd does."""
    api = KubernetesApi(stage.stack.url)
    for kind in ("trainingruntimes", "clustertrainingruntimes"):
        api.must("PATCH", f"{CRDS}/{kind}.trainer.kubeflow.org", crd_patch(), JSON_PATCH)


def test_the_policy_counts_although_the_snapshot_has_lost_it() -> None:
    """PodGroup and Workload have the settings of the runtime; the Workload keeps them."""
    with LocalStage() as stage:
        patch_crds(stage)
        runtime = shipped_runtime("torch-distributed")
        runtime["spec"]["podGroupPolicy"] = {"workload": {"groups": [GROUP], "onFailure": "Hold"}}
        stage.create({**runtime, "kind": "TrainingRuntime", "metadata": {"name": "gangs"}})
        stage.until("mark_runtime labelled it", lambda: "workers" in _group_of(stage))
        stage.create(a_trainjob("bert"))
        stage.until("three pods are bound", lambda: stage.bound() == 3)
        snapshot = stage.stack.client.get(CONFIGMAPS, "bert-runtime-snapshot", TEAM)
        assert snapshot is not None
        assert yaml_files.load(snapshot["data"]["runtime"])["spec"]["podGroupPolicy"] == {}
        (group,) = stage.all("PodGroup")
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
        assert group["spec"]["disruptionMode"] == {"all": {}}
        stage.stack.client.delete(TRAINING_RUNTIMES, "gangs", TEAM)
        stage.sweep()
        (workload,) = stage.all("Workload")
        assert '"onFailure": "Hold"' in workload["metadata"]["annotations"]["muster.dev/pod-group-policy"]
        assert stage.all("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}


def _group_of(stage: LocalStage) -> str:
    """The metadata of the pod template of the runtime `gangs`, as text."""
    runtime = stage.stack.client.get(TRAINING_RUNTIMES, "gangs", TEAM)
    assert runtime is not None
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return str(job["template"]["spec"]["template"].get("metadata"))
