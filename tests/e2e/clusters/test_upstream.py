"""Pods whose annotation asks upstream to group them, where its gate is off and no controller does."""

from __future__ import annotations

from typing import Any

import pytest

from muster.replay.summary import group_of
from tests.e2e.support.owners import Object, a_jobset, a_runtime, a_trainjob, template_labels
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

DELEGATED = {"scheduling.k8s.io/group-template-name": "sim"}


def test_a_labelled_template_that_upstream_leaves_ungrouped_runs_in_a_fallback_group(
    story: RealStory, stage: Any
) -> None:
    """Admission stamps by the group label, so its pods would wait for ever; the workers are a gang."""
    story.add_nodes(1)
    jobset = a_jobset("sim", {"workers": (1, 2), "other": (1, 2)})
    template = jobset["spec"]["replicatedJobs"][1]["template"]
    template["metadata"] = {"annotations": DELEGATED}
    template["spec"]["template"]["metadata"]["labels"] = {"muster.dev/group": "other"}
    story.create(jobset)
    story.wait("the workers run", lambda now: len(now.running_of("workers")) == 2)
    stage.muster.sweep()
    story.wait("all four pods run", lambda now: now.running() == 4)
    assert (story.policy("workers"), story.policy("other")) == ({"gang": {"minCount": 2}}, {"basic": {}})
    reason = "UpstreamGroups"
    story.wait_for_reason("JobSet", "sim", "PodGroupsReady", reason)
    stage.muster.sweep()
    story.recording.quiet()
    assert story.reason("JobSet", "sim", "PodGroupsReady") == reason


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        pytest.param("UpstreamGroups", {"metadata": {"annotations": DELEGATED}}, id="to upstream"),
        pytest.param("BringYourOwnGroup", {"schedulingGroup": {"podGroupName": "mine"}}, id="to a group"),
    ],
)
def test_a_runtime_whose_pods_upstream_groups_is_not_labelled(
    story: RealStory, reason: str, change: Object
) -> None:
    """Its policy labels nothing, an Event says why, and its TrainJobs run as without Muster."""
    story.add_nodes(1)
    runtime = a_runtime(story.api, "mine", "workload: {}")
    template = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]
    if "metadata" in change:
        template.setdefault("metadata", {})["annotations"] = change["metadata"]["annotations"]
    else:
        template["spec"]["template"]["spec"] |= change
        policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "mine"}}
        story.create({**group, "spec": policy})
    created = story.create(runtime)
    story.wait("an Event says so", lambda now: reason in _told_of(now, created))
    story.create(a_trainjob("bert", "mine", kind="TrainingRuntime", nodes=2))
    story.wait("two pods run", lambda now: now.running() == 2)
    story.recording.quiet()
    assert story.recording.now("Workload") == {}
    assert {group_of(pod) for pod in story.pods()} == {"mine" if reason == "BringYourOwnGroup" else ""}
    assert [story.gates(pod) for pod in story.pods()] == [set(), set()]
    story.wait_for(created, "it has no group label", lambda now: template_labels(now) == {})


def _told_of(story: RealStory, runtime: Object) -> set[str]:
    """The reasons of the Events about a runtime."""
    events = story.recording.now("Event").values()
    return {
        event["reason"] for event in events if event["involvedObject"]["uid"] == runtime["metadata"]["uid"]
    }
