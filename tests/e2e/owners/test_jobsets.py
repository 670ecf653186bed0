"""JobSets without a Trainer become gangs."""

from __future__ import annotations

import pytest

from tests.cluster import manifests
from tests.cluster.api import MERGE_PATCH
from tests.e2e.support.owners import a_jobset
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_replicas_of_a_replicated_job_are_one_gang(story: RealStory) -> None:
    """Two replicas of three pods are one group of six, beside the driver's group of one."""
    story.add_nodes(2)
    jobset = story.create(a_jobset("sim", {"driver": (1, 1), "workers": (2, 3)}))
    story.wait("all seven pods run", lambda now: now.running() == 7)

    assert story.policy("driver") == {"gang": {"minCount": 1}}
    assert story.policy("workers") == {"gang": {"minCount": 6}}
    assert set(story.recording.now("Workload")) == {"sim"}
    story.wait(
        "conditions say so", lambda now: now.condition("JobSet", "sim", "PodGroupsScheduled") == "True"
    )
    story.delete(jobset)
    story.wait("nothing is left", lambda now: not now.leftovers())


def test_each_replica_gets_a_group_when_the_template_asks_for_it(story: RealStory) -> None:
    """The label muster.dev/group-per: job makes a group of every child Job."""
    story.add_nodes(2)
    jobset = a_jobset("sim", {"workers": (2, 3)})
    template = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"]["labels"] = {"muster.dev/group": "workers", "muster.dev/group-per": "job"}
    story.create(jobset)
    story.wait("all six pods run", lambda now: now.running() == 6)

    assert sorted(name[-2:] for name in story.groups()) == ["-0", "-1"]
    assert {group["spec"]["schedulingPolicy"]["gang"]["minCount"] for group in story.groups().values()} == {3}


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


def test_a_jobset_is_not_scaled_without_its_gate(story: RealStory) -> None:
    """JobSet refuses it where the gate ElasticJobSet is off, as it is by default; the gang stays as it is."""
    story.add_nodes(1)
    jobset = story.create(a_jobset("sim", {"workers": (1, 2)}))
    story.wait("two pods run", lambda now: now.running() == 2)
    (workers,) = jobset["spec"]["replicatedJobs"]
    workers["template"]["spec"] |= {"parallelism": 3, "completions": 3}
    answer = story.api.request(
        "PATCH", manifests.path(jobset), {"spec": {"replicatedJobs": [workers]}}, MERGE_PATCH
    )
    assert (answer.status, "field is immutable" in answer.message) == (422, True), answer.message
    story.recording.quiet()
    assert (story.running(), story.policy("workers")) == (2, {"gang": {"minCount": 2}})
