"""JobSets without a Trainer become gangs."""

from __future__ import annotations

import pytest

from tests.e2e.support.owners import a_jobset
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_replicas_of_a_replicated_job_are_one_gang(story: RealStory) -> None:
    """Two replicas of three pods are one group of six, beside the driver's group of one."""
    story.add_nodes(2)
    jobset = story.create(a_jobset("sim", {"driver": (1, 1), "workers": (2, 3)}))
    story.wait("all seven pods run", lambda now: now.running() == 7)

    assert story.policy("driver") == {"gang": {"minCount": 1}}
    assert story.policy("workers") == {"gang": {"minCount": 6}}
    assert set(story.recording.now("Workload")) == {"sim"}
    story.wait_for_true("JobSet", "sim", "PodGroupsScheduled")
    story.delete(jobset)
    story.wait("nothing is left", lambda now: not now.leftovers())


def test_a_restarted_jobset_runs_again_in_its_old_group(story: RealStory) -> None:
    """New pods of a restart are gated and lifted when all are there; the group is the one of before."""
    story.add_nodes(2)
    story.create(a_jobset("sim", {"workers": (1, 3)}, cpu=4, max_restarts=2))
    story.wait("three pods run", lambda now: now.running() == 3)
    before, groups = {pod["metadata"]["uid"] for pod in story.pods()}, set(story.groups())

    story.finish_pods(story.pods()[:1], "Failed")
    story.wait(
        "three new pods run",
        lambda now: now.running() == 3 and not before & {pod["metadata"]["uid"] for pod in now.pods()},
    )
    assert set(story.groups()) == groups
    assert story.recording.now("JobSet")["sim"]["status"]["restarts"] == 1
