"""Groups of groups of several levels: placed as a whole, restarted as a whole, and taken away."""

from __future__ import annotations

import pytest

from muster.replay.summary import group_of
from tests.cluster.processes import until
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import POLICY, Object, a_job, a_jobset, with_policy
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import chat, min_group_count, runs

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

FOUR_LEVELS = """
workload:
  groups:
  - name: zone
    disruptionMode: {all: {}}
    groups:
    - name: row
      disruptionMode: {all: {}}
      groups:
      - name: rack
        disruptionMode: {single: {}}
        groups: [{name: prefill}, {name: decode, disruptionMode: {single: {}}}]
"""


def test_a_tree_of_four_levels_is_placed_as_a_whole(story: RealStory) -> None:
    """Room for three of the four pods: no pod runs. With room for all, each level names the one above it."""
    story.add_nodes(1, cpu=3)
    story.create(
        with_policy(a_jobset("deep", {"prefill": (1, 2), "decode": (1, 2)}, apart=True), FOUR_LEVELS)
    )
    story.wait("no gate is left", lambda now: len(now.pods()) == 4 and not any(map(now.gates, now.pods())))
    story.recording.quiet()
    assert story.running() == 0

    story.add_nodes(1, cpu=1)
    story.wait("four pods run", lambda now: now.running() == 4)
    groups = {**story.recording.now("CompositePodGroup"), **story.groups()}
    parents = {
        _label(name): _label(body["spec"].get("parentCompositePodGroupName", ""))
        for name, body in groups.items()
    }
    assert parents == {"zone": "", "row": "zone", "rack": "row", "prefill": "rack", "decode": "rack"}
    modes = {_label(name): body["spec"]["disruptionMode"] for name, body in groups.items()}
    assert {label for label, mode in modes.items() if mode == {"all": {}}} == {"zone", "row", "prefill"}, (
        modes
    )


def test_settings_that_the_api_server_drops_are_reported(story: RealStory) -> None:
    """Without their feature gates they vanish; the pods run, and the owner says what is missing."""
    story.add_nodes(1)
    job = a_job("mesh", pods=2)
    claims = "[{name: nic, resourceClaimTemplateName: nic}]"
    settings = f"preemptionPolicy: PreemptLowerPriority, resourceClaims: {claims}"
    job["metadata"]["annotations"] = {POLICY: f"workload: {{groups: [{{name: main, {settings}}}]}}"}
    story.create(job)
    story.wait("two pods run", lambda now: now.running() == 2)
    story.wait_for_reason("Job", "mesh", "PodGroupsReady", "FieldsDropped")
    conditions = story.recording.now("Job")["mesh"]["status"]["conditions"]
    (ready,) = (condition for condition in conditions if condition["type"] == "muster.dev/PodGroupsReady")
    assert ready["status"] == "True"
    for name in ("main", "preemptionPolicy", "PodGroupPreemptionPolicy", "resourceClaims"):
        assert name in ready["message"]
    assert not {"preemptionPolicy", "resourceClaims"} & story.group("main")["spec"].keys()


def _label(group: str) -> str:
    return group.removeprefix("deep-").rsplit("-", 1)[0]


def bound(story: RealStory, before: set[str]) -> list[str]:
    """New pods of the gang that have a node."""
    new = [pod for pod in story.pods() if group_of(pod) and pod["metadata"]["uid"] not in before]
    return [pod["metadata"]["name"] for pod in new if pod["spec"].get("nodeName")]


COMPOSITE = """
workload:
  groups:
  - name: all
    schedulingPolicy: {gang: {minGroupCount: 1}}
    groups:
    - {name: main, schedulingPolicy: {gang: {minCount: 2}}}
"""

GROUPS = "/apis/scheduling.k8s.io/v1alpha3/namespaces/{}/compositepodgroups"


def composites(story: RealStory) -> list[Object]:
    """Return the CompositePodGroups of the story."""
    groups: list[Object] = story.api.must("GET", GROUPS.format(story.namespace))["items"]
    return groups


def test_an_orphaned_tree_is_taken_away(story: RealStory, muster_on_it: Muster) -> None:
    """A Job deleted with orphaned children orphans the groups above its pods too; a sweep takes them away."""
    story.add_nodes(1)
    made = story.create(with_policy(a_job("sweep", pods=2), COMPOSITE))
    story.wait("two pods run", lambda now: now.running() == 2)
    assert len(composites(story)) == 1

    story.delete_job_and_then_its_pods(made)
    muster_on_it.sweep()
    story.wait("Workload and group are gone", lambda now: not now.leftovers())
    assert until(lambda: not composites(story), 20), "a CompositePodGroup is left"


def test_a_tree_ends_with_the_work_and_comes_again_as_a_whole(story: RealStory, muster_on_it: Muster) -> None:
    """No CompositePodGroup while the JobSet is suspended; at its resumption all, by events alone."""
    jobset = story.create(chat())
    runs(story)
    with muster_on_it.without_sweeps():
        story.patch(jobset, {"spec": {"suspend": True}})
        story.wait("all are gone", lambda now: not (now.pods() or now.groups() or min_group_count(now)), 90)
        story.patch(jobset, {"spec": {"suspend": False}})
        story.wait("four pods run", lambda now: now.running() == 4, 90)
    assert (len(story.groups()), min_group_count(story)) == (2, 2)
