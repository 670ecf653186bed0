"""Restarts at which the scheduler alone would run a part of a gang: all of it runs again, or nothing."""

from __future__ import annotations

import pytest

from muster.policy.group_labels import GATE
from tests.e2e.support.owners import Object, a_job, a_jobset
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_a_member_that_had_succeeded_counts_again_after_a_restart(story: RealStory) -> None:
    """MinCount had fallen to two, and two have room: none of the three is bound before all can be."""
    story.add_nodes(2, cpu=4)
    story.create(a_jobset("sim", {"workers": (1, 3)}, cpu=2, max_restarts=1))
    story.wait("three pods run", lambda now: now.running() == 3)
    before = uids(story.pods())
    first, second, _ = story.running_of("workers")
    story.finish_pods([first])
    story.wait("minCount is two", lambda now: now.policy("workers") == {"gang": {"minCount": 2}})
    _take_room(story)

    story.finish_pods([second], "Failed")
    story.wait("three new pods are made", lambda now: len(_new(now, before)) == 3)
    story.wait("minCount is three", lambda now: now.policy("workers") == {"gang": {"minCount": 3}}, 90)
    story.wait("no gate is left", lambda now: not any(map(now.gates, now.pods())), 90)
    story.recording.quiet()
    assert [pod for pod in _new(story, before) if "nodeName" in pod["spec"]] == []

    story.add_nodes(1)
    story.wait("all three run", lambda now: len(now.running_of("workers")) == 3, 90)


def test_new_pods_wait_for_a_job_whose_old_pods_still_terminate(story: RealStory) -> None:
    """The scheduler would count the old ones, which terminate, and run two of four."""
    story.add_nodes(2, cpu=4)
    story.create(a_jobset("sim", {"workers": (2, 2)}, cpu=2, max_restarts=1))
    story.wait("four pods run", lambda now: now.running() == 4)
    before = uids(story.pods())
    hanging, others = (_of_job(story, index) for index in "01")
    story.hang(hanging)
    story.finish_pods(others[:1], "Failed")

    story.wait("two new pods are made", lambda now: len(_new(now, before)) == 2)
    story.recording.quiet(4)
    new = _new(story, before)
    assert sum(GATE in story.gates(pod) for pod in new) == 1
    assert not any("nodeName" in pod["spec"] for pod in new)
    story.hang(hanging, None)
    story.wait("four new pods run", lambda now: now.running() == len(_new(now, before)) == 4, 90)


def _take_room(story: RealStory) -> None:
    """Another user's pods leave room for two."""
    story.create(a_job("other", pods=2, cpu=2, labels={"muster.dev/group": "none"}))
    story.wait("the room is taken", lambda now: len(now.ungrouped()) == 2)


def _of_job(story: RealStory, index: str) -> list[Object]:
    """The pods of one of the JobSet's Jobs."""
    return [pod for pod in story.pods() if pod["metadata"]["labels"][_JOB_INDEX] == index]


def _new(story: RealStory, before: set[str]) -> list[Object]:
    """The gang's pods that were not there before."""
    pods = [pod for pod in story.pods() if story.group_name(pod)]
    return [pod for pod in pods if pod["metadata"]["uid"] not in before]


_JOB_INDEX = "jobset.sigs.k8s.io/job-index"
