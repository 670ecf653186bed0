"""A policy on a runtime becomes marks on its pod templates, which TrainJobs made later carry."""

from __future__ import annotations

import json

import pytest

from tests.e2e.support.owners import Object, a_trainjob
from tests.e2e.support.story import Story

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ANNOTATION = "muster.dev/pod-group-policy"


def test_a_policy_on_a_runtime_shapes_the_groups_of_its_trainjobs(story: Story) -> None:
    """The runtime's group has the name and the minCount of its policy; taken away, the marks go as well."""
    story.add_nodes(2)
    gang = {"name": "workers", "replicatedJobs": ["node"], "schedulingPolicy": {"gang": {"minCount": 2}}}
    runtime = story.create(_runtime(story, {ANNOTATION: json.dumps({"workload": {"groups": [gang]}})}))
    story.wait_for(runtime, "it is marked", lambda now: _marks(now) == {"muster.dev/group": "workers"})

    story.create(a_trainjob("bert", "gangs", kind="TrainingRuntime", nodes=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("workers") == {"gang": {"minCount": 2}}

    story.patch(runtime, {"metadata": {"annotations": {ANNOTATION: None}}})
    story.wait_for(runtime, "its marks are gone", lambda now: _marks(now) == {})


def _runtime(story: Story, annotations: dict[str, str]) -> Object:
    """Returns torch-distributed as a runtime of the story's namespace, under the name `gangs`."""
    path = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/torch-distributed"
    shipped = story.api.must("GET", path)
    metadata = {"name": "gangs", "labels": shipped["metadata"]["labels"], "annotations": annotations}
    return {**shipped, "kind": "TrainingRuntime", "metadata": metadata}


def _marks(runtime: Object) -> dict[str, str]:
    template = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {key: value for key, value in labels.items() if key.startswith("muster.dev/")}
