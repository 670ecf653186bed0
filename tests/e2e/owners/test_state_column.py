"""What people see of a waiting gang: the STATE column of TrainJobs, and the message of its condition."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import kubectl
from tests.e2e.conftest import RealStage
from tests.e2e.support.owners import a_job, a_trainjob
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
    story.wait(
        "it has no room",
        lambda now: now.reason("TrainJob", "llama", "PodGroupsScheduled") == "Unschedulable",
    )
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
    story.wait("it runs", lambda now: now.condition("TrainJob", "bert", "PodGroupsScheduled") == "True")
    story.delete({**owner, "metadata": {**owner["metadata"], "name": "llama"}})
    story.wait("the other one is gone", lambda now: set(now.recording.now("TrainJob")) == {"bert"})
    assert _state(story, stage) == "PodGroupsScheduled"
    story.finish_pods([pod for pod in story.pods() if pod["metadata"]["name"].startswith("bert")])
    story.wait("it completes", lambda now: now.condition("TrainJob", "bert", "Complete") == "True")
    assert _state(story, stage) == "Complete"
    assert [shown for shown in _shown(story) if shown["status"] != "True"] == []


def test_a_gang_that_is_being_bound_does_not_repeat_an_older_refusal(story: RealStory) -> None:
    """The scheduler refused 100 pods, then placed them: until all are bound the message counts, no more."""
    story.add_nodes(1, cpu=2)
    story.create(a_job("big", pods=100, cpu=1))
    story.wait(
        "it has no room", lambda now: now.reason("Job", "big", "PodGroupsScheduled") == "Unschedulable"
    )
    story.add_nodes(1, cpu=100)
    story.wait("it runs", lambda now: now.condition("Job", "big", "PodGroupsScheduled") == "True")
    messages = list(_messages(story))
    partly = [message for message in messages if ": 0 of 100" not in message and ": 40 of 100" not in message]
    assert [message for message in partly if "available" in message or "minCount" in message] == []


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


def _messages(story: RealStory) -> Iterator[str]:
    """Each message that the Job's PodGroupsScheduled had."""
    for entry in story.recording.entries():
        for condition in (entry.object.get("status") or {}).get("conditions") or []:
            if entry.kind == "Job" and condition["type"] == "muster.dev/PodGroupsScheduled":
                yield condition["message"]
