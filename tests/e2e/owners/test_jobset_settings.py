"""What the API server keeps of groups only with gates of their own: preemptionPolicy and resourceClaims."""

from __future__ import annotations

import pytest

from tests.e2e.owners.test_jobset_gates import OPTIONS as WITH_OPTIONAL_GATES
from tests.e2e.support.owners import Object, a_jobset, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = WITH_OPTIONAL_GATES
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
        a_jobset("chat", {"prefill": (1, 2), "decode": (1, 2), "router": (1, 1)}), AT_EVERY_LEVEL
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
