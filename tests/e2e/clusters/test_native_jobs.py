"""The alpha gate WorkloadWithJob with the overlay native-jobs: plain Jobs are the Job controller's."""

from __future__ import annotations

import pytest

from tests.e2e.clusters import test_workload_with_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
OPTIONS = test_workload_with_job.OPTIONS
OVERLAY = "native-jobs"

test_a_trainjob_is_grouped_by_muster = test_workload_with_job.test_a_trainjob_is_grouped_by_muster


def test_every_plain_job_is_a_gang_of_the_job_controller(story: RealStory) -> None:
    """A hundred Jobs at once are all gangs, and Muster made not one object for them."""
    test_workload_with_job.assert_the_job_controller_makes_all_gangs(story)
    assert story.writes() == []
