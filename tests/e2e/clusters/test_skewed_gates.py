"""Gates that are on in the API server and not in kube-scheduler: nothing in Kubernetes prevents it."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import Release
from tests.e2e.support.owners import a_job, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(release=Release("1.37", skewed=(("kube-scheduler", ()),)))
ELASTIC = "workload: {groups: [{name: main, schedulingPolicy: {gang: {minCount: 1}}}]}"


def test_a_gang_that_the_scheduler_places_as_single_pods_is_reported(story: RealStory) -> None:
    """Pods are bound one by one, and the Job says that its group was not placed.

    MinCount is 1 and each pod has a gate, so that the laws of every story hold: such a scheduler binds a pod
    without a gate before its group exists, and a larger gang before it is whole.
    """
    story.add_nodes(2)
    job = with_policy(a_job("sweep", pods=2), ELASTIC)
    job["spec"]["template"]["metadata"]["annotations"] = {"muster.dev/gate": "all"}
    story.create(job)
    story.wait("two pods run", lambda now: now.running() == 2)
    story.wait_for_reason("Job", "sweep", "PodGroupsScheduled", "GroupsIgnored", 90)
    assert story.condition("Job", "sweep", "PodGroupsScheduled") == "False"
    (group,) = story.groups().values()
    assert "conditions" not in group.get("status", {})
