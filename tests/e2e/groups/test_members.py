"""Members that fail for good, come late, are gated by others, or wait without a word."""

from __future__ import annotations

import pytest

from tests.cluster import manifests
from tests.cluster.api import STRATEGIC_PATCH
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job, a_jobset, with_policy
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


def test_a_jobset_that_cannot_create_its_jobs_says_what_its_controller_says(
    story: RealStory, muster_on_it: Muster
) -> None:
    """JobSet reports it in an Event alone; the condition of the JobSet quotes it after the next sweep."""
    hard = {"hard": {"count/jobs.batch": "0"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": hard}
    created = story.create(quota)
    story.wait_for(created, "it is enforced", lambda now: bool(now.get("status", {}).get("hard")))
    story.create(a_jobset("sim", {"workers": (1, 2)}))
    story.wait("an Event says why", lambda now: "exceeded quota" in now.messages("JobCreationFailed"))
    muster_on_it.sweep()
    story.wait(
        "the condition quotes it",
        lambda now: "exceeded quota" in now.message("JobSet", "sim", "PodGroupsScheduled"),
    )


def _of_index(story: RealStory, index: str) -> Object:
    """Return the running pod of a completion index."""
    running = [pod for pod in story.pods() if pod["status"].get("phase") == "Running"]
    return next(pod for pod in running if pod["metadata"]["labels"][_INDEX] == index)


def _failed_indexes(story: RealStory) -> str:
    indexes: str = story.recording.now("Job")["sweep"]["status"].get("failedIndexes", "")
    return indexes


OTHER = "example.com/gate"


@pytest.mark.parametrize("policy", ["workload: {}", "workload: {gangs: []}"], ids=["gang", "fallback group"])
def test_a_gate_of_another_is_left_to_it(story: RealStory, policy: str) -> None:
    """Muster removes its own; the group waits for a pod with another controller's gate, a basic group too."""
    story.add_nodes(1)
    job = with_policy(a_job("sweep", pods=3), policy)
    job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": OTHER}]
    story.create(job)
    held = [{OTHER}] * 3
    story.wait("Muster's are lifted", lambda now: [now.gates(pod) for pod in now.pods()] == held)
    first, *others = story.pods()
    lifted = {"spec": {"schedulingGates": [{"$patch": "delete", "name": OTHER}]}}
    for pod in others:
        story.api.must(
            "PATCH", manifests.path({"apiVersion": "v1", "kind": "Pod", **pod}), lifted, STRATEGIC_PATCH
        )
    story.recording.quiet()
    assert not any(pod["spec"].get("nodeName") for pod in story.pods())
    story.api.must(
        "PATCH", manifests.path({"apiVersion": "v1", "kind": "Pod", **first}), lifted, STRATEGIC_PATCH
    )
    story.wait("three pods run", lambda now: now.running() == 3)


def test_pods_without_a_gate_wait_silently_for_their_group(story: RealStory, muster_on_it: Muster) -> None:
    """Annotation `muster.dev/gate: "off"`: nothing is lifted, and they are bound when the group is made."""
    story.add_nodes(1)
    with muster_on_it.without_function("create-pod-groups"):
        job = a_job("sweep", pods=3)
        job["spec"]["template"]["metadata"]["annotations"] = {"muster.dev/gate": "off"}
        story.create(job)
        story.wait("three pods are made", lambda now: len(now.pods()) == 3)
        story.recording.quiet(6)
        assert [story.gates(pod) for pod in story.pods()] == [set()] * 3
        assert _words_of_the_scheduler(story) == []
    muster_on_it.sweep()
    story.wait("three pods run", lambda now: now.running() == 3)
    assert ("patch", "pods") not in {(write.verb, write.resource) for write in story.writes()}


def test_pods_of_a_growing_gang_take_the_room_of_a_rank_that_fails(story: RealStory) -> None:
    """They wait already and are no less. The gang stays whole; the rank runs when there is room again."""
    story.add_nodes(1, cpu=4)
    job = story.create(a_job("sweep", pods=4))
    story.wait("four pods run", lambda now: now.running() == 4)
    story.patch(job, {"spec": {"parallelism": 6, "completions": 6}})
    story.wait("two more wait", lambda now: len(now.pods()) == 6 and not any(map(now.gates, now.pods())))
    story.finish_pods([_of_index(story, "0")], "Failed")

    story.wait("the rank is made again", lambda now: len(now.pods()) == 7)
    story.recording.quiet()
    assert _running_indexes(story) in ([1, 2, 3, 4], [1, 2, 3, 5])
    assert story.policy("main") == {"gang": {"minCount": 4}}
    story.add_nodes(1, cpu=2)
    story.wait("all six run", lambda now: _running_indexes(now) == [0, 1, 2, 3, 4, 5], 90)
    story.wait("it is a gang of six", lambda now: now.policy("main") == {"gang": {"minCount": 6}})


def _words_of_the_scheduler(story: RealStory) -> list[str]:
    """Its Events about pods, and what the pods' conditions say of scheduling."""
    events = story.recording.now("Event").values()
    messages = [
        str(event["message"]) for event in events if event.get("reportingComponent") == "default-scheduler"
    ]
    conditions = [condition for pod in story.pods() for condition in pod["status"].get("conditions") or []]
    return messages + [str(condition) for condition in conditions if condition["type"] == "PodScheduled"]


def _running_indexes(story: RealStory) -> list[int]:
    running = [pod for pod in story.pods() if pod["status"].get("phase") == "Running"]
    return sorted(int(pod["metadata"]["labels"][_INDEX]) for pod in running)


_INDEX = "batch.kubernetes.io/job-completion-index"
