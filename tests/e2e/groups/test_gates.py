"""Scheduling gates that Muster shares with others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from muster.local.stories.watching import Entry
from tests.cluster import manifests
from tests.cluster.api import STRATEGIC_PATCH, ApiResponse
from tests.e2e.support.owners import Object, a_job
from tests.e2e.support.runtimes import POLICY
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PODS = 10
OTHERS = [f"example.com/gate-{number}" for number in range(5)]
LABELLERS = [f"example.com/label-{number}" for number in range(3)]


def test_many_lift_their_gates_and_label_the_pods_at_once(story: RealStory) -> None:
    """Five removers and three labellers, beside patch-pods: each answer is 200, and every change counts."""
    story.add_nodes(2)
    job = a_job("sweep", pods=PODS)
    job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": gate} for gate in OTHERS]
    story.create(job)
    story.wait("the pods are made", lambda now: len(now.pods()) == PODS)
    pods = story.pods()
    changes: list[Object] = [
        {"spec": {"schedulingGates": [{"$patch": "delete", "name": gate}]}} for gate in OTHERS
    ]
    changes += [{"metadata": {"labels": {label: "set"}}} for label in LABELLERS]

    def write(change: Object) -> list[ApiResponse]:
        return [
            story.api.request("PATCH", manifests.path({**_POD, **pod}), change, STRATEGIC_PATCH)
            for pod in pods
        ]

    with ThreadPoolExecutor(len(changes)) as writers:
        answers = [answer for given in writers.map(write, changes) for answer in given]
    assert [answer.message for answer in answers if answer.status != 200] == []
    story.wait("ten pods run", lambda now: now.running() == PODS)
    assert [story.gates(pod) for pod in story.pods()] == [set()] * PODS
    assert all(set(LABELLERS) <= set(pod["metadata"]["labels"]) for pod in story.pods())
    assert {entry.name for entry in _all_gated(story)} == {pod["metadata"]["name"] for pod in pods}


@pytest.mark.parametrize("policy", ["workload: {}", "workload: {gangs: []}"], ids=["gang", "fallback group"])
def test_a_gate_of_another_is_left_to_it(story: RealStory, policy: str) -> None:
    """Muster removes its own; the group waits for a pod with another controller's gate, a basic group too."""
    story.add_nodes(1)
    job = a_job("sweep", pods=3)
    job["metadata"]["annotations"] = {POLICY: policy}
    job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": OTHERS[0]}]
    story.create(job)
    held = [{OTHERS[0]}] * 3
    story.wait("Muster's are lifted", lambda now: [now.gates(pod) for pod in now.pods()] == held)
    first, *others = story.pods()
    lifted = {"spec": {"schedulingGates": [{"$patch": "delete", "name": OTHERS[0]}]}}
    for pod in others:
        story.api.must("PATCH", manifests.path({**_POD, **pod}), lifted, STRATEGIC_PATCH)
    story.recording.quiet()
    assert not any(pod["spec"].get("nodeName") for pod in story.pods())
    story.api.must("PATCH", manifests.path({**_POD, **first}), lifted, STRATEGIC_PATCH)
    story.wait("three pods run", lambda now: now.running() == 3)


def test_a_gang_without_gates_is_placed_by_the_scheduler_alone(story: RealStory) -> None:
    """With the annotation `off` no pod ever has Muster's gate; all wait until there is room for the gang."""
    story.add_nodes(1, cpu=2)
    job = a_job("sweep", pods=3)
    job["spec"]["template"]["metadata"] = {"annotations": {"muster.dev/gate": "off"}}
    story.create(job)
    story.wait(
        "the gang waits", lambda now: now.reason("Job", "sweep", "PodGroupsScheduled") == "Unschedulable"
    )
    assert not any(pod["spec"].get("nodeName") for pod in story.pods())
    story.add_nodes(1, cpu=1)
    story.wait("three pods run", lambda now: now.running() == 3)
    pods = [entry for entry in story.recording.entries() if entry.kind == "Pod"]
    assert {gate for entry in pods for gate in story.gates(entry.object)} == set()


def _all_gated(story: RealStory) -> list[Entry]:
    """The moments at which a pod had the gates of the others and Muster's as well."""
    every = {*OTHERS, "muster.dev/pod-group"}
    return [
        entry
        for entry in story.recording.entries()
        if entry.kind == "Pod" and story.gates(entry.object) == every
    ]


_POD: Object = {"apiVersion": "v1", "kind": "Pod"}
