"""Kubernetes 1.36 with the alpha gate WorkloadWithJob: why `muster check` asks to switch it off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.local.stories.laws import min_count
from muster.replay.summary import group_of
from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import DEFAULT_GATES, Release
from tests.e2e.support.owners import a_job, a_jobset
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(release=Release("1.36", gates=(*DEFAULT_GATES["1.36"], "WorkloadWithJob")))


def test_every_indexed_job_of_several_pods_is_a_gang_unasked(begin_story: Callable[..., RealStory]) -> None:
    """Without opt-in no Job is labelled; each Job of a JobSet is a gang, which no field prevents."""
    story = begin_story(opted_in=False)
    story.add_nodes(1)
    story.create(a_job("sweep", pods=2))
    story.create(a_jobset("sim", {"workers": (2, 2)}))
    story.wait("six pods run", lambda now: now.running() == 6, 90)
    assert story.writes() == []
    assert [min_count(group) for group in story.groups().values()] == [2, 2, 2]
    assert {group_of(pod) for pod in story.pods()} == set(story.groups())
    owners = [group["metadata"]["ownerReferences"] for group in story.groups().values()]
    jobs = sorted(
        reference["name"] for references in owners for reference in references if reference["kind"] == "Job"
    )
    assert jobs == ["sim-workers-0", "sim-workers-1", "sweep"]
