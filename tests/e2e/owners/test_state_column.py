"""What people see of a waiting gang: the STATE column of TrainJobs, and the message of its condition."""

from __future__ import annotations

import pytest

from tests.cluster import kubectl
from tests.e2e.conftest import RealStage
from tests.e2e.support.owners import a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def _state(story: RealStory, stage: RealStage) -> str:
    """The STATE column of `kubectl get trainjobs`; empty if the TrainJob has no condition."""
    arguments = ("get", "trainjobs", "-n", story.namespace, "--no-headers")
    _, *state, _ = kubectl.run(*arguments, kubeconfig=stage.cluster.kubeconfig).split()
    return "".join(state)


def test_the_state_of_a_trainjob_is_never_a_condition_that_is_false(
    story: RealStory, stage: RealStage
) -> None:
    """The Trainer has no condition of a job that waits or runs; as soon as it has one, that is the state."""
    story.add_nodes(1, cpu=1)
    owner = story.create(a_trainjob("llama", "torch-distributed", nodes=2))
    story.wait_for_reason("TrainJob", "llama", "PodGroupsScheduled", "Unschedulable")
    assert story.condition("TrainJob", "llama", "PodGroupsScheduled") == "False"
    assert _state(story, stage) == "PodGroupsNotScheduled"

    story.patch(owner, {"spec": {"suspend": True}})
    story.wait(
        "the Trainer's condition alone stands last",
        lambda now: _types(now)[-1] == ["PodGroupsReady", "PodGroupsScheduled", "Suspended"],
        90,
    )
    assert story.condition("TrainJob", "llama", "PodGroupsScheduled") == "False"
    assert _state(story, stage) == "Suspended"

    story.add_nodes(1)
    story.create(a_trainjob("bert", "torch-distributed", nodes=2))
    story.wait_for_true("TrainJob", "bert", "PodGroupsScheduled")
    story.delete({**owner, "metadata": {**owner["metadata"], "name": "llama"}})
    story.wait("the other one is gone", lambda now: set(now.recording.now("TrainJob")) == {"bert"})
    assert _state(story, stage) == "PodGroupsScheduled"
    story.finish_pods([pod for pod in story.pods() if pod["metadata"]["name"].startswith("bert")])
    story.wait_for_true("TrainJob", "bert", "Complete")
    assert _state(story, stage) == "Complete"
    assert [shown for shown in _shown(story) if shown["status"] != "True"] == []


def _shown(story: RealStory) -> list[dict[str, str]]:
    """The last condition of each TrainJob at each of its changes."""
    entries = [entry for entry in story.recording.entries() if entry.kind == "TrainJob"]
    lists = [(entry.object.get("status") or {}).get("conditions") for entry in entries]
    return [conditions[-1] for conditions in lists if conditions]


def _types(story: RealStory) -> list[list[str]]:
    """The types of a TrainJob's conditions, in their order, at each of its changes."""
    entries = [entry for entry in story.recording.entries() if entry.kind == "TrainJob"]
    lists = [(entry.object.get("status") or {}).get("conditions") or [] for entry in entries]
    return [[condition["type"] for condition in conditions] for conditions in lists]
