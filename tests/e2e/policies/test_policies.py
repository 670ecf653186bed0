"""Policies on the real control plane: examples, grouping failures and repairs, sizes, runtimes and KAI."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from muster.data import EVENTING
from muster.replay.snapshots import read_snapshots
from muster.replay.summary import group_of
from tests.e2e.support.owners import (
    POLICY,
    Object,
    a_job,
    a_runtime,
    a_trainjob,
    template_labels,
    with_policy,
)
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"


def example(name: str) -> list[Object]:
    """The objects of an example, without its namespace: each story has one of its own."""
    objects = read_snapshots([EVENTING / "examples" / f"{name}.yaml"])[0].objects
    return [copy.deepcopy(obj) for obj in objects if obj["kind"] != "Namespace"]


def racks_of_two_zones(story: RealStory) -> None:
    """Two zones of two racks of two nodes, four CPUs each."""
    for number in range(4):
        story.add_nodes(2, cpu=4, labels={ZONE: f"zone-{number // 2}", RACK: f"rack-{number}"})


def places(story: RealStory, key: str) -> dict[str, set[str]]:
    """The values of a node label under the pods of each group."""
    counts: dict[str, set[str]] = {}
    for pod in story.pods():
        node = story.api.must("GET", f"/api/v1/nodes/{pod['spec']['nodeName']}")
        counts.setdefault(group_of(pod), set()).add(node["metadata"]["labels"][key])
    return counts


def sizes(story: RealStory) -> list[Any]:
    """The minCount of every PodGroup, basic ones as None."""
    policies = (group["spec"]["schedulingPolicy"] for group in story.groups().values())
    return sorted((policy.get("gang") or {}).get("minCount") for policy in policies)


@pytest.mark.parametrize(
    ("name", "pods", "min_counts"),
    [
        pytest.param("leader-and-workers", 5, [1, 3], id="a leader and its workers"),
        pytest.param("prefill-and-decode", 6, [2, 4], id="prefill and decode"),
        pytest.param("all-or-nothing-disruption", 3, [3], id="all-or-nothing disruption"),
        pytest.param("racks", 8, [4, 4], id="blocks in racks of one zone"),
        pytest.param("jobset-leader-and-workers", 8, [2, 3, 3], id="leaders and workers as a JobSet"),
    ],
)
def test_an_example_runs(story: RealStory, name: str, pods: int, min_counts: list[int]) -> None:
    """All pods run, in gangs of these sizes; composites exist where the policy has them."""
    racks_of_two_zones(story)
    for obj in example(name):
        story.create(obj)
    story.wait(f"{pods} pods run", lambda now: now.running() == pods)
    assert sizes(story) == min_counts
    if name == "racks":
        assert all(len(racks) == 1 for racks in places(story, RACK).values())
        assert len(set().union(*places(story, ZONE).values())) == 1
    if name == "all-or-nothing-disruption":
        assert story.group("main")["spec"]["disruptionMode"] == {"all": {}}


def test_an_elastic_gang_starts_with_the_pods_that_fit(story: RealStory) -> None:
    """Room for three of four: three run. Its pinned minCount stays 1."""
    story.add_nodes(3)
    for obj in example("elastic-torch"):
        story.create(obj)
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("trainer") == {"gang": {"minCount": 1}}
    story.add_nodes(1)
    story.wait("four pods run", lambda now: now.running() == 4)
    assert story.policy("trainer") == {"gang": {"minCount": 1}}


def test_flagged_scaling_leaves_the_gang_and_says_so(story: RealStory, stage: Any) -> None:
    """The gang keeps its size; the owner's condition says what differs, at the latest with a sweep."""
    story.add_nodes(1)
    job = story.create(with_policy(a_job("sweep", pods=3), "workload: {onScale: Flag}"))
    story.wait("three pods run", lambda now: now.running() == 3)
    story.patch(job, {"spec": {"parallelism": 2, "completions": 2}})
    story.wait("two pods are left", lambda now: now.running() == 2)
    stage.muster.sweep()
    story.wait_for_reason("Job", "sweep", "PodGroupsReady", "ScalingFlagged")
    assert story.policy("main") == {"gang": {"minCount": 3}}


def test_a_runtime_with_a_policy_makes_gangs_in_namespaces_that_did_not_opt_in(
    begin_story: Callable[..., RealStory],
) -> None:
    """mark_runtime labels it, an Event says so; a running TrainJob keeps its groups when the policy goes."""
    story = begin_story(opted_in=False)
    story.add_nodes(1)
    policy = "workload: {groups: [{name: workers, replicatedJobs: [node], disruptionMode: {all: {}}}]}"
    runtime = story.create(a_runtime(story.api, "mine", policy))
    story.wait_for(
        runtime, "it is labelled", lambda now: template_labels(now) == {"muster.dev/group": "workers"}
    )
    story.wait("an Event says so", lambda now: now.messages("RuntimeMarked") != "")
    story.create(a_trainjob("bert", "mine", kind="TrainingRuntime", nodes=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("workers") == {"gang": {"minCount": 3}}
    assert story.group("workers")["spec"]["disruptionMode"] == {"all": {}}

    story.patch(runtime, {"metadata": {"annotations": {POLICY: None}}})
    story.wait_for(runtime, "the group label is taken back", lambda now: template_labels(now) == {})
    story.recording.quiet()
    assert story.running() == 3
    assert story.policy("workers") == {"gang": {"minCount": 3}}
