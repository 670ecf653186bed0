"""JobSets with optional gates: elastic, restarted Job by Job, with preemptionPolicy and resourceClaims."""

from __future__ import annotations

import copy
from functools import partial

import pytest

from tests.cluster import manifests
from tests.cluster.api import MERGE_PATCH
from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import DEFAULT_GATES, Release
from tests.e2e.support.owners import Object, a_jobset, with_policy
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import chat, min_group_count, runs, uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(
    Release("1.37", gates=(*DEFAULT_GATES["1.37"], "PodGroupPreemptionPolicy", "DRAWorkloadResourceClaims")),
    jobset_gates=("ElasticJobSet", "RestartJob"),
)
OVERLAY = "composite-pod-groups"

DEVICES = "resource.k8s.io/v1"
SHARED = {"name": "nic", "resourceClaimTemplateName": "nic"}
AT_EVERY_LEVEL = """
workload:
  groups:
  - name: all
    preemptionPolicy: Never
    groups:
    - name: chat
      preemptionPolicy: Never
      groups:
      - name: prefill
        preemptionPolicy: Never
        resourceClaims: [{name: nic, resourceClaimTemplateName: nic}]
      - {name: decode, preemptionPolicy: Never}
    - {name: router, preemptionPolicy: Never}
"""


def scaled(jobset: Object, name: str, pods: int) -> Object:
    """The change that gives each Job of a replicatedJob so many pods."""
    jobs = copy.deepcopy(jobset["spec"]["replicatedJobs"])
    (job,) = (job for job in jobs if job["name"] == name)
    job["template"]["spec"] |= {"parallelism": pods, "completions": pods}
    return {"spec": {"replicatedJobs": jobs}}


def scale(story: RealStory, jobset: Object, name: str, pods: int) -> None:
    """Give a replicatedJob so many pods, and wait until they run."""
    story.patch(jobset, scaled(jobset, name, pods))
    (job,) = (entry for entry in jobset["spec"]["replicatedJobs"] if entry["name"] == name)
    running = pods * job["replicas"]
    story.wait(f"{running} {name} run", lambda now: len(now.running_of(name)) == running)


def follows(story: RealStory, name: str, pods: int) -> None:
    """Wait until the gang of a replicatedJob is of so many."""
    gang = {"gang": {"minCount": pods}}
    story.wait(f"the gang is of {pods}", lambda now: now.policy(name) == gang)


def _has_templates(story: RealStory, *, workers: int) -> bool:
    counts = {"driver": 1, "workers": workers}
    return story.templates() == {name: {"gang": {"minCount": count}} for name, count in counts.items()}


def test_an_elastic_jobset_is_scaled_and_its_gang_follows(story: RealStory) -> None:
    """Two Jobs of two pods, then of three, of one, and of two again: PodGroup and template follow.

    JobSet refuses to scale one to zero, not even with the gate.
    """
    story.add_nodes(2)
    jobset = story.create(a_jobset("sim", {"driver": (1, 1), "workers": (2, 2)}, apart=True))
    story.wait("five pods run", lambda now: now.running() == 5)
    for pods in (3, 1, 2):
        scale(story, jobset, "workers", pods)
        follows(story, "workers", 2 * pods)
        story.wait("its template is as well", partial(_has_templates, workers=2 * pods))
    assert story.policy("driver") == {"gang": {"minCount": 1}}
    answer = story.api.request("PATCH", manifests.path(jobset), scaled(jobset, "workers", 0), MERGE_PATCH)
    assert (answer.status, "parallelism must be >= 1" in answer.message) == (422, True), answer.message
    assert story.policy("workers") == {"gang": {"minCount": 4}}


def test_an_elastic_child_of_a_tree_is_scaled(story: RealStory) -> None:
    """Decode grows and shrinks, its gang follows; the gang of both stays what it is, and prefill runs on."""
    jobset = story.create(chat())
    runs(story)
    prefill = uids(story.running_of("prefill"))
    story.add_nodes(1, cpu=4)
    for pods in (4, 1):
        scale(story, jobset, "decode", pods)
        follows(story, "decode", pods)
    assert (min_group_count(story), uids(story.running_of("prefill"))) == (2, prefill)


def test_one_child_is_restarted_while_its_sibling_runs(story: RealStory) -> None:
    """Only decode's Job is made anew: its pods come back as a gang, and prefill runs on as it is."""
    rule = {"name": "decode", "action": "RestartJob", "targetReplicatedJobs": ["decode"]}
    story.create(chat(rules=[rule]))
    runs(story)
    prefill, decode = uids(story.running_of("prefill")), uids(story.running_of("decode"))

    story.finish_pods(story.running_of("decode")[:1], "Failed")
    story.wait(
        "decode runs again",
        lambda now: len(uids(now.running_of("decode")) - decode) == 2 and now.running() == 4,
    )
    assert uids(story.running_of("prefill")) == prefill
    assert min_group_count(story) == 2


def one_device(story: RealStory, node: str) -> None:
    """One device on a node, and a template of claims to it."""
    device_class = story.create_for_cluster(
        {"apiVersion": DEVICES, "kind": "DeviceClass", "metadata": {"name": "nics"}, "spec": {}}
    )
    slice_of_node = {
        "driver": "nics.example.com",
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "nodeName": node,
        "devices": [{"name": "nic-0"}],
    }
    story.create_for_cluster(
        {"apiVersion": DEVICES, "kind": "ResourceSlice", "metadata": {"name": "nics"}, "spec": slice_of_node}
    )
    request = {"name": "one", "exactly": {"deviceClassName": device_class["metadata"]["name"]}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    template = {"apiVersion": DEVICES, "kind": "ResourceClaimTemplate", "metadata": {"name": "nic"}}
    story.create({**template, "spec": spec})


def claims(story: RealStory) -> list[Object]:
    """The ResourceClaims of the story."""
    claims: list[Object] = story.api.must(
        "GET", f"/apis/{DEVICES}/namespaces/{story.namespace}/resourceclaims"
    )["items"]
    return claims


def test_settings_stand_at_every_level_of_a_tree_that_allows_them(story: RealStory) -> None:
    """Composites and groups keep the preemptionPolicy; the pods of one group share one device of one node."""
    story.add_nodes(2)
    node = f"{story.namespace}-1"
    one_device(story, node)
    jobset = with_policy(
        a_jobset("chat", {"prefill": (1, 2), "decode": (1, 2), "router": (1, 1)}, apart=True), AT_EVERY_LEVEL
    )
    one_class = story.priority_class("polite", 1000, preemptionPolicy="Never")
    for entry in jobset["spec"]["replicatedJobs"]:
        entry["template"]["spec"]["template"]["spec"]["priorityClassName"] = one_class
    prefill = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    prefill["resourceClaims"] = [SHARED]
    prefill["containers"][0]["resources"]["claims"] = [{"name": "nic"}]
    story.create(jobset)
    story.wait("five pods run", lambda now: now.running() == 5)

    groups = {**story.recording.now("CompositePodGroup"), **story.groups()}
    kept = {name.split("-")[1]: one["spec"].get("preemptionPolicy") for name, one in groups.items()}
    assert kept == dict.fromkeys(("all", "chat", "prefill", "decode", "router"), "Never")
    assert story.group("prefill")["spec"]["resourceClaims"] == [SHARED]
    assert {pod["spec"]["nodeName"] for pod in story.running_of("prefill")} == {node}
    (claim,) = claims(story)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("PodGroup", story.group("prefill")["metadata"]["name"])


@pytest.mark.parametrize(
    "policy", ["workload: {}", "workload: {groups: [{name: mian}]}"], ids=["gang", "fallback group"]
)
def test_pods_that_never_preempt_get_their_group_without_a_policy_for_it(
    story: RealStory, policy: str
) -> None:
    """The API server refuses a group without the preemptionPolicy of its class."""
    story.add_nodes(1)
    jobset = with_policy(a_jobset("sim", {"workers": (1, 2)}), policy)
    workers = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    workers["spec"]["priorityClassName"] = story.priority_class("polite", 1000, preemptionPolicy="Never")
    story.create(jobset)
    story.wait("two pods run", lambda now: now.running() == 2)
    assert story.group("workers")["spec"]["preemptionPolicy"] == "Never"
