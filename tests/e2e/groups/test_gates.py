"""Scheduling gates that Muster shares with others."""

from __future__ import annotations

import pytest

from tests.cluster import manifests
from tests.cluster.api import STRATEGIC_PATCH
from tests.e2e.support.owners import POLICY, Object, a_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

OTHERS = [f"example.com/gate-{number}" for number in range(5)]


@pytest.mark.parametrize("policy", ["workload: {}", "workload: {gangs: []}"], ids=["gang", "fallback group"])
def test_a_gate_of_another_is_left_to_it(story: RealStory, policy: str) -> None:
    """Muster removes its own; the group waits for a pod with another controller's gate, a basic group too."""
    story.add_nodes(1)
    job = a_job("sweep", pods=3)
    job["metadata"]["annotations"] = {POLICY: policy}
    job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": OTHERS[0]}]
    story.create(job)
    held = [{OTHERS[0]}] * 3
    story.wait("Muster's are lifted", lambda now: [now.gates(pod) for pod in now.pods()] == held)
    first, *others = story.pods()
    lifted = {"spec": {"schedulingGates": [{"$patch": "delete", "name": OTHERS[0]}]}}
    for pod in others:
        story.api.must("PATCH", manifests.path({**_POD, **pod}), lifted, STRATEGIC_PATCH)
    story.recording.quiet()
    assert not any(pod["spec"].get("nodeName") for pod in story.pods())
    story.api.must("PATCH", manifests.path({**_POD, **first}), lifted, STRATEGIC_PATCH)
    story.wait("three pods run", lambda now: now.running() == 3)


_POD: Object = {"apiVersion": "v1", "kind": "Pod"}
