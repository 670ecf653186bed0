"""A policy that the cluster cannot fulfil: the owner's condition says so, and its pods run nevertheless."""

from __future__ import annotations

from tests.e2e.support.owners import a_job
from tests.e2e.support.story import RealStory

COMPOSITE = """
workload:
  groups:
  - name: all
    schedulingPolicy: {gang: {minGroupCount: 1}}
    groups:
    - {name: main, schedulingPolicy: {gang: {minCount: 2}}}
"""


def groups_of_groups_are_refused(story: RealStory) -> None:
    """Assert that a Job which needs a CompositePodGroup runs in a basic group where that kind is not served.

    Raises:
        AssertionError: its condition does not name the missing API, or its pods do not run in a basic group.
    """
    story.add_nodes(1)
    job = a_job("sweep", pods=2)
    job["metadata"]["annotations"] = {"muster.dev/pod-group-policy": COMPOSITE}
    story.create(job)
    story.wait("two pods run", lambda now: now.running() == 2)
    story.wait(
        "the Job says why", lambda now: now.reason("Job", "sweep", "PodGroupsReady") == "InvalidPolicy"
    )
    (condition,) = (
        condition
        for condition in story.recording.now("Job")["sweep"]["status"]["conditions"]
        if condition["type"] == "muster.dev/PodGroupsReady"
    )
    for words in ("muster.dev/pod-group-policy", "workload.groups", "CompositePodGroup", "v1alpha3"):
        assert words in condition["message"]
    assert story.policy("main") == {"basic": {}}
    assert story.recording.now("Workload") == {}
