"""What the scheduler does without an Event: pods without a group wait, and room is given to others."""

from __future__ import annotations

import pytest

from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_pods_without_a_gate_wait_silently_for_their_group(story: RealStory, muster_on_it: Muster) -> None:
    """Annotation `muster.dev/gate: "off"`: nothing is lifted, and they are bound when the group is made."""
    story.add_nodes(1)
    with muster_on_it.without_function("create-pod-groups"):
        job = a_job("sweep", pods=3)
        job["spec"]["template"]["metadata"]["annotations"] = {"muster.dev/gate": "off"}
        story.create(job)
        story.wait("three pods are made", lambda now: len(now.pods()) == 3)
        story.recording.quiet(6)
        assert [story.gates(pod) for pod in story.pods()] == [set()] * 3
        assert _words_of_the_scheduler(story) == []
    muster_on_it.sweep()
    story.wait("three pods run", lambda now: now.running() == 3)
    assert ("patch", "pods") not in {(write.verb, write.resource) for write in story.writes()}


def test_pods_of_a_growing_gang_take_the_room_of_a_rank_that_fails(story: RealStory) -> None:
    """They wait already and are no less. The gang stays whole; the rank runs when there is room again."""
    story.add_nodes(1, cpu=4)
    job = story.create(a_job("sweep", pods=4))
    story.wait("four pods run", lambda now: now.running() == 4)
    story.patch(job, {"spec": {"parallelism": 6, "completions": 6}})
    story.wait("two more wait", lambda now: len(now.pods()) == 6 and not any(map(now.gates, now.pods())))
    story.finish_pods([_of_index(story, 0)], "Failed")

    story.wait("the rank is made again", lambda now: len(now.pods()) == 7)
    story.recording.quiet()
    assert _running_indexes(story) in ([1, 2, 3, 4], [1, 2, 3, 5])
    assert story.policy("main") == {"gang": {"minCount": 4}}
    story.add_nodes(1, cpu=2)
    story.wait("all six run", lambda now: _running_indexes(now) == [0, 1, 2, 3, 4, 5], 90)
    story.wait("it is a gang of six", lambda now: now.policy("main") == {"gang": {"minCount": 6}})


def _words_of_the_scheduler(story: RealStory) -> list[str]:
    """Its Events about pods, and what the pods' conditions say of scheduling."""
    events = story.recording.now("Event").values()
    messages = [
        str(event["message"]) for event in events if event.get("reportingComponent") == "default-scheduler"
    ]
    conditions = [condition for pod in story.pods() for condition in pod["status"].get("conditions") or []]
    return messages + [str(condition) for condition in conditions if condition["type"] == "PodScheduled"]


def _running_indexes(story: RealStory) -> list[int]:
    running = [pod for pod in story.pods() if pod["status"].get("phase") == "Running"]
    return sorted(int(pod["metadata"]["labels"][_INDEX]) for pod in running)


def _of_index(story: RealStory, index: int) -> Object:
    return next(pod for pod in story.pods() if pod["metadata"]["labels"][_INDEX] == str(index))


_INDEX = "batch.kubernetes.io/job-completion-index"
