"""Trees of four levels, last blocks that are smaller, policies that labels or gates do not bear out."""

from __future__ import annotations

import pytest

from tests.e2e.support.owners import POLICY, a_job, a_jobset
from tests.e2e.support.story import RealStory

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
    jobset = a_jobset("deep", {"prefill": (1, 2), "decode": (1, 2)})
    jobset["metadata"]["annotations"] = {POLICY: FOUR_LEVELS}
    story.create(jobset)
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
    story.wait("it says so", lambda now: now.reason("Job", "mesh", "PodGroupsReady") == "FieldsDropped")
    conditions = story.recording.now("Job")["mesh"]["status"]["conditions"]
    (ready,) = (condition for condition in conditions if condition["type"] == "muster.dev/PodGroupsReady")
    assert ready["status"] == "True"
    for name in ("main", "preemptionPolicy", "PodGroupPreemptionPolicy", "resourceClaims"):
        assert name in ready["message"]
    assert not {"preemptionPolicy", "resourceClaims"} & story.group("main")["spec"].keys()


def _label(group: str) -> str:
    return group.removeprefix("deep-").rsplit("-", 1)[0]
