"""Kubernetes 1.37 without the alpha gate CompositePodGroup."""

from __future__ import annotations

import pytest

from muster.simulator.apiserver import Gates
from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import Release
from tests.contract import gates_off
from tests.e2e.composites.test_trees import COMPOSITE
from tests.e2e.conftest import RealStage
from tests.e2e.support.owners import a_job, a_trainjob, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(
    release=Release("1.37", gates=("GenericWorkload",), apis=("scheduling.k8s.io/v1beta1",))
)


def test_groups_of_groups_are_refused(story: RealStory) -> None:
    """The Job says which kind and version it would need, and runs in a fallback group that is no gang."""
    story.add_nodes(1)
    story.create(with_policy(a_job("sweep", pods=2), COMPOSITE))
    story.wait("two pods run", lambda now: now.running() == 2)
    story.wait_for_reason("Job", "sweep", "PodGroupsReady", "InvalidPolicy")
    (condition,) = (
        condition
        for condition in story.recording.now("Job")["sweep"]["status"]["conditions"]
        if condition["type"] == "muster.dev/PodGroupsReady"
    )
    for words in ("muster.dev/pod-group-policy", "workload.groups", "CompositePodGroup", "v1alpha3"):
        assert words in condition["message"]
    assert story.policy("main") == {"basic": {}}
    assert story.recording.now("Workload") == {}


def test_a_trainjob_needs_none_of_the_alpha_gates(story: RealStory) -> None:
    """GenericWorkload and v1beta1 are all it takes: three nodes are one gang."""
    story.add_nodes(3)
    story.create(a_trainjob("llama", "torch-distributed", nodes=3, cpu=6))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("trainer") == {"gang": {"minCount": 3}}


def test_the_embedded_server_drops_the_same_fields(stage: RealStage) -> None:
    """Composites, parents and topology: with the same gates it answers the same."""
    gates = Gates(
        topology_aware_workload_scheduling=False, composite_pod_group=False, served=frozenset({"v1beta1"})
    )
    assert gates_off.difference(stage.cluster, "optional_gates_off", gates) == ""
