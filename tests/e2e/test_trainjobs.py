"""TrainJobs on the real Trainer, JobSet, Job controller and scheduler become gangs."""

from __future__ import annotations

import pytest

from tests.e2e.support.owners import a_trainjob
from tests.e2e.support.story import Story

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_a_torch_trainjob_runs_as_one_gang(story: Story) -> None:
    """Three nodes are one group of three, bound together; conditions say so; it completes and all is gone."""
    story.add_nodes(3)
    trainjob = story.create(a_trainjob("llama", "torch-distributed", nodes=3, cpu=6))
    story.wait("three pods run", lambda now: now.running() == 3)

    workload = story.recording.now("Workload")["llama"]
    assert [one["name"] for one in workload["spec"]["podGroupTemplates"]] == ["trainer"]
    assert story.group("trainer")["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    story.wait(
        "the TrainJob says that its groups are scheduled",
        lambda now: now.conditions("TrainJob", "llama").get("PodGroupsScheduled", {}).get("status") == "True",
    )

    story.finish_pods(story.pods())
    story.wait("the TrainJob is complete", lambda now: "Complete" in now.conditions("TrainJob", "llama"))
    story.delete(trainjob)
    story.wait(
        "nothing is left", lambda now: not (now.groups() or now.recording.now("Workload") or now.pods())
    )
