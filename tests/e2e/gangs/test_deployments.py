"""Deployments and plain pods that are gangs by a label, on the real controllers and scheduler."""

from __future__ import annotations

import pytest

from tests.cluster import manifests
from tests.e2e.gangs.workloads import (
    MIN_COUNT,
    a_deployment,
    a_pod,
    a_stateful_set,
    a_template,
    min_counts,
    scaled,
)
from tests.e2e.support.muster import Muster
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_a_deployment_is_updated_and_rolled_back(story: RealStory, muster_on_it: Muster) -> None:
    """Surge pods join one by one beside the running revision; afterwards the new one is a gang of all."""
    story.add_nodes(1, cpu=8)
    created = story.create(a_deployment("web", 3))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert min_counts(story) == [3]
    for version in ("2", "1"):
        before = uids(story.pods())
        template = {"metadata": {"annotations": {"version": version}}}
        story.patch(created, {"spec": {"template": template}})
        _wait_until_replaced(story, before)
    muster_on_it.sweep()
    story.wait("it is a gang of three", lambda now: 3 in min_counts(now))


def test_an_update_without_surge_is_a_new_start(story: RealStory) -> None:
    """Recreate, with room for two of three: none of the new revision runs until there is room."""
    story.add_nodes(1, cpu=3)
    created = story.create(a_deployment("web", 3, strategy={"type": "Recreate"}))
    story.wait("three pods run", lambda now: now.running() == 3)
    template = a_template("all", cpu=2)
    story.patch(created, {"spec": {"template": template}})
    story.wait("new pods wait", lambda now: len(now.pods()) == 3 and "Unschedulable" in str(now.groups()))
    story.recording.quiet()
    assert story.running() == 0
    story.add_nodes(1)
    story.wait("three pods run", lambda now: now.running() == 3)


def test_a_deployment_that_gets_the_label_is_updated(story: RealStory) -> None:
    """The pods of the revision without it run; the first surge pod does not wait for a gang of three."""
    story.add_nodes(1, cpu=8)
    deployment = a_deployment("web", 3)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    del labels[MIN_COUNT]
    created = story.create(deployment)
    story.wait("three pods run", lambda now: now.running() == 3)
    story.patch(created, {"spec": {"template": {"metadata": {"labels": {MIN_COUNT: "all"}}}}})
    story.wait("they are replaced", lambda now: now.running() == 3 and not now.ungrouped(), 90)


def test_plain_pods_of_a_named_gang_start_together(story: RealStory, muster_on_it: Muster) -> None:
    """Three of four exist and wait; of the four one ends, and is not waited for when another comes again."""
    story.add_nodes(1, cpu=4)
    for number in range(3):
        story.create(a_pod(f"worker-{number}", "sweep", 4))
    story.wait("the group is made", lambda now: min_counts(now) == [4])
    story.recording.quiet()
    assert story.running() == 0
    (group,) = story.groups().values()
    assert "ownerReferences" not in group["metadata"]
    story.create(a_pod("worker-3", "sweep", 4))
    story.wait("four pods run", lambda now: now.running() == 4)

    story.finish_pods([pod for pod in story.pods() if pod["metadata"]["name"] == "worker-3"])
    story.wait("one has ended", lambda now: now.running() == 3)
    _delete(story, "worker-0")
    story.create(a_pod("worker-4", "sweep", 4))
    story.wait(
        "three others run",
        lambda now: now.running() == 3 and all(pod["metadata"]["name"] != "worker-0" for pod in now.pods()),
    )
    for pod in story.pods():
        _delete(story, pod["metadata"]["name"])
    story.wait("no pod is left", lambda now: not now.pods())
    with muster_on_it.without_sweeps():
        muster_on_it.sweep()
        story.recording.quiet(6)
        muster_on_it.sweep()
        story.wait("the group is removed", lambda now: not now.groups())
    for number in range(2):
        story.create(a_pod(f"again-{number}", "sweep", 2))
    story.wait("the name is used again", lambda now: now.running() == 2 and min_counts(now) == [2])


def test_a_gang_across_controllers_waits_for_both(story: RealStory) -> None:
    """A Deployment of two and a StatefulSet of two with the same gang: the half alone does not run."""
    story.add_nodes(1)
    first, second = a_deployment("driver", 2, 4), a_stateful_set("workers", 2, 4)
    for number, owner in enumerate((first, second)):
        metadata = owner["spec"]["template"]["metadata"]
        metadata["labels"] |= {"muster.dev/gang": "both", "app": f"web-{number}"}
        owner["spec"]["selector"] = {"matchLabels": {"app": f"web-{number}"}}
    story.create(first)
    story.wait("the group is made", lambda now: min_counts(now) == [4] and len(now.pods()) == 2)
    story.recording.quiet()
    assert story.running() == 0
    created = story.create(second)
    story.wait("four pods run", lambda now: now.running() == 4)
    assert list(story.groups()) == ["both"]
    scaled(story, created, 3)
    story.wait("five pods run", lambda now: now.running() == 5)


def _wait_until_replaced(story: RealStory, before: set[str]) -> None:
    story.wait("three other pods run", lambda now: now.running() == 3 and not uids(now.pods()) & before, 90)


def _delete(story: RealStory, name: str) -> None:
    pod = next(pod for pod in story.pods() if pod["metadata"]["name"] == name)
    story.api.must("DELETE", manifests.path({"apiVersion": "v1", "kind": "Pod", **pod}))
