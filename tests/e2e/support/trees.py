"""A JobSet with a CompositePodGroup, and queries of its groups."""

from __future__ import annotations

from typing import Any

from tests.e2e.support.owners import Object, a_jobset
from tests.e2e.support.story import RealStory

POLICY = "workload: {groups: [{name: chat, groups: [{name: prefill}, {name: decode}]}]}"


def chat(name: str = "chat", **failure_policy: Any) -> Object:
    """Return a JobSet of prefill and decode, two pods of two CPUs each, with a CompositePodGroup."""
    jobset = a_jobset(name, {"prefill": (1, 2), "decode": (1, 2)}, cpu=2, max_restarts=2, apart=True)
    jobset["metadata"]["annotations"] = {"muster.dev/pod-group-policy": POLICY}
    jobset["spec"]["failurePolicy"] |= failure_policy
    return jobset


def runs(story: RealStory) -> None:
    """Add nodes with room for exactly the four pods, and wait until they run."""
    story.add_nodes(2, cpu=4)
    story.wait("four pods run", lambda now: now.running() == 4)
    assert min_group_count(story) == 2


def min_group_count(story: RealStory) -> int:
    """Return minGroupCount of the only CompositePodGroup; 0 while it is being replaced."""
    composites = story.recording.now("CompositePodGroup").values()
    return sum(composite["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] for composite in composites)


def uids(pods: list[Object]) -> set[str]:
    """Return the UIDs of pods, which differ from those of their replacements."""
    return {pod["metadata"]["uid"] for pod in pods}
