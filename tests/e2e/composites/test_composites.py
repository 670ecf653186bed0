"""The overlay for clusters with CompositePodGroups: their events are heard as well."""

from __future__ import annotations

import pytest

from tests.cluster.processes import until
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import POLICY, Object, a_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OVERLAY = "composite-pod-groups"

COMPOSITE = """
workload:
  groups:
  - name: all
    schedulingPolicy: {gang: {minGroupCount: 1}}
    groups:
    - {name: main, schedulingPolicy: {gang: {minCount: 2}}}
"""

GROUPS = "/apis/scheduling.k8s.io/v1alpha3/namespaces/{}/compositepodgroups"


def composites(story: RealStory) -> list[Object]:
    """Return the CompositePodGroups of the story."""
    groups: list[Object] = story.api.must("GET", GROUPS.format(story.namespace))["items"]
    return groups


def test_an_orphaned_tree_is_taken_away(story: RealStory, muster_on_it: Muster) -> None:
    """A Job deleted with orphaned children orphans the groups above its pods too; a sweep takes them away."""
    story.add_nodes(1)
    job = a_job("sweep", pods=2)
    job["metadata"]["annotations"] = {POLICY: COMPOSITE}
    made = story.create(job)
    story.wait("two pods run", lambda now: now.running() == 2)
    assert len(composites(story)) == 1

    story.delete_job_and_then_its_pods(made)
    muster_on_it.sweep()
    story.wait("Workload and group are gone", lambda now: not now.leftovers())
    assert until(lambda: not composites(story), 20), "a CompositePodGroup is left"
