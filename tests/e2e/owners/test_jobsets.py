"""JobSets without a Trainer become gangs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.replay.summary import group_of
from tests.cluster import kubectl
from tests.e2e.support.owners import a_jobset
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_replicated_jobs_that_start_together_are_one_gang(
    story: RealStory, stage: Any, tmp_path: Path
) -> None:
    """A driver and two replicas of three workers; the JobSet can be applied again, as GitOps does."""
    story.add_nodes(2)
    jobset = a_jobset("sim", {"driver": (1, 1), "workers": (2, 3)})
    (manifest := tmp_path / "jobset.json").write_text(json.dumps(jobset))
    for _ in range(2):
        command = ("apply", "-n", story.namespace, "-f", str(manifest))
        kubectl.run(*command, kubeconfig=stage.cluster.kubeconfig)
    story.wait("all seven pods run", lambda now: now.running() == 7)

    assert story.templates() == {"main": {"gang": {"minCount": 7}}}
    story.wait_for_true("JobSet", "sim", "PodGroupsScheduled")
    story.delete(story.recording.now("JobSet")["sim"])
    story.wait("nothing is left", lambda now: not now.leftovers())


def test_of_two_jobsets_that_do_not_both_fit_one_runs_whole_and_the_other_waits_whole(
    story: RealStory,
) -> None:
    """With a gang for each replicatedJob both could hold a part of the cluster for ever."""
    for name in ("left", "right"):
        story.create(a_jobset(name, {"ps": (1, 3), "worker": (1, 2)}, cpu=4))
    story.wait("ten pods wait", lambda now: len(now.pods()) == 10 and not any(map(now.gates, now.pods())))
    story.add_nodes(3)
    story.wait("one of them runs", lambda now: now.running() == 5)
    story.recording.quiet()
    first = [pod for pod in story.pods() if pod["spec"].get("nodeName")]
    (winner,) = {group_of(pod) for pod in first}
    story.finish_pods(first)
    story.wait("the other one runs", lambda now: now.running() == 5)
    assert {group_of(pod) for pod in story.pods() if pod["status"]["phase"] == "Running"} != {winner}


def test_a_restarted_jobset_runs_again_in_its_old_group(story: RealStory) -> None:
    """New pods of a restart are gated and lifted when all are there; the group is the one of before."""
    story.add_nodes(2)
    story.create(a_jobset("sim", {"workers": (1, 3)}, cpu=4, max_restarts=2))
    story.wait("three pods run", lambda now: now.running() == 3)
    before, groups = {pod["metadata"]["uid"] for pod in story.pods()}, set(story.groups())

    story.finish_pods(story.pods()[:1], "Failed")
    story.wait(
        "three new pods run",
        lambda now: now.running() == 3 and not before & {pod["metadata"]["uid"] for pod in now.pods()},
    )
    assert set(story.groups()) == groups
    assert story.recording.now("JobSet")["sim"]["status"]["restarts"] == 1
