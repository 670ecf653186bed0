"""Gangs that wait for room longer than `schedulingTimeoutSeconds` of their policy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.data import EVENTING
from muster.simulator.overlays import load
from tests.cluster import manifests
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job, a_jobset, a_trainjob, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

LIMIT = 3
OWNERS = {
    "TrainJob": a_trainjob("big", "torch-distributed", nodes=4),
    "JobSet": a_jobset("big", {"workers": (1, 4)}),
    "Job": a_job("big", pods=4),
}


def waiting(owner: Object, then: str) -> Object:
    """The owner, which may wait three seconds."""
    return with_policy(owner, f"workload: {{schedulingTimeoutSeconds: {LIMIT}, onTimeout: {then}}}")


def sweep_until_it_timed_out(story: RealStory, muster: Muster, kind: str) -> None:
    """Let the scheduler refuse the gang, wait for longer than the limit, and sweep."""
    story.wait_for_reason(kind, "big", "PodGroupsScheduled", "Unschedulable")
    story.recording.quiet(LIMIT + 1)
    muster.sweep()
    story.wait(
        "it says that it timed out",
        lambda now: (
            now.reason(kind, "big", "PodGroupsScheduled") == "SchedulingTimedOut"
            or bool(now.messages("SchedulingTimedOut"))
        ),
    )


@pytest.fixture
def may_suspend(story: RealStory) -> Iterator[None]:
    """The rights of eventing/components/suspend-after-timeout."""
    applied = manifests.apply(story.api, load(EVENTING / "components" / "suspend-after-timeout"))
    yield
    for obj in applied:
        story.api.must("DELETE", manifests.path(obj))


def test_by_default_the_owner_only_says_so(story: RealStory, muster_on_it: Muster) -> None:
    """It goes on waiting, and runs as a gang when there is room."""
    story.add_nodes(1, cpu=2)
    story.create(waiting(OWNERS["Job"], "Report"))
    sweep_until_it_timed_out(story, muster_on_it, "Job")
    assert (story.running(), story.policy("main")) == (0, {"gang": {"minCount": 4}})
    story.add_nodes(1, cpu=4)
    story.wait("four pods run", lambda now: now.running() == 4)
    story.wait_for_reason("Job", "big", "PodGroupsScheduled", "Scheduled")


@pytest.mark.parametrize("kind", list(OWNERS))
def test_with_basic_its_pods_run_one_by_one(story: RealStory, muster_on_it: Muster, kind: str) -> None:
    """As many as fit; the owner says why, and later sweeps do not raise minCount again."""
    story.add_nodes(1, cpu=2)
    story.create(waiting(OWNERS[kind], "Basic"))
    sweep_until_it_timed_out(story, muster_on_it, kind)
    story.wait("two pods run", lambda now: now.running() == 2)
    story.wait_for_reason(kind, "big", "PodGroupsReady", "SchedulingTimedOut")
    muster_on_it.sweep()
    story.recording.quiet()
    (group,) = story.groups().values()
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 1}}


@pytest.mark.parametrize("kind", list(OWNERS))
@pytest.mark.usefixtures("may_suspend")
def test_with_suspend_it_gives_its_place_in_the_queue_back(
    story: RealStory, muster_on_it: Muster, kind: str
) -> None:
    """Its pods go, and its condition says why until a person resumes it; then it waits anew."""
    story.add_nodes(1, cpu=2)
    owner = story.create(waiting(OWNERS[kind], "Suspend"))
    sweep_until_it_timed_out(story, muster_on_it, kind)
    story.wait_for_reason(kind, "big", "PodGroupsScheduled", "SchedulingTimedOut")
    muster_on_it.sweep()
    story.wait_for(owner, "it is suspended", lambda now: bool(now["spec"].get("suspend")))
    story.wait("its pods are gone", lambda now: not now.pods())
    muster_on_it.sweep()
    assert muster_on_it.idle()
    assert story.reason(kind, "big", "PodGroupsScheduled") == "SchedulingTimedOut"
    story.add_nodes(1, cpu=4)
    story.patch(owner, {"spec": {"suspend": False}})
    story.wait("four pods run", lambda now: now.running() == 4)
