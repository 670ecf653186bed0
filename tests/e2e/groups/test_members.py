"""Members that fail for good, come late, or have a priority; groups that cannot be what was asked for."""

from __future__ import annotations

import pytest

from tests.e2e.support.owners import Object, a_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_an_index_that_failed_for_good_no_longer_counts(story: RealStory) -> None:
    """An index whose tries are used up never comes again, so the others need one less."""
    story.add_nodes(1)
    job = a_job("sweep", pods=3)
    job["spec"] |= {"backoffLimitPerIndex": 0, "maxFailedIndexes": 2}
    del job["spec"]["backoffLimit"]
    story.create(job)
    story.wait("three pods run", lambda now: now.running() == 3)

    story.finish_pods([_of_index(story, "0")], "Failed")
    story.wait("index 0 has failed for good", lambda now: _failed_indexes(now) == "0")
    story.wait("minCount is two", lambda now: now.policy("main") == {"gang": {"minCount": 2}})
    assert story.running() == 2


def test_a_quota_that_lets_half_a_gang_in_holds_all_of_it(story: RealStory) -> None:
    """Two of four pods are made and wait; when the quota is raised the others come and all are bound."""
    story.add_nodes(1)
    hard = {"hard": {"pods": "2"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": hard}
    created = story.create(quota)
    story.wait_for(created, "it is enforced", lambda now: bool(now.get("status", {}).get("hard")))
    story.create(a_job("sweep", pods=4))
    story.wait("two pods are made", lambda now: len(now.pods()) == 2)
    story.recording.quiet()
    assert story.running() == 0
    assert "conditions" not in story.group("main").get("status", {})
    story.wait("an Event says why", lambda now: "exceeded quota" in now.messages("FailedCreate"))

    story.patch(created, {"spec": {"hard": {"pods": "10"}}})
    story.wait("four pods run", lambda now: now.running() == 4)


def _of_index(story: RealStory, index: str) -> Object:
    """Return the running pod of a completion index."""
    label = "batch.kubernetes.io/job-completion-index"
    running = [pod for pod in story.pods() if pod["status"].get("phase") == "Running"]
    return next(pod for pod in running if pod["metadata"]["labels"][label] == index)


def _failed_indexes(story: RealStory) -> str:
    indexes: str = story.recording.now("Job")["sweep"]["status"].get("failedIndexes", "")
    return indexes
