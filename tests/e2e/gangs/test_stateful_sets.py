"""StatefulSets that are gangs by a label on their template, on the real controllers and scheduler."""

from __future__ import annotations

import pytest

from muster.policy.group_labels import GATE
from tests.e2e.gangs.workloads import a_stateful_set, min_counts, scaled
from tests.e2e.support.muster import Muster
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_a_stateful_set_waits_for_room_and_runs_whole(story: RealStory) -> None:
    """Four pods, room for three: none is bound; the group is the StatefulSet's, and no Workload is made."""
    story.add_nodes(1, cpu=3)
    created = story.create(a_stateful_set("web", 4))
    story.wait("the scheduler refused it", lambda now: "Unschedulable" in str(now.groups()))
    assert story.running() == 0
    story.wait("an Event on it says why", lambda now: _told(now, "Unschedulable") == {"StatefulSet web"})
    (group,) = story.groups().values()
    assert group["metadata"]["name"] == f"web-main-{created['metadata']['uid'][:8]}"
    assert [one["uid"] for one in group["metadata"]["ownerReferences"]] == [created["metadata"]["uid"]]
    assert min_counts(story) == [4]

    story.add_nodes(1, cpu=1)
    story.wait("four pods run", lambda now: now.running() == 4)
    story.wait("an Event says so", lambda now: _told(now, "Scheduled") == {"StatefulSet web"})
    assert story.recording.now("Workload") == {}


def test_a_restart_is_held_until_all_pods_exist(story: RealStory) -> None:
    """All are deleted and one hangs: none of the three new ones runs; the scheduler alone would bind them."""
    story.add_nodes(1, cpu=4)
    story.create(a_stateful_set("web", 4))
    story.wait("four pods run", lambda now: now.running() == 4)
    before = uids(story.pods())
    hanging = story.pods()[:1]
    story.hang(hanging)
    for pod in story.pods():
        story.delete({"apiVersion": "v1", "kind": "Pod", **pod})
    story.wait("three new pods exist", lambda now: len(uids(now.pods()) - before) == 3)
    story.recording.quiet(4)
    new = [pod for pod in story.pods() if pod["metadata"]["uid"] not in before]
    assert not any("nodeName" in pod["spec"] for pod in new)
    assert [story.gates(pod) for pod in new] == [{GATE}] * 3

    story.hang(hanging, None)
    story.wait("four new pods run", lambda now: now.running() == 4 and not uids(now.pods()) & before)


def test_it_is_scaled_and_updated_while_it_runs(story: RealStory, muster_on_it: Muster) -> None:
    """Added pods join alone, minCount follows at sweeps; a rolling update and a lost pod go one by one."""
    story.add_nodes(2, cpu=4)
    created = story.create(a_stateful_set("web", 4))
    story.wait("four pods run", lambda now: now.running() == 4)
    scaled(story, created, 6)
    story.wait("six pods run", lambda now: now.running() == 6)
    muster_on_it.sweep()
    story.wait("minCount follows", lambda now: min_counts(now) == [6])
    scaled(story, created, 3)
    story.wait("three pods are left", lambda now: len(now.pods()) == 3)
    before = uids(story.pods())
    story.patch(created, {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}})
    story.wait("all are replaced", lambda now: now.running() == 3 and not uids(now.pods()) & before, 90)
    assert min_counts(story) == [3]
    assert len(story.groups()) == 1


def test_a_suspended_one_resumes_whole_with_another_size(story: RealStory, muster_on_it: Muster) -> None:
    """Scaled to none and to five, of which four have room: none runs. Without pods the group ends."""
    story.add_nodes(1, cpu=4)
    created = story.create(a_stateful_set("web", 4))
    story.wait("four pods run", lambda now: now.running() == 4)
    scaled(story, created, 0)
    story.wait("no pod is left", lambda now: not now.pods())
    scaled(story, created, 5)
    story.wait(
        "five pods are ungated", lambda now: len(now.pods()) == 5 and not any(map(now.gates, now.pods()))
    )
    story.recording.quiet()
    assert story.running() == 0
    assert min_counts(story) == [5]

    scaled(story, created, 0)
    story.wait("no pod is left", lambda now: not now.pods())
    with muster_on_it.without_sweeps():
        muster_on_it.sweep()
        story.recording.quiet(6)
        assert len(story.groups()) == 1
        muster_on_it.sweep()
        story.wait("the group is removed", lambda now: not now.groups())


def test_a_default_stateful_set_starts_pod_by_pod_and_says_why(story: RealStory) -> None:
    """OrderedReady makes pod 1 when pod 0 is ready, so a gang would wait for ever."""
    story.add_nodes(1)
    story.create(a_stateful_set("web", 3, podManagementPolicy="OrderedReady"))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert "podManagementPolicy: Parallel" in story.messages("WaitsForItself")
    assert min_counts(story) == [0]


def test_deleted_and_created_under_its_name_it_is_another_gang(story: RealStory) -> None:
    """Three, and at once five of the same name."""
    story.add_nodes(1)
    created = story.create(a_stateful_set("web", 3))
    story.wait("three pods run", lambda now: now.running() == 3)
    story.delete(created)
    story.create(a_stateful_set("web", 5))
    story.wait("five pods run", lambda now: now.running() == 5 and min_counts(now) == [5])


def test_the_gate_shows_that_pods_are_missing(story: RealStory) -> None:
    """A quota lets two of four in: they keep their gates, and the scheduler is not asked."""
    story.add_nodes(1)
    hard = {"hard": {"pods": "2"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": hard}
    created = story.create(quota)
    story.wait_for(created, "it is enforced", lambda now: bool(now.get("status", {}).get("hard")))
    story.create(a_stateful_set("web", 4))
    story.wait("two pods are made", lambda now: len(now.pods()) == 2)
    story.recording.quiet()
    assert [story.gates(pod) for pod in story.pods()] == [{GATE}] * 2
    story.patch(created, {"spec": {"hard": {"pods": "10"}}})
    story.wait("four pods run", lambda now: now.running() == 4, 90)


def _told(story: RealStory, reason: str) -> set[str]:
    """Return the objects about which Muster made an Event with a reason."""
    events = [event for event in story.recording.now("Event").values() if event["reason"] == reason]
    musters = [event for event in events if "muster" in event.get("reportingComponent", "")]
    about = [event["involvedObject"] for event in musters]
    return {f"{one['kind']} {one['name']}" for one in about}
