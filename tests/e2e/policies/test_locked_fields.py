"""The administrator's ConfigMap on the real control plane: a policy for all namespaces, and locked fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster import manifests
from tests.e2e.support.owners import POLICY, a_job, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

Administrate = Callable[..., None]


@pytest.fixture
def administrate(stage: Any) -> Iterator[Administrate]:
    """Return a function that writes the ConfigMap in Muster's namespace; it is deleted at the end."""
    api, namespace = stage.cluster.api, stage.muster.namespace
    metadata = {"name": "muster-policy", "namespace": namespace}

    def write(**data: str) -> None:
        manifests.apply(api, [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}])

    yield write
    api.must("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/muster-policy")


def test_a_policy_of_the_administrator_counts_below_that_of_the_namespace(
    story: RealStory, administrate: Administrate
) -> None:
    """The Workload names it; a ConfigMap of the namespace takes its place for the next Job."""
    story.add_nodes(1)
    administrate(policy="workload: {groups: [{name: main, disruptionMode: {all: {}}}]}")
    story.create(a_job("sweep", pods=2))
    story.wait("two pods run", lambda now: now.running() == 2)
    assert story.group("main")["spec"]["disruptionMode"] == {"all": {}}
    (workload,) = story.recording.now("Workload").values()
    source = workload["metadata"]["annotations"]["muster.dev/policy-source"]
    assert source == "ConfigMap muster-system/muster-policy, key policy"
    metadata = {"name": "muster-policy"}
    data = {"policy": "workload: {onScale: Flag}"}
    story.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    story.create(a_job("next", pods=2))
    story.wait("four pods run", lambda now: now.running() == 4)
    sources = {
        name: workload["metadata"]["annotations"]["muster.dev/policy-source"]
        for name, workload in story.recording.now("Workload").items()
    }
    assert any(story.namespace in source for source in sources.values()), sources


def test_an_owner_cannot_weaken_locked_fields(
    story: RealStory, stage: Any, administrate: Administrate
) -> None:
    """The pods keep their gate and the owner says who locked the field, until the annotation is gone."""
    story.add_nodes(1)
    administrate(locked="{onFailure: Hold, disruptionMode: {all: {}}, minCount: All}")
    weaker = "workload: {groups: [{name: main, schedulingPolicy: {gang: {minCount: 1}}}]}"
    job = story.create(with_policy(a_job("sweep", pods=3), weaker))
    story.wait_for_reason("Job", "sweep", "PodGroupsReady", "InvalidPolicy")
    story.wait("so does an Event", lambda now: "muster-system/muster-policy" in now.messages("InvalidPolicy"))
    stage.muster.sweep()
    story.recording.quiet()
    assert (story.running(), story.groups()) == (0, {})
    assert all(story.gates(pod) == {"muster.dev/pod-group"} for pod in story.pods())

    story.patch(job, {"metadata": {"annotations": {POLICY: None}}})
    stage.muster.sweep()
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("main") == {"gang": {"minCount": 3}}
    assert story.group("main")["spec"]["disruptionMode"] == {"all": {}}
    (workload,) = story.recording.now("Workload").values()
    kept = json.loads(workload["metadata"]["annotations"]["muster.dev/locked-policy"])
    assert kept == {"onFailure": "Hold", "disruptionMode": {"all": {}}, "minCount": "All"}
