"""Plain Jobs become gangs, and follow when they are scaled."""

from __future__ import annotations

import pytest

from tests.e2e.support.owners import Object, a_job
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def _scale(story: RealStory, job: Object, pods: int) -> None:
    story.patch(job, {"spec": {"parallelism": pods, "completions": pods}})


def _min_counts(story: RealStory) -> tuple[int, int]:
    """Return minCount of the only Workload's only template and of its PodGroup."""
    (template,) = story.templates().values()
    return template["gang"]["minCount"], story.policy("main")["gang"]["minCount"]


def _fail_and_be_replaced(story: RealStory, pod: Object) -> None:
    """Let one of two running pods fail, and wait until another one runs in its place."""
    before = uids(story.pods())
    story.finish_pods([pod], "Failed")
    story.wait("its replacement runs", lambda now: now.running() == 2 and bool(uids(now.pods()) - before))


def test_an_indexed_job_runs_as_one_gang(story: RealStory) -> None:
    """Four pods are one group of four; it completes, and its conditions carry Muster's prefix."""
    story.add_nodes(2)
    story.create(a_job("sweep", pods=4, cpu=3))
    story.wait("four pods run", lambda now: now.running() == 4)

    assert _min_counts(story) == (4, 4)
    story.wait_for_true("Job", "sweep", "PodGroupsScheduled")
    types = {condition["type"] for condition in story.recording.now("Job")["sweep"]["status"]["conditions"]}
    assert "muster.dev/PodGroupsScheduled" in types
    story.finish_pods(story.pods())
    story.wait_for_true("Job", "sweep", "Complete")


def test_a_job_scaled_up_grows_its_gang(story: RealStory) -> None:
    """Two more pods are bound, and minCount follows on Workload and PodGroup."""
    story.add_nodes(3)
    job = story.create(a_job("sweep", pods=4, cpu=3))
    story.wait("four pods run", lambda now: now.running() == 4)

    _scale(story, job, 6)
    story.wait("six pods run", lambda now: now.running() == 6)
    story.wait("minCount is six", lambda now: _min_counts(now) == (6, 6))


def test_a_replacement_after_others_finished_is_placed(story: RealStory) -> None:
    """With every pod that succeeded minCount falls, else a failed one's replacement would wait for ever."""
    story.add_nodes(1)
    story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)

    first, second, _ = sorted(story.pods(), key=lambda pod: pod["metadata"]["name"])
    story.finish_pods([first])
    story.wait("minCount is two", lambda now: _min_counts(now)[1] == 2)
    _fail_and_be_replaced(story, second)
