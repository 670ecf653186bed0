"""A policy in `spec.podGroupPolicy` of a runtime: the patched CRDs keep it, the Trainer's types drop it."""

from __future__ import annotations

import pytest

from muster.objects import yaml_files
from muster.objects.resources import CONFIGMAPS, TRAINING_RUNTIMES
from muster.replay.snapshots import Object
from muster.replay.summary import muster_conditions
from muster.simulator.controllers import shipped_runtime
from tests.cluster.api import JSON_PATCH, KubernetesApi
from tests.e2e.support import owners
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


SCHEDULING_FIELD = {
    "op": "add",
    "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/scheduling",
    "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
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


def test_what_upstream_groups_by_its_next_api_is_left_to_it() -> None:
    """`spec.scheduling` of a runtime (Trainer's KEP-3015) or JobSet (KEP-969), once their CRDs have it.

    The pods do not wait for upstream: the TrainJob's run in a fallback group, the JobSet's without one.
    """
    with LocalStage() as stage:
        api = KubernetesApi(stage.stack.url)
        for crd in ("trainingruntimes.trainer.kubeflow.org", "jobsets.jobset.x-k8s.io"):
            api.must("PATCH", f"{CRDS}/{crd}", [SCHEDULING_FIELD], JSON_PATCH)
        scheduling: Object = {"scheduling": {"schedulingPolicy": {"gang": {}}}}
        runtime = shipped_runtime("torch-distributed")
        spec = {**runtime["spec"], **scheduling}
        stage.create({**runtime, "kind": "TrainingRuntime", "metadata": {"name": "gangs"}, "spec": spec})
        stage.create(a_trainjob("bert"))
        jobset = owners.a_jobset("sim", {"workers": (1, 2)})
        stage.create({**jobset, "spec": {**jobset["spec"], **scheduling}})
        stage.until("five pods are made", lambda: len(stage.all("Pod")) == 5)
        stage.sweep()
        stage.until("five pods are bound", lambda: stage.bound() == 5)
        stage.sweep()
        roots = [*stage.all("TrainJob"), *(body for body in stage.all("JobSet") if "sim" in str(body))]
        reasons = [condition["reason"] for root in roots for condition in muster_conditions(root)]
        assert reasons == ["UpstreamGroups"]
        assert stage.all("Workload") == []


def _group_of(stage: LocalStage) -> str:
    """The metadata of the pod template of the runtime `gangs`, as text."""
    runtime = stage.stack.client.get(TRAINING_RUNTIMES, "gangs", TEAM)
    assert runtime is not None
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return str(job["template"]["spec"]["template"].get("metadata"))
