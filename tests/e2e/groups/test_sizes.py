"""How gangs follow their pods on the real control plane: to nothing and back, and several groups."""

from __future__ import annotations

import pytest

from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job, a_jobset
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

GANG_OF = {number: {"gang": {"minCount": number}} for number in range(1, 7)}


def scaled(story: RealStory, job: Object, pods: int) -> None:
    """Scale a Job whose completions stay, and wait until it has so many running pods."""
    story.patch(job, {"spec": {"parallelism": pods}})
    story.wait(f"{pods} pods run", lambda now: now.running() == pods)


def test_a_job_is_scaled_to_zero_to_one_and_up_again(story: RealStory) -> None:
    """A gang is never smaller than one, stays a gang, and grows again from there."""
    story.add_nodes(1)
    job = story.create(a_job("sweep", pods=4))
    story.wait("four pods run", lambda now: now.running() == 4)
    scaled(story, job, 0)
    story.wait("the gang is of one", lambda now: now.policy("main") == GANG_OF[1])
    scaled(story, job, 1)
    assert story.policy("main") == GANG_OF[1]
    scaled(story, job, 4)
    story.wait("the gang is of four", lambda now: now.policy("main") == GANG_OF[4])


def test_one_of_several_groups_is_resized_and_the_others_are_not(story: RealStory) -> None:
    """The Workload's other template stays as it is: the API server forbids to leave one out."""
    story.add_nodes(1)
    story.create(a_jobset("pair", {"left": (1, 3), "right": (1, 2)}))
    story.wait("five pods run", lambda now: now.running() == 5)
    story.finish_pods(story.running_of("left")[:1])
    story.wait("left is a gang of two", lambda now: now.policy("left") == GANG_OF[2])
    assert story.policy("right") == GANG_OF[2]
    both = {"left": GANG_OF[2], "right": GANG_OF[2]}
    story.wait("the template is as well", lambda now: now.templates() == both)


def test_a_replacement_is_stuck_until_its_gang_is_resized(story: RealStory, muster_on_it: Muster) -> None:
    """Without resize_gang the scheduler waits for one that never comes, and so patch_pods keeps the gate."""
    story.add_nodes(1)
    story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    with muster_on_it.without_function("resize-gang"):
        story.finish_pods([_running_of_index(story, "0")])
        story.wait("two pods are left", lambda now: now.running() == 2)
        replaced = _fail(story, "1")
        story.recording.quiet()
        assert story.gates(_pod(story, replaced)) == {"muster.dev/pod-group"}
        # As if patch_pods did not know that it is no use: the scheduler alone decides.
        story.patch(_pod(story, replaced), {"spec": {"schedulingGates": []}})
        story.wait("the gate is gone", lambda now: not now.gates(_pod(now, replaced)))
        story.recording.quiet(5)
        assert (story.running(), story.policy("main")) == (1, GANG_OF[3])
        stuck = _pod(story, replaced)
        assert "nodeName" not in stuck["spec"]
        assert _condition(stuck, "PodScheduled") == ("False", "SchedulingGated"), "nobody said more"
        assert _is_placed(story)
    muster_on_it.sweep()
    story.wait("the replacement runs", lambda now: now.running() == 2)
    assert story.policy("main") == GANG_OF[2]


def _running(story: RealStory) -> list[Object]:
    return [pod for pod in story.pods() if pod["status"].get("phase") == "Running"]


def _running_of_index(story: RealStory, index: str) -> Object:
    return next(pod for pod in _running(story) if _index(pod) == index)


def _is_placed(story: RealStory) -> bool:
    """What the scheduler says of the group: it was placed once, and that stays."""
    return _condition(story.group("main"), "PodGroupInitiallyScheduled") == ("True", "Scheduled")


def _condition(obj: Object, of_type: str) -> tuple[str, str]:
    """The status and the reason of a condition."""
    (condition,) = (condition for condition in obj["status"]["conditions"] if condition["type"] == of_type)
    return condition["status"], condition["reason"]


def _pod(story: RealStory, name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", **story.recording.now("Pod")[name]}


def _fail(story: RealStory, index: str) -> str:
    """Let the running pod of an index fail; returns the name of the pod that comes in its place."""
    before = set(story.recording.now("Pod"))
    story.finish_pods([_running_of_index(story, index)], "Failed")
    story.wait("there is a replacement", lambda now: len(now.pods()) > len(before))
    (name,) = set(story.recording.now("Pod")) - before
    return name


def _index(pod: Object) -> str:
    index: str = pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
    return index
