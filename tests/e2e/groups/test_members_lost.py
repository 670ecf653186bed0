"""Gangs that lose a member while there is no room for another: `onMembersLost` of their policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from muster.data import EVENTING
from muster.simulator.overlays import built, load
from tests.cluster import manifests
from tests.e2e.conftest import RealStage
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job, a_jobset, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

LIMIT = 3
INDEX = "batch.kubernetes.io/job-completion-index"


@pytest.fixture
def restarts(stage: RealStage, tmp_path: Path) -> Iterator[Muster]:
    """The component restart-gang, with a broker of its own for its sweeps."""
    component = load(EVENTING / "components" / "restart-gang")
    shared = [obj for obj in load(built("cluster")) if obj["metadata"]["name"] in {"muster", "dead-letter"}]
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(yaml.safe_dump_all([*shared, *component]))
    muster = Muster(stage.cluster, overlay)
    muster.start()
    yield muster
    muster.stop()
    for obj in component:
        if "knative" not in obj["apiVersion"]:
            stage.cluster.api.must("DELETE", manifests.path(obj))


def lose(story: RealStory, index: int) -> None:
    """Let the node of a pod take no more pods, and that pod fail."""
    (pod,) = (pod for pod in story.pods() if pod["metadata"]["labels"][INDEX] == str(index))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": pod["spec"]["nodeName"]}}
    story.patch(node, {"spec": {"unschedulable": True}})
    story.finish_pods([pod], "Failed")


OWNERS = {"Job": a_job("train", pods=3), "JobSet": a_jobset("train", {"main": (1, 3)})}
"""Pods of an index are made again ten seconds after it failed; else each failure doubles the time for all."""
for spec in (OWNERS["Job"]["spec"], OWNERS["JobSet"]["spec"]["replicatedJobs"][0]["template"]["spec"]):
    del spec["backoffLimit"]
    spec["backoffLimitPerIndex"] = 10


def a_gang_that_lost(story: RealStory, index: int, then: str, kind: str = "Job") -> None:
    """Let a gang of three run on three nodes, lose one of them, and wait for longer than the limit."""
    story.add_nodes(3, cpu=1)
    policy = f"workload: {{onMembersLost: {then}, membersLostSeconds: {LIMIT}}}"
    story.create(with_policy(OWNERS[kind], policy))
    story.wait("three pods run", lambda now: now.running() == 3)
    story.wait_for_true(kind, "train", "PodGroupsScheduled")
    lose(story, index)
    story.wait_for_reason(kind, "train", "PodGroupsScheduled", "Unschedulable", 40)
    story.recording.quiet(LIMIT + 1)
    assert story.running() == 2


def pods_of(story: RealStory) -> list[Object]:
    """The pods that neither ended nor are being deleted."""
    return [pod for pod in story.members(story.group("main")["metadata"]["name"]) if not _is_going(pod)]


def _is_going(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def test_by_default_the_rest_runs_on(story: RealStory, restarts: Muster) -> None:
    """The owner says what is wrong, and nothing is written."""
    a_gang_that_lost(story, 2, "Report")
    restarts.sweep()
    assert restarts.idle()
    assert story.running() == 2
    assert not [write for write in story.writes() if write.writer == "restart-gang"]


def test_with_restart_the_gang_waits_and_is_placed_again_as_a_whole(
    story: RealStory, muster_on_it: Muster, restarts: Muster
) -> None:
    """Also while the evicted pods go one after the other: the two free nodes take none of the three."""
    a_gang_that_lost(story, 0, "Restart")
    running = [pod for pod in story.pods() if pod["status"].get("phase") == "Running"]
    story.hang(running)
    restarts.sweep()
    story.wait(
        "three others wait",
        lambda now: len(pods_of(now)) == 3 and all(map(_is_going, now.running_of("main"))),
    )
    for pod in running:
        muster_on_it.sweep()
        story.hang([pod], None)
        story.recording.quiet(3)
        restarts.sweep()
        assert not [pod for pod in pods_of(story) if pod["spec"].get("nodeName")]
    assert len(pods_of(story)) == 3
    assert "2 of 3 pods bound for more than 3 s" in story.messages("MembersLost")
    story.add_nodes(1, cpu=1)
    story.wait("three pods run", lambda now: now.running() == 3)
    story.wait_for_true("Job", "train", "PodGroupsScheduled")


def test_with_fail_the_job_ends(story: RealStory, restarts: Muster) -> None:
    """With the reason, and its nodes are free; a JobSet ends with its Job, as its failurePolicy says."""
    a_gang_that_lost(story, 2, "Fail", "JobSet")
    restarts.sweep()
    story.wait("it failed", lambda now: now.condition("JobSet", "train", "Failed") == "True")
    story.wait("its nodes are free", lambda now: now.running() == 0)
    assert story.recording.now("Job").popitem()[1]["status"]["conditions"][-1]["reason"] == "MembersLost"
