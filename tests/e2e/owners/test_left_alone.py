"""What Muster does not touch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.replay.summary import group_of
from tests.cluster.api import MERGE_PATCH
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import a_job, a_jobset, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_nothing_at_all_happens_in_a_namespace_that_did_not_opt_in(
    begin_story: Callable[..., RealStory], muster_on_it: Muster
) -> None:
    """No gate, group, condition or write, nor for what was created before, once the namespace is opted in."""
    story = begin_story(opted_in=False)
    story.add_nodes(2)
    story.create(a_trainjob("llama", "torch-distributed", nodes=2))
    story.create(a_jobset("sim", {"workers": (1, 2)}))
    story.create(a_job("sweep", pods=2))
    story.wait("six pods run", lambda now: now.running() == 6)
    label = {"metadata": {"labels": {"muster.dev/gang-jobs": "enabled"}}}
    story.api.must("PATCH", f"/api/v1/namespaces/{story.namespace}", label, MERGE_PATCH)
    muster_on_it.sweep()
    story.recording.quiet()

    assert story.groups() == {}
    assert story.recording.now("Workload") == {}
    assert [pod["spec"].get("schedulingGates") for pod in story.pods()] == [None] * 6
    assert story.writes() == []


def test_a_group_that_the_user_brought_is_kept(story: RealStory) -> None:
    """Pods that name a group at birth stay in it, ungated; Muster makes nothing beside it."""
    story.add_nodes(1)
    version = "scheduling.k8s.io/v1beta1"
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    story.create({"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "mine"}, "spec": spec})
    job = a_job("sweep", pods=2)
    job["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
    story.create(job)
    story.wait("two pods run", lambda now: now.running() == 2)
    story.recording.quiet()

    assert set(story.groups()) == {"mine"}
    assert {group_of(pod) for pod in story.pods()} == {"mine"}
    assert story.recording.now("Workload") == {}
