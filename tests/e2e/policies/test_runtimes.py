"""A policy on a runtime becomes group labels on its pod templates, which TrainJobs made later carry."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from tests.cluster import kubectl
from tests.e2e.support.owners import POLICY, Object, a_runtime, a_trainjob, template_labels, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


GANG = "{name: workers, replicatedJobs: [node], schedulingPolicy: {gang: {minCount: 2}}}"


def test_a_policy_on_a_runtime_shapes_the_groups_of_its_trainjobs(story: RealStory) -> None:
    """The runtime's group has the name and the minCount of its policy; without it the group labels go."""
    story.add_nodes(2)
    runtime = story.create(a_runtime(story.api, "gangs", f"workload: {{groups: [{GANG}]}}"))
    story.wait_for(
        runtime, "it is labelled", lambda now: template_labels(now) == {"muster.dev/group": "workers"}
    )

    story.create(a_trainjob("bert", "gangs", kind="TrainingRuntime", nodes=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("workers") == {"gang": {"minCount": 2}}

    story.patch(runtime, {"metadata": {"annotations": {POLICY: None}}})
    story.wait_for(runtime, "its group labels are gone", lambda now: template_labels(now) == {})


def test_kai_waits_for_no_stage_that_depends_on_another(story: RealStory) -> None:
    """Before the first pod exists the JobSet says that one of its replicatedJobs is enough."""
    policy = "kaiScheduler: {queue: team-a}"
    runtime = story.create(a_runtime(story.api, "staged", policy, like="torchtune-qwen2.5-1.5b"))
    queue = {"kai.scheduler/queue": "team-a"}
    story.wait_for(runtime, "KAI gets it", lambda now: jobset_labels(now) == queue)
    story.create(a_trainjob("bert", "staged", kind="TrainingRuntime", nodes=2))
    story.wait("the initializers' pods exist", lambda now: len(now.pods()) == 2)
    metadata = story.recording.now("JobSet")["bert"]["metadata"]
    assert metadata["annotations"]["kai.scheduler/batch-min-member"] == "1"
    assert metadata["labels"] == queue
    assert {pod["spec"]["schedulerName"] for pod in story.pods()} == {"kai-scheduler"}
    story.recording.quiet()
    assert (story.groups(), story.recording.now("Workload")) == ({}, {})


def jobset_labels(runtime: Object) -> Object:
    """Return the labels that a runtime gives its JobSets."""
    labels: Object = (runtime["spec"]["template"].get("metadata") or {}).get("labels") or {}
    return labels


def test_the_command_that_a_misplaced_kai_policy_gives_works(story: RealStory, stage: Any) -> None:
    """On a TrainJob it comes too late and says what to type; typed, the next TrainJob is KAI's."""
    story.add_nodes(1)
    story.create(a_runtime(story.api, "mine"))
    story.create(
        with_policy(
            a_trainjob("late", "mine", kind="TrainingRuntime", nodes=2), "kaiScheduler: {queue: team-a}"
        )
    )
    story.wait("two pods run", lambda now: now.running() == 2)
    story.wait_for_reason("TrainJob", "late", "PodGroupsReady", "InvalidPolicy")
    conditions = story.recording.now("TrainJob")["late"]["status"]["conditions"]
    message = next(condition["message"] for condition in conditions if condition["type"] == "PodGroupsReady")
    command = shlex.split(message[message.index("kubectl ") :])
    kubectl.run(*command[1:], kubeconfig=stage.cluster.kubeconfig)
    story.wait(
        "an Event says what changed",
        lambda now: re.search("schedulerName.*kai-scheduler", now.messages("RuntimeMarked")) is not None,
    )
    story.create(a_trainjob("next", "mine", kind="TrainingRuntime", nodes=2))
    story.wait("its pods exist", lambda now: len(now.pods()) == 4)
    schedulers = sorted(pod["spec"]["schedulerName"] for pod in story.pods())
    assert schedulers == ["default-scheduler"] * 2 + ["kai-scheduler"] * 2
