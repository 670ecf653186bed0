"""Gangs of gangs over a restart of their JobSet: all of it runs again, or nothing."""

from __future__ import annotations

import pytest

from muster.replay.summary import group_of
from tests.e2e.support.owners import a_job
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import chat, runs, uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OVERLAY = "composite-pod-groups"


def bound(story: RealStory, before: set[str]) -> list[str]:
    """New pods of the gang that have a node."""
    new = [pod for pod in story.pods() if group_of(pod) and pod["metadata"]["uid"] not in before]
    return [pod["metadata"]["name"] for pod in new if pod["spec"].get("nodeName")]


def takes_the_room(story: RealStory) -> None:
    """Another user's pods take half of every node."""
    story.create(a_job("other", pods=2, cpu=2, labels={"muster.dev/group": "none"}))
    story.wait("the room is taken", lambda now: len(now.ungrouped()) == 2)


def test_a_restarted_child_waits_for_siblings_that_still_terminate(story: RealStory) -> None:
    """The scheduler counts them: prefill alone would be placed beside the old decode, and keep the room."""
    story.create(chat())
    runs(story)
    before = uids(story.pods())
    hanging = story.running_of("decode")
    story.hang(hanging)

    story.finish_pods(story.running_of("prefill")[:1], "Failed")
    story.wait("prefill is there again", lambda now: len(uids(now.pods()) - before) == 2)
    story.recording.quiet()
    assert bound(story, before) == []

    takes_the_room(story)
    story.hang(hanging, None)
    story.wait("decode is there again", lambda now: len(uids(now.pods()) - before) == 6)
    story.wait("no gate is left", lambda now: not any(map(now.gates, now.pods())))
    story.recording.quiet()
    assert bound(story, before) == []

    story.add_nodes(1, cpu=4)
    story.wait("all four run again", lambda now: len(bound(now, before)) == 4 and now.running() == 6)
