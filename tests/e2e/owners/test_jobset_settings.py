"""What the API server keeps of groups only with gates of their own: preemptionPolicy and resourceClaims."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cluster import manifests
from tests.contract.bodies import priority_class
from tests.e2e.support import admission
from tests.e2e.support.gates import WITH_OPTIONAL_GATES
from tests.e2e.support.owners import Object, a_jobset
from tests.e2e.support.runtimes import POLICY
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

Make = Callable[[Object], Object]


@pytest.fixture
def make(story: RealStory) -> Iterator[Make]:
    """Make objects of the whole cluster that go with the story; their names begin with its namespace."""
    made: list[Object] = []

    def of_the_cluster(obj: Object) -> Object:
        named = {
            **obj,
            "metadata": {**obj["metadata"], "name": f"{story.namespace}-{obj['metadata']['name']}"},
        }
        made.append(story.api.must("POST", manifests.collection(named), named))
        return made[-1]

    yield of_the_cluster
    for obj in made:
        story.api.must("DELETE", manifests.path(obj))


def polite(story: RealStory, make: Make) -> str:
    """Make a PriorityClass whose pods preempt no others; return its name."""
    body = priority_class("polite", 1000, preemptionPolicy="Never")
    made = make({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **body})
    name: str = made["metadata"]["name"]
    assert admission.class_is_known(story.api, story.namespace, name)
    return name


def one_device(make: Make, story: RealStory, node: str) -> None:
    """One device on a node, and a template of claims to it."""
    device_class = make(
        {"apiVersion": DEVICES, "kind": "DeviceClass", "metadata": {"name": "nics"}, "spec": {}}
    )
    slice_of_node = {
        "driver": "nics.example.com",
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "nodeName": node,
        "devices": [{"name": "nic-0"}],
    }
    make(
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


def test_settings_stand_at_every_level_of_a_tree_that_allows_them(story: RealStory, make: Make) -> None:
    """Composites and groups keep the preemptionPolicy; the pods of one group share one device of one node."""
    story.add_nodes(2)
    node = f"{story.namespace}-1"
    one_device(make, story, node)
    jobset = a_jobset("chat", {"prefill": (1, 2), "decode": (1, 2), "router": (1, 1)})
    jobset["metadata"]["annotations"] = {POLICY: AT_EVERY_LEVEL}
    one_class = polite(story, make)
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
    story: RealStory, make: Make, policy: str
) -> None:
    """The API server refuses a group without the preemptionPolicy of its class."""
    story.add_nodes(1)
    jobset = a_jobset("sim", {"workers": (1, 2)})
    jobset["metadata"]["annotations"] = {POLICY: policy}
    workers = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    workers["spec"]["priorityClassName"] = polite(story, make)
    story.create(jobset)
    story.wait("two pods run", lambda now: now.running() == 2)
    assert story.group("workers")["spec"]["preemptionPolicy"] == "Never"
