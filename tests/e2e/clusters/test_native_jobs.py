"""The alpha gate WorkloadWithJob with the overlay native-jobs: plain Jobs are the Job controller's."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import DEFAULT_GATES, Release
from tests.e2e.support.bystanders import groupers, job_controller_is_asked, made_twice, scattered
from tests.e2e.support.owners import a_job, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
OPTIONS = ClusterOptions(release=Release("1.37", gates=(*DEFAULT_GATES["1.37"], "WorkloadWithJob")))
OVERLAY = "native-jobs"
JOBS = 100


def test_every_plain_job_is_a_gang_of_the_job_controller(story: RealStory) -> None:
    """A hundred Jobs at once are all gangs, and Muster made not one object for them."""
    assert job_controller_is_asked(story)
    story.add_nodes(4, cpu=64)
    for number in range(JOBS):
        story.create(a_job(f"job-{number}", pods=2))
    story.wait("all pods run", lambda now: now.running() == 2 * JOBS, 300)
    story.recording.quiet(3)
    makers = groupers(story)
    assert len(makers) == JOBS
    assert {job: creators for job, creators in makers.items() if creators != {"upstream"}} == {}
    assert {group["spec"]["schedulingPolicy"]["gang"]["minCount"] for group in story.groups().values()} == {2}
    assert made_twice(story) == {}
    assert scattered(story) == {}
    assert story.writes() == []


def test_a_trainjob_is_grouped_by_muster(story: RealStory) -> None:
    """The Job controller looks at Jobs without an owner only."""
    story.add_nodes(2)
    story.create(a_trainjob("llama", "torch-distributed", nodes=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("trainer") == {"gang": {"minCount": 3}}
