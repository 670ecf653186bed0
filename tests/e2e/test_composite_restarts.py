"""Gangs of gangs over a restart: of the whole JobSet, and of one of its Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.cluster import Options
from tests.e2e.support.laws import group_of
from tests.e2e.support.owners import Object, a_job, a_jobset
from tests.e2e.support.story import Story

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = Options(jobset_gates=("RestartJob",))
OVERLAY = "composite-pod-groups"

POLICY = "workload: {groups: [{name: chat, groups: [{name: prefill}, {name: decode}]}]}"


def chat(**failure_policy: Any) -> Object:
    """Prefill and decode, two pods of two CPUs each, that are of no use without one another."""
    jobset = a_jobset("chat", {"prefill": (1, 2), "decode": (1, 2)}, cpu=2, max_restarts=2)
    jobset["metadata"]["annotations"] = {"muster.dev/pod-group-policy": POLICY}
    jobset["spec"]["failurePolicy"] |= failure_policy
    return jobset


def runs(story: Story) -> None:
    """Begin with room for just all four pods."""
    story.add_nodes(2, cpu=4)
    story.wait("four pods run", lambda now: now.running() == 4)
    assert min_group_count(story) == 2


def min_group_count(story: Story) -> int:
    """Of the one CompositePodGroup; 0 while another one takes its place."""
    composites = story.recording.now("CompositePodGroup").values()
    return sum(one["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] for one in composites)


def uids(pods: list[Object]) -> set[str]:
    """What tells a pod from its successor."""
    return {pod["metadata"]["uid"] for pod in pods}


def bound(story: Story, before: set[str]) -> list[str]:
    """New pods of the gang that have a node."""
    new = [pod for pod in story.pods() if group_of(pod) and pod["metadata"]["uid"] not in before]
    return [pod["metadata"]["name"] for pod in new if pod["spec"].get("nodeName")]


def hang(story: Story, pods: list[Object], value: str | None) -> None:
    """Let pods stay in termination until the annotation is taken away."""
    for pod in pods:
        change = {"metadata": {"annotations": {"muster.dev/test-hangs": value}}}
        story.patch({"apiVersion": "v1", "kind": "Pod", **pod}, change)


def takes_the_room(story: Story) -> None:
    """Somebody else's pods take half of every node."""
    story.create(a_job("other", pods=2, cpu=2, labels={"muster.dev/group": "none"}))
    story.wait("the room is taken", lambda now: len(now.ungrouped()) == 2)


def test_a_restarted_child_waits_for_siblings_that_still_terminate(story: Story) -> None:
    """The scheduler counts them: prefill alone would be placed beside the old decode, and keep the room."""
    story.create(chat())
    runs(story)
    before = uids(story.pods())
    hanging = story.running_of("decode")
    hang(story, hanging, "true")

    story.finish_pods(story.running_of("prefill")[:1], "Failed")
    story.wait("prefill is there again", lambda now: len(uids(now.pods()) - before) == 2, 60)
    story.recording.quiet()
    assert bound(story, before) == []

    takes_the_room(story)
    hang(story, hanging, None)
    story.wait("decode is there again", lambda now: len(uids(now.pods()) - before) == 6, 60)
    story.wait("no gate is left", lambda now: not any(map(now.gates, now.pods())))
    story.recording.quiet()
    assert bound(story, before) == []

    story.add_nodes(1, cpu=4)
    story.wait("all four run again", lambda now: len(bound(now, before)) == 4 and now.running() == 6, 60)


def test_a_quorum_that_fell_is_raised_before_a_restarted_gang_runs(story: Story) -> None:
    """Decode ended, so one group was enough; after the restart neither runs without the other."""
    story.create(chat())
    runs(story)
    before = uids(story.pods())
    story.finish_pods(story.running_of("decode"))
    story.wait("prefill is enough", lambda now: min_group_count(now) == 1, 30)
    takes_the_room(story)

    story.finish_pods(story.running_of("prefill")[:1], "Failed")
    story.wait("all are there again", lambda now: len(uids(now.pods()) - before) == 6, 60)
    story.wait("no gate is left", lambda now: not any(map(now.gates, now.pods())))
    story.recording.quiet()
    assert (min_group_count(story), bound(story, before)) == (2, [])

    story.add_nodes(1, cpu=4)
    story.wait("all four run again", lambda now: len(bound(now, before)) == 4 and now.running() == 6, 60)


def test_one_child_is_restarted_while_its_sibling_runs(story: Story) -> None:
    """Only decode's Job is made anew: its pods come back as a gang, and prefill runs on as it is."""
    rule = {"name": "decode", "action": "RestartJob", "targetReplicatedJobs": ["decode"]}
    story.create(chat(rules=[rule]))
    runs(story)
    prefill, decode = uids(story.running_of("prefill")), uids(story.running_of("decode"))

    story.finish_pods(story.running_of("decode")[:1], "Failed")
    story.wait(
        "decode runs again",
        lambda now: len(uids(now.running_of("decode")) - decode) == 2 and now.running() == 4,
        60,
    )
    assert uids(story.running_of("prefill")) == prefill
    assert min_group_count(story) == 2
