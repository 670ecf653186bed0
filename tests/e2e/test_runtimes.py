"""A policy on a runtime becomes marks on its pod templates, which TrainJobs made later carry."""

from __future__ import annotations

import json

import pytest

from tests.cluster import manifests
from tests.e2e.support.owners import Object, a_trainjob
from tests.e2e.support.runtimes import POLICY, a_runtime, marks
from tests.e2e.support.story import Story

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

GANG: Object = {"name": "workers", "replicatedJobs": ["node"], "schedulingPolicy": {"gang": {"minCount": 2}}}
WORKERS = json.dumps({"workload": {"groups": [GANG]}})


def test_a_policy_on_a_runtime_shapes_the_groups_of_its_trainjobs(story: Story) -> None:
    """The runtime's group has the name and the minCount of its policy; taken away, the marks go as well."""
    story.add_nodes(2)
    runtime = story.create(a_runtime(story.api, "gangs", WORKERS))
    story.wait_for(runtime, "it is marked", lambda now: marks(now) == {"muster.dev/group": "workers"})

    story.create(a_trainjob("bert", "gangs", kind="TrainingRuntime", nodes=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("workers") == {"gang": {"minCount": 2}}

    story.patch(runtime, {"metadata": {"annotations": {POLICY: None}}})
    story.wait_for(runtime, "its marks are gone", lambda now: marks(now) == {})


def test_a_runtime_of_all_namespaces_is_marked_too(story: Story) -> None:
    """A ClusterTrainingRuntime is in no namespace; its TrainJobs are gangs like any others."""
    story.add_nodes(1)
    name = f"gangs-of-{story.namespace}"
    runtime = a_runtime(story.api, name, WORKERS, kind="ClusterTrainingRuntime")
    story.api.must("POST", manifests.collection(runtime), runtime)
    try:
        story.wait_for(runtime, "it is marked", lambda now: marks(now) == {"muster.dev/group": "workers"})
        trainjob = story.create(a_trainjob("bert", name, nodes=3))
        story.wait("three pods run", lambda now: now.running() == 3)
        assert story.policy("workers") == {"gang": {"minCount": 2}}
        story.delete(trainjob)
        story.wait("nothing is left", lambda now: not now.leftovers())
    finally:
        story.api.must("DELETE", manifests.path(runtime))
