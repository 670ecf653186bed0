"""Workloads and PodGroups of a user: used where they fit, never written, reported where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from muster.replay.summary import group_of
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job, a_jobset, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

VERSION = "scheduling.k8s.io/v1beta1"
GANG_OF_2: Object = {"gang": {"minCount": 2}}


def a_workload(
    name: str,
    owner: str,
    min_counts: Mapping[str, int],
    *,
    group: str = "jobset.x-k8s.io",
    kind: str = "JobSet",
) -> Object:
    """A user's Workload for a JobSet, or a Job: a gang of that minCount for each group label."""
    templates = [
        {"name": label, "schedulingPolicy": {"gang": {"minCount": count}}}
        for label, count in min_counts.items()
    ]
    reference = {"apiGroup": group, "kind": kind, "name": owner}
    spec = {"controllerRef": reference, "podGroupTemplates": templates}
    return {"apiVersion": VERSION, "kind": "Workload", "metadata": {"name": name}, "spec": spec}


def test_a_users_own_workload_is_used_under_any_name_and_never_written(story: RealStory) -> None:
    """Two of three pods run at once, as it says; neither Workload nor group follows the pods that end."""
    story.add_nodes(1, cpu=2)
    own = story.create(a_workload("by-hand", "sim", {"workers": 2}))
    story.create(a_jobset("sim", {"workers": (1, 3)}))
    story.wait("two pods run", lambda now: now.running() == 2)
    story.finish_pods([pod for pod in story.pods() if pod["status"]["phase"] == "Running"][:1])
    story.wait("the third is bound", lambda now: all(pod["spec"].get("nodeName") for pod in now.pods()))
    story.recording.quiet()
    assert story.policy("workers") == {"gang": {"minCount": 2}}
    (workload,) = story.recording.now("Workload").values()
    assert workload["metadata"]["resourceVersion"] == own["metadata"]["resourceVersion"]
    assert story.group("workers")["spec"]["workloadRef"]["workloadName"] == "by-hand"


def test_a_basic_template_of_any_name_opts_a_job_out_of_its_gang(story: RealStory) -> None:
    """With room for 2 of 4 pods, 2 run: the only template of a Workload is that of the only group."""
    story.add_nodes(1, cpu=2)
    own = a_workload("by-hand", "sweep", {"one-by-one": 1}, group="batch", kind="Job")
    own["spec"]["podGroupTemplates"][0]["schedulingPolicy"] = {"basic": {}}
    story.create(own)
    story.create(a_job("sweep", pods=4))
    story.wait("two pods run", lambda now: now.running() == 2)
    story.recording.quiet()
    assert story.running() == 2
    spec = story.group("main")["spec"]
    assert (spec["schedulingPolicy"], spec["workloadRef"]["templateName"]) == ({"basic": {}}, "one-by-one")


@pytest.mark.parametrize(
    ("names", "min_counts", "reason"),
    [
        pytest.param(("one", "two"), {"workers": 2}, "WorkloadDoesNotFit", id="two of them"),
        pytest.param(
            ("one",),
            {"other": 2, "more": 1},
            "WorkloadDoesNotFit",
            id="a Workload without a template for the group label",
        ),
    ],
)
def test_workloads_that_cannot_be_used_are_reported(
    story: RealStory, names: tuple[str, ...], min_counts: dict[str, int], reason: str
) -> None:
    """The pods run in a fallback group, the owner says why, and the Workloads stay as they are."""
    story.add_nodes(1)
    brought = {name: story.create(a_workload(name, "sim", min_counts)) for name in names}
    story.create(a_jobset("sim", {"workers": (1, 2)}))
    story.wait("two pods run", lambda now: now.running() == 2)
    story.wait_for_reason("JobSet", "sim", "PodGroupsReady", reason)
    assert story.policy("workers") == {"basic": {}}
    left = {name: one["metadata"]["resourceVersion"] for name, one in story.recording.now("Workload").items()}
    assert left == {name: one["metadata"]["resourceVersion"] for name, one in brought.items()}


def test_a_users_own_group_of_the_stamped_name_is_used(story: RealStory) -> None:
    """Muster holds the pods; the user makes the group they name: they go, and the group stays as it is."""
    story.add_nodes(1)
    story.create(with_policy(a_job("sweep", pods=3), "workload: {onFailure: Hold, groups: [{name: mian}]}"))
    story.wait("three pods wait", lambda now: len(now.pods()) == 3)
    (name,) = {group_of(pod) for pod in story.pods()}
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}}
    own = {"apiVersion": VERSION, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
    created = story.create(own)
    story.wait("three pods run", lambda now: now.running() == 3)
    story.recording.quiet()
    assert story.group("main")["spec"] == created["spec"]
    assert story.group("main")["metadata"].get("labels") is None


def test_scaling_changes_nothing_of_a_workload_that_a_user_brought(
    story: RealStory, muster_on_it: Muster
) -> None:
    """The Job grows and shrinks; its Workload is as it was made, and so is the gang that came of it."""
    story.add_nodes(1)
    own = story.create(a_workload("by-hand", "sweep", {"main": 2}, group="batch", kind="Job"))
    job = story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    before = story.group("main")["spec"]
    assert (before["schedulingPolicy"], before["workloadRef"]["workloadName"]) == (GANG_OF_2, "by-hand")
    _scale_up_and_down(story, muster_on_it, job)
    assert story.group("main")["spec"] == before
    (workload,) = story.recording.now("Workload").values()
    assert workload["metadata"]["resourceVersion"] == own["metadata"]["resourceVersion"]


def _runs(story: RealStory, pods: int) -> bool:
    return story.running() == len(story.pods()) == pods


def _scale_up_and_down(story: RealStory, muster_on_it: Muster, job: Object) -> None:
    for pods in (5, 1):
        story.patch(job, {"spec": {"parallelism": pods, "completions": pods}})
        story.wait(f"{pods} run", partial(_runs, pods=pods))
        muster_on_it.sweep()
        assert muster_on_it.idle()
