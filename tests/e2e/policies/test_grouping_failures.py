"""Owners that cannot have their gangs say so, whatever their kind."""

from __future__ import annotations

import pytest

from tests.cluster import manifests
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job, a_jobset, a_trainjob, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

OWNERS = {
    "TrainJob": a_trainjob("held", "torch-distributed", nodes=2),
    "JobSet": a_jobset("held", {"workers": (1, 2)}),
    "Job": a_job("held", pods=2),
}


def a_quota_of_none(name: str, resource: str) -> Object:
    """Return a ResourceQuota that lets no object of a resource be created."""
    hard = {f"count/{resource}.scheduling.k8s.io": "0"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}}


@pytest.mark.parametrize("kind", list(OWNERS))
def test_an_invalid_policy_is_reported_on_the_owner(story: RealStory, kind: str) -> None:
    """A condition says why there is no gang, and the pods run all the same."""
    story.add_nodes(1)
    story.create(with_policy(OWNERS[kind], "workload: {gangs: []}"))
    story.wait("two pods run", lambda now: now.running() == 2)
    story.wait_for_reason(kind, "held", "PodGroupsReady", "InvalidPolicy")
    assert {str(group["spec"]["schedulingPolicy"]) for group in story.groups().values()} == {"{'basic': {}}"}


def test_a_group_that_the_api_server_refuses_is_reported_and_created_later(
    story: RealStory, muster_on_it: Muster
) -> None:
    """With a quota of no PodGroups the pods that a policy holds wait, and an Event quotes the API server."""
    story.add_nodes(1)
    quota = story.create(a_quota_of_none("no-groups", "podgroups"))
    story.wait_for(quota, "it is enforced", lambda now: bool(now.get("status", {}).get("hard")))
    story.create(with_policy(OWNERS["Job"], "workload: {onFailure: Hold}"))
    story.wait("an Event says why", lambda now: "exceeded quota: no-groups" in now.messages("RefusedByApi"))
    story.recording.quiet()
    assert story.groups() == {}
    assert (sum(bool(story.gates(pod)) for pod in story.pods()), story.running()) == (1, 0)

    story.api.must("DELETE", manifests.path(quota))
    for _ in range(2):
        muster_on_it.sweep()
        assert muster_on_it.idle()
    story.wait("two pods run", lambda now: now.running() == 2)
    assert story.policy("main") == {"gang": {"minCount": 2}}
