"""A policy that the cluster cannot have: what its owner says, and that its pods run all the same."""

from __future__ import annotations

from tests.e2e.support.owners import a_job
from tests.e2e.support.story import Story

COMPOSITE = """
workload:
  groups:
  - name: all
    schedulingPolicy: {gang: {minGroupCount: 1}}
    groups:
    - {name: main, schedulingPolicy: {gang: {minCount: 2}}}
"""


def groups_of_groups_are_refused(story: Story) -> None:
    """A Job asks for a CompositePodGroup where there are none.

    Raises:
        AssertionError: its condition does not name what is missing, or its pods do not run in a stand-in.
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
        one
        for one in story.recording.now("Job")["sweep"]["status"]["conditions"]
        if one["type"] == "muster.dev/PodGroupsReady"
    )
    for words in ("muster.dev/pod-group-policy", "workload.groups", "CompositePodGroup", "v1alpha3"):
        assert words in condition["message"]
    assert story.policy("main") == {"basic": {}}
    assert story.recording.now("Workload") == {}
