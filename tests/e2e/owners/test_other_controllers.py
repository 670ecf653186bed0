"""Owners that other controllers make, run, place or gate (MultiKueue, Flux, Katib, JobSet, Kueue)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import manifests
from tests.cluster.processes import until
from tests.e2e.support.owners import Object, a_job, a_jobset, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


@pytest.fixture
def foreign_owner(story: RealStory) -> Iterator[Object]:
    """A custom resource of a foreign API, as Flux's MiniCluster; its CRD is deleted at the end."""
    names = {"plural": "miniclusters", "singular": "minicluster", "kind": "MiniCluster"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1alpha2", "served": True, "storage": True, "schema": schema}
    spec = {"group": "flux-framework.org", "names": names, "scope": "Namespaced", "versions": [version]}
    metadata = {"name": "miniclusters.flux-framework.org"}
    kind = "CustomResourceDefinition"
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
    manifests.apply(story.api, [crd])
    story.wait_for(crd, "the CRD is established", _established)
    yield story.create(
        {"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster", "metadata": {"name": "flux"}}
    )
    story.api.must("DELETE", manifests.path(crd))
    # Until it is gone the next story could create no custom resource.
    assert until(lambda: story.api.request("GET", manifests.path(crd)).status == 404, 60)


def test_owners_that_another_controller_runs_are_left_alone(story: RealStory) -> None:
    """`managedBy` MultiKueue: no pod, no Workload and no condition; the Job beside them is a gang."""
    story.add_nodes(1)
    elsewhere = [
        a_trainjob("llama", "torch-distributed", nodes=2, managedBy=MULTIKUEUE),
        a_jobset("sim", {"workers": (1, 2)}),
        a_job("sweep", pods=2),
    ]
    for owner in elsewhere[1:]:
        owner["spec"]["managedBy"] = MULTIKUEUE
    for owner in elsewhere:
        story.create(owner)
    story.create(a_job("here", pods=2))
    story.wait("the Job that is run here runs", lambda now: now.running() == 2)
    story.recording.quiet()
    assert len(story.pods()) == 2
    assert [name.rsplit("-", 1)[0] for name in story.recording.now("Workload")] == ["here"]
    assert {write.name.split("-")[0].split(".")[0] for write in story.writes()} == {"here"}


def test_a_gang_that_exclusive_placement_cannot_start_runs_pod_by_pod(story: RealStory) -> None:
    """JobSet's webhook refuses all pods of a Job but index 0 until that one is bound, so no gang can form."""
    for rack in ("a", "b"):
        story.add_nodes(1, labels={"example.com/rack": rack})
    jobset = a_jobset("sim", {"workers": (2, 2)})
    jobset["metadata"]["annotations"] = {EXCLUSIVE: "example.com/rack"}
    story.create(jobset)
    story.wait("four pods run", lambda now: now.running() == 4)
    story.wait_for_reason("JobSet", "sim", "PodGroupsReady", "WaitsForItself")
    nodes_of: dict[str, set[str]] = {}
    for pod in story.pods():
        job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        nodes_of.setdefault(job, set()).add(pod["spec"]["nodeName"])
    assert sorted(len(nodes) for nodes in nodes_of.values()) == [1, 1]
    assert set.intersection(*nodes_of.values()) == set()


def test_a_label_from_runtime_patches_names_the_group(story: RealStory) -> None:
    """The label of a TrainJob's own patch wins over the name that mark-jobsets would write."""
    story.add_nodes(1)
    template = {"metadata": {"labels": {"muster.dev/group": "patched"}}}
    job = {"name": "node", "template": {"spec": {"template": template}}}
    patch = {
        "manager": "example.com/team",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}},
    }
    story.create(a_trainjob("llama", "torch-distributed", nodes=2, runtimePatches=[patch]))
    story.wait("two pods run", lambda now: now.running() == 2)
    assert story.policy("patched") == {"gang": {"minCount": 2}}


def test_a_job_of_a_foreign_controller_is_a_gang_only_if_its_template_is_labelled(
    story: RealStory, foreign_owner: Object
) -> None:
    """As Flux's MiniCluster makes one: without a label it is the other controller's to group."""
    story.add_nodes(1)
    for name, labels in (("plain", {}), ("labelled", {"muster.dev/group": "main"})):
        job = a_job(name, pods=2, labels=labels)
        job["metadata"]["ownerReferences"] = [_controller(foreign_owner)]
        story.create(job)
    story.wait("four pods run", lambda now: now.running() == 4)
    story.recording.quiet()
    assert [name.rsplit("-", 1)[0] for name in story.groups()] == ["labelled-main"]
    assert len(story.ungrouped()) == 2


def test_a_trainjob_of_a_foreign_controller_is_a_gang(story: RealStory, foreign_owner: Object) -> None:
    """As a trial of an OptimizationJob: the TrainJob, not what made it, owns the Workload."""
    story.add_nodes(1)
    trainjob = a_trainjob("trial", "torch-distributed", nodes=2)
    trainjob["metadata"]["ownerReferences"] = [_controller(foreign_owner)]
    created = story.create(trainjob)
    story.wait("two pods run", lambda now: now.running() == 2)
    (workload,) = story.recording.now("Workload").values()
    assert workload["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert story.policy("trainer") == {"gang": {"minCount": 2}}


def _established(crd: Object) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)


def _controller(owner: Object) -> Object:
    """The ownerReference to an object as controller."""
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    return {**reference, "name": metadata["name"], "uid": metadata["uid"]}
