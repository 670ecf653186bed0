"""Pods of one group need one priority and one scheduler; of classes it counts what they come to."""

from __future__ import annotations

import pytest

from muster.replay.summary import group_of
from tests.e2e.support.owners import Object, a_jobset
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def a_jobset_of(templates: dict[str, Object]) -> Object:
    """A JobSet of two pods for each name; a pod spec's fields, and the group under `label`."""
    jobset = a_jobset("sim", dict.fromkeys(templates, (1, 2)))
    for entry, fields in zip(jobset["spec"]["replicatedJobs"], templates.values(), strict=True):
        template = entry["template"]["spec"]["template"]
        template["spec"] |= {name: value for name, value in fields.items() if name != "label"}
        if "label" in fields:
            template["metadata"]["labels"] = {"muster.dev/group": fields["label"]}
    return jobset


def priorities(story: RealStory) -> set[tuple[int, int]]:
    """For each pod its priority and that of its PodGroup."""
    groups = story.groups()
    return {(pod["spec"]["priority"], groups[group_of(pod)]["spec"]["priority"]) for pod in story.pods()}


def test_classes_of_one_value_make_one_gang(story: RealStory) -> None:
    """Under different names: with room for three of four no pod runs, with room for four all do."""
    story.add_nodes(1, cpu=3)
    high, urgent = story.priority_class("high", 1000), story.priority_class("urgent", 1000)
    pair = {"a": {"label": "g", "priorityClassName": high}, "b": {"label": "g", "priorityClassName": urgent}}
    story.create(a_jobset_of(pair))
    story.wait("the gang exists", lambda now: len(now.groups()) == 1)
    story.recording.quiet()
    assert (story.running(), story.policy("g")) == (0, {"gang": {"minCount": 4}})
    story.add_nodes(1)
    story.wait("four pods run", lambda now: now.running() == 4)
    story.wait_for_true("JobSet", "sim", "PodGroupsScheduled")
    assert priorities(story) == {(1000, 1000)}
    assert story.reason("JobSet", "sim", "PodGroupsReady") == "PodGroupsExist"


@pytest.mark.parametrize(
    ("other", "scheduler_says"),
    [
        pytest.param({"value": 10}, "should have the same priority", id="of another value"),
        pytest.param(
            {"value": 1000, "preemptionPolicy": "Never"},
            "should have the same preemption policy",
            id="of one value, of which one never preempts",
        ),
    ],
)
def test_pods_of_two_priorities_get_fallback_groups(
    story: RealStory, other: Object, scheduler_says: str
) -> None:
    """The scheduler places none of them in a basic group either; a group of pods that are alike runs."""
    story.add_nodes(1)
    high = {"priorityClassName": story.priority_class("high", 1000)}
    second = {"priorityClassName": story.priority_class("other", **other)}
    jobset = {"a": {"label": "g", **high}, "b": {"label": "g", **second}, "c": {"label": "alike", **high}}
    story.create(a_jobset_of(jobset))
    reason = "PodsDiffer"
    story.wait_for_reason("JobSet", "sim", "PodGroupsReady", reason)
    story.wait("the two that are alike run", lambda now: len(now.running_of("alike")) == 2)
    story.wait("the scheduler has spoken", lambda now: scheduler_says in str(now.group("g").get("status")))
    story.recording.quiet()
    assert story.running_of("g") == []
    assert (story.policy("g"), story.policy("alike")) == ({"basic": {}}, {"basic": {}})
    assert story.recording.now("Workload") == {}


def test_groups_of_one_owner_may_have_different_classes(story: RealStory) -> None:
    """Each PodGroup has its pods' class; the Workload names none, because its templates may not differ."""
    story.add_nodes(1)
    high, low = story.priority_class("high", 1000), story.priority_class("low", 10)
    story.create(a_jobset_of({"a": {"priorityClassName": high}, "b": {"priorityClassName": low}, "c": {}}))
    story.wait("six pods run", lambda now: now.running() == 6)
    assert priorities(story) == {(1000, 1000), (10, 10), (0, 0)}
    assert "priorityClassName" not in str(story.recording.now("Workload")["sim"]["spec"])


def test_pods_and_group_take_the_clusters_default_class(story: RealStory) -> None:
    """Neither names it; a template that names a class of the same value is of the same gang."""
    story.add_nodes(1)
    story.priority_class("usual", 1000, globalDefault=True)
    urgent = story.priority_class("urgent", 1000)
    story.create(
        a_jobset_of({"a": {"label": "g"}, "b": {"label": "g", "priorityClassName": urgent}, "c": {}})
    )
    story.wait("six pods run", lambda now: now.running() == 6)
    assert priorities(story) == {(1000, 1000)}
    assert (story.policy("g"), story.policy("c")) == ({"gang": {"minCount": 4}}, {"gang": {"minCount": 2}})
