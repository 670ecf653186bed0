"""How gangs follow their pods on the real control plane: to nothing and back, and several groups."""

from __future__ import annotations

import pytest

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
    story.create(a_jobset("pair", {"left": (1, 3), "right": (1, 2)}, apart=True))
    story.wait("five pods run", lambda now: now.running() == 5)
    story.finish_pods(story.running_of("left")[:1])
    story.wait("left is a gang of two", lambda now: now.policy("left") == GANG_OF[2])
    assert story.policy("right") == GANG_OF[2]
    both = {"left": GANG_OF[2], "right": GANG_OF[2]}
    story.wait("the template is as well", lambda now: now.templates() == both)
