"""A JobSet whose groups are placed together, and what stories ask of it."""

from __future__ import annotations

from typing import Any

from tests.e2e.support.owners import Object, a_jobset
from tests.e2e.support.story import Story

POLICY = "workload: {groups: [{name: chat, groups: [{name: prefill}, {name: decode}]}]}"


def chat(name: str = "chat", **failure_policy: Any) -> Object:
    """Prefill and decode, two pods of two CPUs each, that are of no use without one another."""
    jobset = a_jobset(name, {"prefill": (1, 2), "decode": (1, 2)}, cpu=2, max_restarts=2)
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
