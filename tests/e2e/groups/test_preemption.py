"""Gangs under preemption by priority: which pods are evicted, and the condition of their owner.

Only the real scheduler preempts; the simulated one lets pods of a higher priority wait.
"""

from __future__ import annotations

from typing import Any

import pytest

from muster.local.stories.watching import Entry
from tests.e2e.support.owners import a_job, a_jobset, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SECONDS_TO_TELL = 8.0
SINGLE = "workload: {groups: [{name: main, disruptionMode: {single: {}}}]}"
TREE = "workload: {groups: [{name: zone, groups: [{name: prefill}, {name: decode}]}]}"


def urgent_job(priority_class: str) -> dict[str, Any]:
    """Return a Job of one pod with a priority class."""
    job = a_job("urgent", pods=1)
    job["spec"]["template"]["spec"]["priorityClassName"] = priority_class
    return job


def test_a_gang_is_evicted_as_a_whole_and_runs_again_as_a_whole(story: RealStory) -> None:
    """One pod of a higher priority takes the room of one member; the other two do not hold theirs."""
    story.add_nodes(1, cpu=3)
    story.create(a_job("low", pods=3))
    story.wait("the gang runs", lambda now: now.running() == 3)
    story.wait_for_true("Job", "low", "PodGroupsScheduled")
    assert story.group("main")["spec"]["disruptionMode"] == {"all": {}}

    story.create(urgent_job(story.priority_class("high", 1000)))
    story.wait("the urgent pod runs", lambda now: _running(now, "urgent") == 1)
    story.wait("no member runs", lambda now: _running(now, "low") == 0)
    story.wait("it says so", lambda now: "MembersLost" in _reasons(now, "Job"))
    assert _seconds_until_told(story, "Job") < SECONDS_TO_TELL
    story.wait("an Event says so", lambda now: "0 of 3 pods bound" in now.messages("MembersLost"))

    story.wait("three wait again", lambda now: _waiting(now) == 3, 60)
    story.wait_for_reason("Job", "low", "PodGroupsScheduled", "Unschedulable", 10)
    story.finish_pods([pod for pod in story.pods() if pod["metadata"]["name"].startswith("urgent")])
    story.wait("the gang runs again", lambda now: _running(now, "low") == 3)
    story.wait_for_true("Job", "low", "PodGroupsScheduled")


def test_disruption_mode_single_preempts_members_one_by_one(story: RealStory) -> None:
    """With `disruptionMode: single` two members run on, and the owner's condition says that one is lost."""
    story.add_nodes(1, cpu=3)
    story.create(with_policy(a_job("low", pods=3), SINGLE))
    story.wait("the gang runs", lambda now: now.running() == 3)
    story.wait_for_true("Job", "low", "PodGroupsScheduled")
    assert story.group("main")["spec"]["disruptionMode"] == {"single": {}}

    story.create(urgent_job(story.priority_class("high", 1000)))
    story.wait("the urgent pod runs", lambda now: _running(now, "urgent") == 1)
    story.wait("it says so", lambda now: "MembersLost" in _reasons(now, "Job"))
    assert _seconds_until_told(story, "Job") < SECONDS_TO_TELL
    story.wait("an Event says so", lambda now: "2 of 3 pods bound" in now.messages("MembersLost"))
    story.wait_for_reason("Job", "low", "PodGroupsScheduled", "Unschedulable", 40)
    assert _running(story, "low") == 2


def test_a_tree_of_gangs_is_evicted_as_a_whole(story: RealStory) -> None:
    """The victims are all pods below the highest group with `disruptionMode: all`."""
    story.add_nodes(1, cpu=4)
    low = a_jobset("low", {"prefill": (1, 2), "decode": (1, 2)}, max_restarts=5, apart=True)
    story.create(with_policy(low, TREE))
    story.wait("the tree runs", lambda now: now.running() == 4)
    story.wait_for_true("JobSet", "low", "PodGroupsScheduled")
    (zone,) = story.recording.now("CompositePodGroup").values()
    modes = [group["spec"]["disruptionMode"] for group in (zone, *story.groups().values())]
    assert modes == [{"all": {}}] * 3

    story.create(urgent_job(story.priority_class("high", 1000)))
    story.wait("the urgent pod runs", lambda now: _running(now, "urgent") == 1)
    story.wait("no member runs", lambda now: _running(now, "low") == 0)
    # JobSet makes the members again at once: the reason may be MembersLost, or that of the new ones.
    story.wait("it says so", lambda now: now.condition("JobSet", "low", "PodGroupsScheduled") == "False")


def _running(story: RealStory, owner: str) -> int:
    """How many pods of an owner run."""
    pods = [pod for pod in story.pods() if pod["metadata"]["name"].startswith(owner)]
    return sum(pod["status"].get("phase") == "Running" for pod in pods)


def _waiting(story: RealStory) -> int:
    """How many pods of the gang exist without gate and node."""
    pods = [pod for pod in story.pods() if pod["metadata"]["name"].startswith("low")]
    return sum(not pod["spec"].get("nodeName") and not story.gates(pod) for pod in pods)


def _reasons(story: RealStory, kind: str) -> list[str]:
    """Each reason that the owner's PodGroupsScheduled had."""
    return [reason for entry in story.recording.entries() if (reason := _reason_in(entry, kind))]


def _reason_in(entry: Entry, kind: str) -> str:
    if (entry.kind, entry.name) != (kind, "low"):
        return ""
    conditions = (entry.object.get("status") or {}).get("conditions") or []
    reasons = (entry["reason"] for entry in conditions if entry["type"].endswith("PodGroupsScheduled"))
    return next(reasons, "")


def _seconds_until_told(story: RealStory, kind: str) -> float:
    """Seconds from the eviction of the first member until the condition says so."""
    entries = story.recording.entries()
    lost = next(
        entry.at
        for entry in entries
        if entry.kind == "Pod"
        and entry.name.startswith("low")
        and (entry.change == "DELETED" or "deletionTimestamp" in entry.object["metadata"])
    )
    reported = next(entry.at for entry in entries if _reason_in(entry, kind) == "MembersLost")
    return reported - lost
