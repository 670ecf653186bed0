"""Jobs that are created suspended, resumed, and suspended while they run."""

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
def test_a_suspended_owner_keeps_its_group_over_resume_and_suspend(
    story: RealStory, muster_on_it: Muster, kind: str
) -> None:
    """The group is made while nothing runs; new pods join it at each resume, by events alone."""
    story.add_nodes(3)
    owner = story.create(SUSPENDED[kind])
    story.wait("the group is made", lambda now: len(now.groups()) == 1)
    story.recording.quiet()
    (group,) = story.groups()
    assert story.pods() == []

    story.patch(owner, {"spec": {"suspend": False}})
    story.wait("all pods run", lambda now: now.running() == PODS)
    first = {pod["metadata"]["uid"] for pod in story.pods()}

    story.patch(owner, {"spec": {"suspend": True}})
    story.wait("the pods are gone", lambda now: not now.pods())
    assert set(story.groups()) == {group}
    (condition,) = story.groups()[group]["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "Scheduled"), (
        "the scheduler takes nothing back"
    )

    with muster_on_it.without_sweeps():
        story.patch(owner, {"spec": {"suspend": False}})
        story.wait("new pods run", lambda now: now.running() == PODS)
    assert not first & {pod["metadata"]["uid"] for pod in story.pods()}
    assert set(story.groups()) == {group}
    assert {name for pod in story.pods() if (name := story.group_name(pod))} == {group}
