"""TrainJobs on the real Trainer, JobSet, Job controller and scheduler become gangs."""

from __future__ import annotations

import pytest

from tests.e2e.support.owners import a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_a_torch_trainjob_runs_as_one_gang(story: RealStory) -> None:
    """Three nodes are one group of three, bound together; conditions say so; it completes and all is gone."""
    story.add_nodes(3)
    trainjob = story.create(a_trainjob("llama", "torch-distributed", nodes=3, cpu=6))
    story.wait("three pods run", lambda now: now.running() == 3)

    workload = story.recording.now("Workload")["llama"]
    assert [template["name"] for template in workload["spec"]["podGroupTemplates"]] == ["trainer"]
    assert story.policy("trainer") == {"gang": {"minCount": 3}}
    story.wait_for_true("TrainJob", "llama", "PodGroupsScheduled")

    story.finish_pods(story.pods())
    story.wait_for_true("TrainJob", "llama", "Complete")
    story.delete(trainjob)
    story.wait("nothing is left", lambda now: not now.leftovers())


def test_a_torchtune_trainjob_starts_its_trainer_after_its_initializers(story: RealStory) -> None:
    """Initializers are basic groups; the trainer's gang is made early and bound when its pods come."""
    story.add_nodes(3)
    story.add_volume("initializer-tune")
    initializer = {
        "dataset": {"storageUri": "hf://tatsu-lab/alpaca"},
        "model": {"storageUri": "hf://Qwen/Qwen2.5-1.5B-Instruct"},
    }
    story.create(a_trainjob("tune", "torchtune-qwen2.5-1.5b", nodes=2, initializer=initializer))
    story.wait("both initializers run", lambda now: now.running() == 2)

    assert story.policy("dataset-initializer") == {"basic": {}}
    assert story.policy("model-initializer") == {"basic": {}}
    assert story.policy("trainer") == {"gang": {"minCount": 2}}
    assert story.condition("TrainJob", "tune", "PodGroupsScheduled") != "True"

    story.finish_pods(story.pods())
    story.wait("the trainer's two pods run", lambda now: len(now.running_of("trainer")) == 2)
    story.wait_for_true("TrainJob", "tune", "PodGroupsScheduled")
    story.finish_pods(story.running_of("trainer"))
    story.wait_for_true("TrainJob", "tune", "Complete")


@pytest.mark.parametrize("runtime", ["deepspeed-distributed", "mlx-distributed"])
def test_an_mpi_trainjob_has_a_launcher_and_nodes(story: RealStory, runtime: str) -> None:
    """Launcher and `trainer` are two gangs, counted from the JobSet: the launcher may be one of the nodes."""
    story.add_nodes(3)
    story.create(a_trainjob("mpi", runtime, nodes=3))
    story.wait("the JobSet is there", lambda now: "mpi" in now.recording.now("JobSet"))
    counts = story.pods_of_replicated_jobs("mpi")
    story.wait("all pods run", lambda now: now.running() == sum(counts.values()))

    assert story.policy("trainer") == {"gang": {"minCount": counts["node"]}}
    assert story.policy("launcher") == {"gang": {"minCount": counts["launcher"]}}
    assert sum(counts.values()) == 3, counts
