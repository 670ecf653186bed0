"""Groups end with the work: none while an owner is suspended or has ended, the same names at a resumption."""

from __future__ import annotations

import pytest

from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job, a_jobset, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PODS = 20
"""So many that the Job controller makes them in several batches."""

SUSPENDED: dict[str, Object] = {
    "TrainJob": a_trainjob("held", "torch-distributed", nodes=PODS, suspend=True),
    "JobSet": a_jobset("held", {"workers": (1, PODS)}),
    "Job": a_job("held", pods=PODS, suspend=True),
}
SUSPENDED["JobSet"]["spec"]["suspend"] = True


@pytest.mark.parametrize("kind", list(SUSPENDED))
def test_groups_end_with_the_work_and_come_again_with_it(
    story: RealStory, muster_on_it: Muster, kind: str
) -> None:
    """By events alone: created suspended, resumed, suspended twice, resumed, and ended."""
    story.add_nodes(3)
    with muster_on_it.without_sweeps():
        owner = story.create(SUSPENDED[kind])
        story.wait("its Workload is made", lambda now: len(now.recording.now("Workload")) == 1)
        story.wait("its condition says so", lambda now: _says_suspended(now, kind))
        assert muster_on_it.idle()
        assert story.groups() == {}

        _suspend(story, owner, suspended=False)
        story.wait("all pods run", lambda now: now.running() == PODS)
        ((name, first),) = story.groups().items()
        _suspend(story, owner)
        story.wait("pods and group are gone", lambda now: not now.pods() and not now.groups(), 90)
        story.wait("its condition says so", lambda now: _says_suspended(now, kind))

        _suspend(story, owner, suspended=False)
        story.wait("new pods come", lambda now: bool(now.pods()))
        _suspend(story, owner)
        story.wait("pods and group are gone", lambda now: not now.pods() and not now.groups(), 90)

        _suspend(story, owner, suspended=False)
        story.wait("all pods run", lambda now: now.running() == PODS, 90)
        story.wait_for_true(kind, "held", "PodGroupsScheduled")
        assert list(story.groups()) == [name]
        assert story.groups()[name]["metadata"]["uid"] != first["metadata"]["uid"]
        assert {story.group_name(pod) for pod in story.pods()} == {name}

        story.finish_pods(story.pods())
        story.wait("the group is gone", lambda now: not now.groups(), 90)
        story.wait_for_true(kind, "held", "Completed" if kind == "JobSet" else "Complete")
    muster_on_it.sweep()
    story.recording.quiet()
    assert (story.groups(), len(story.recording.now("Workload"))) == ({}, 1)
    assert {story.condition(kind, "held", f"PodGroups{what}") for what in ("Ready", "Scheduled")} == {"True"}


def test_a_group_stays_while_old_pods_terminate_so_that_new_ones_can_use_it(
    story: RealStory, muster_on_it: Muster
) -> None:
    """Deleted, it would be in their way until the last old pod is gone."""
    story.add_nodes(1)
    owner = story.create(a_job("held", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    old, (before,) = story.pods(), story.groups().values()
    story.hang(old)
    _suspend(story, owner)
    story.wait(
        "they terminate", lambda now: all("deletionTimestamp" in pod["metadata"] for pod in now.pods())
    )
    muster_on_it.sweep()
    story.recording.quiet()
    _suspend(story, owner, suspended=False)
    story.wait("three new ones run", lambda now: now.running() - len(old) == 3, 90)
    story.hang(old, None)
    story.wait("the old ones are gone", lambda now: len(now.pods()) == 3)
    (after,) = story.groups().values()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]


def _suspend(story: RealStory, owner: Object, *, suspended: bool = True) -> None:
    story.patch(owner, {"spec": {"suspend": suspended}})


def _says_suspended(story: RealStory, kind: str) -> bool:
    """Whether both conditions of the owner say that there are no groups because it is suspended."""
    status = story.recording.now(kind).get("held", {}).get("status") or {}
    ours = [entry for entry in status.get("conditions") or [] if entry["reason"] == "WaitingForPodGroup"]
    messages = " ".join(entry["message"] for entry in ours)
    return "suspended" in messages and "made when its suspended owner is resumed" in messages
