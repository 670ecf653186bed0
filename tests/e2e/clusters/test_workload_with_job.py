"""The alpha gate WorkloadWithJob, with which the Job controller groups plain Jobs itself."""

from __future__ import annotations

import pytest

from muster.replay.summary import group_of
from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import DEFAULT_GATES, Release
from tests.e2e.support.bystanders import assert_the_job_controller_makes_all_gangs
from tests.e2e.support.owners import a_job, a_jobset, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
OPTIONS = ClusterOptions(release=Release("1.37", gates=(*DEFAULT_GATES["1.37"], "WorkloadWithJob")))


def test_no_job_is_grouped_by_both(story: RealStory) -> None:
    """A hundred labelled Jobs at once: the Job controller makes each a gang, since schedule-jobs asks for it.

    Without that policy the two race: of a hundred Jobs 12 got a PodGroup from each of them, 78 a Workload of
    Muster's that the Job controller took for its own, 10 a basic group.
    """
    assert_the_job_controller_makes_all_gangs(story)


def test_a_trainjob_is_grouped_by_muster(story: RealStory) -> None:
    """The Job controller looks at Jobs without an owner only."""
    story.add_nodes(2)
    story.create(a_trainjob("llama", "torch-distributed", nodes=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("trainer") == {"gang": {"minCount": 3}}


def test_a_job_with_scheduling_of_its_own_is_the_job_controllers(story: RealStory) -> None:
    """Its gang is as `spec.scheduling` says, whatever the group label on its template."""
    story.add_nodes(1)
    job = a_job("sweep", pods=3, labels={"muster.dev/group": "main"})
    job["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    story.create(job)
    story.wait("three pods run", lambda now: now.running() == 3)
    story.recording.quiet()
    (group,) = story.groups().values()
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    assert group["metadata"].get("labels") is None


def test_jobs_that_a_jobset_delegates_are_the_job_controllers(story: RealStory) -> None:
    """The annotation names a template of the user's Workload; a group label creates no second group."""
    story.add_nodes(1)
    reference = {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "sim"}
    template = {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}
    spec = {"controllerRef": reference, "podGroupTemplates": [template]}
    version = "scheduling.k8s.io/v1beta1"
    story.create({"apiVersion": version, "kind": "Workload", "metadata": {"name": "theirs"}, "spec": spec})
    jobset = a_jobset("sim", {"workers": (1, 2)})
    job = jobset["spec"]["replicatedJobs"][0]["template"]
    job["metadata"] = {"annotations": {"scheduling.k8s.io/group-template-name": "workers"}}
    job["spec"]["template"]["metadata"]["labels"] = {"muster.dev/group": "workers"}
    story.create(jobset)
    story.wait("two pods run", lambda now: now.running() == 2)
    story.recording.quiet()
    (group,) = story.groups().values()
    assert group["metadata"].get("labels") is None
    assert {group_of(pod) for pod in story.pods()} == {group["metadata"]["name"]}
    assert [story.gates(pod) for pod in story.pods()] == [set(), set()]
