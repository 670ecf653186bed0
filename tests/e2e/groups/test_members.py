"""Members that fail for good, come late, or have a priority; groups that cannot be what was asked for."""

from __future__ import annotations

import pytest

from tests.cluster import manifests
from tests.e2e.support import admission
from tests.e2e.support.owners import Object, a_job, a_jobset
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_an_index_that_failed_for_good_no_longer_counts(story: RealStory) -> None:
    """An index whose tries are used up never comes again, so the others need one less."""
    story.add_nodes(1)
    job = a_job("sweep", pods=3)
    job["spec"] |= {"backoffLimitPerIndex": 0, "maxFailedIndexes": 2}
    del job["spec"]["backoffLimit"]
    story.create(job)
    story.wait("three pods run", lambda now: now.running() == 3)

    story.finish_pods([_of_index(story, "0")], "Failed")
    story.wait("index 0 has failed for good", lambda now: _failed_indexes(now) == "0")
    story.wait("minCount is two", lambda now: now.policy("main") == {"gang": {"minCount": 2}})
    assert story.running() == 2


def test_a_quota_that_lets_half_a_gang_in_holds_all_of_it(story: RealStory) -> None:
    """Two of four pods are made and wait; when the quota is raised the others come and all are bound."""
    story.add_nodes(1)
    hard = {"hard": {"pods": "2"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": hard}
    created = story.create(quota)
    story.wait_for(created, "it is enforced", lambda now: bool(now.get("status", {}).get("hard")))
    story.create(a_job("sweep", pods=4))
    story.wait("two pods are made", lambda now: len(now.pods()) == 2)
    story.recording.quiet()
    assert story.running() == 0
    assert "conditions" not in story.group("main").get("status", {})
    story.wait("an Event says why", lambda now: "exceeded quota" in now.messages("FailedCreate"))

    story.patch(created, {"spec": {"hard": {"pods": "10"}}})
    story.wait("four pods run", lambda now: now.running() == 4)


def test_a_gang_has_the_priority_of_its_pods(story: RealStory) -> None:
    """The group takes the pods' class; without it the scheduler would refuse the whole group."""
    story.add_nodes(1)
    version = "scheduling.k8s.io/v1"
    urgent = {"apiVersion": version, "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    manifests.apply(story.api, [urgent])
    assert admission.class_is_known(story.api, story.namespace, "urgent")
    job = a_job("sweep", pods=2)
    job["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    story.create(job)
    story.wait("two pods run", lambda now: now.running() == 2)
    assert story.group("main")["spec"]["priorityClassName"] == "urgent"


def test_too_many_groups_for_a_workload_run_all_the_same(story: RealStory) -> None:
    """A Workload holds eight groups: with nine each gets a fallback group, and the JobSet says why."""
    story.add_nodes(2)
    story.create(a_jobset("wide", {f"part-{number}": (1, 1) for number in range(9)}))
    story.wait("nine pods run", lambda now: now.running() == 9)
    policies = [group["spec"]["schedulingPolicy"] for group in story.groups().values()]
    assert policies == [{"basic": {}}] * 9
    story.wait(
        "the JobSet says why", lambda now: now.reason("JobSet", "wide", "PodGroupsReady") == "TooManyGroups"
    )


def test_a_workload_of_a_stranger_is_left_alone(story: RealStory) -> None:
    """A user's Workload has the name: it stays as it is, and the pods run in a fallback group."""
    story.add_nodes(1)
    templates = [{"name": "other", "schedulingPolicy": {"gang": {"minCount": 5}}}]
    reference = {"apiGroup": "example.com", "kind": "Experiment", "name": "theirs"}
    spec = {"controllerRef": reference, "podGroupTemplates": templates}
    version = "scheduling.k8s.io/v1beta1"
    theirs = story.create(
        {"apiVersion": version, "kind": "Workload", "metadata": {"name": "sim"}, "spec": spec}
    )
    story.create(a_jobset("sim", {"workers": (1, 2)}))
    story.wait("two pods run", lambda now: now.running() == 2)

    assert story.policy("workers") == {"basic": {}}
    story.wait(
        "the JobSet says why",
        lambda now: now.reason("JobSet", "sim", "PodGroupsReady") == "WorkloadNameTaken",
    )
    now = story.recording.now("Workload")["sim"]
    assert now["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]


def _of_index(story: RealStory, index: str) -> Object:
    """Return the running pod of a completion index."""
    label = "batch.kubernetes.io/job-completion-index"
    running = [pod for pod in story.pods() if pod["status"].get("phase") == "Running"]
    return next(pod for pod in running if pod["metadata"]["labels"][label] == index)


def _failed_indexes(story: RealStory) -> str:
    indexes: str = story.recording.now("Job")["sweep"]["status"].get("failedIndexes", "")
    return indexes
