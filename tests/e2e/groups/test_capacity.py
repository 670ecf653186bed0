"""Gangs that do not fit, and gangs that want the same room."""

from __future__ import annotations

import pytest

from muster.replay.summary import group_of
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import a_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def _reasons(story: RealStory) -> list[str]:
    """The reason of each pod's condition PodScheduled."""
    conditions = [condition for pod in story.pods() for condition in pod["status"].get("conditions") or []]
    return [entry.get("reason", "") for entry in conditions if entry["type"] == "PodScheduled"]


def test_a_gang_that_does_not_fit_waits_as_a_whole_until_it_does(story: RealStory) -> None:
    """Nothing is bound and the owner says how much is missing; with one more node all are bound."""
    story.add_nodes(3)
    story.create(a_job("big", pods=4, cpu=6))
    story.wait_for_reason("Job", "big", "PodGroupsScheduled", "Unschedulable")
    said = story.message("Job", "big", "PodGroupsScheduled")
    assert "3 of 4 pods would fit; the next lacks cpu on 3 of 3 nodes; pod group" in said
    story.recording.quiet()
    assert story.nodes_of_pods() == {}

    story.add_nodes(1)
    story.wait("four pods run", lambda now: now.running() == 4)
    story.wait_for_true("Job", "big", "PodGroupsScheduled")


def test_gated_and_unschedulable_gangs_look_to_an_autoscaler_like_other_pods(
    story: RealStory, muster_on_it: Muster
) -> None:
    """Cluster Autoscaler and Karpenter add nodes for pods with PodScheduled False, reason Unschedulable.

    A gated pod has another reason; of a gang that does not fit, every pod has this one.
    """
    story.add_nodes(1, cpu=2)
    with muster_on_it.without_function("create-pod-groups"):
        story.create(a_job("big", pods=3))
        story.wait("a pod is gated", lambda now: "SchedulingGated" in _reasons(now))
        assert "Unschedulable" not in _reasons(story)
    muster_on_it.sweep()
    story.wait("all ask for room", lambda now: _reasons(now) == ["Unschedulable"] * 3)
    assert story.nodes_of_pods() == {}


def test_two_gangs_that_each_need_the_whole_cluster_run_one_after_the_other(story: RealStory) -> None:
    """One runs, the other waits without a pod bound, and runs when the first is done. No deadlock."""
    story.add_nodes(2)
    for name in ("left", "right"):
        story.create(a_job(name, pods=4, cpu=4))
    story.wait("one of them runs", lambda now: now.running() == 4)
    story.recording.quiet()
    winners = {group_of(pod) for pod in story.pods() if pod["spec"].get("nodeName")}
    assert len(winners) == 1, "the two share the cluster and neither can finish"

    first = [pod for pod in story.pods() if group_of(pod) in winners]
    story.finish_pods(first)
    story.wait("the other one runs", lambda now: now.running() == 4 and not winners & _groups_running(now))


def _groups_running(story: RealStory) -> set[str]:
    return {group_of(pod) for pod in story.pods() if pod["status"].get("phase") == "Running"}
