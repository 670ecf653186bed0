"""A replicatedJob of a runtime is renamed: an applied group label keeps the old entry, Muster's does not."""

from __future__ import annotations

import copy

import pytest

from tests.cluster import manifests
from tests.cluster.api import APPLY
from tests.e2e.support.owners import Object, a_runtime, a_trainjob, template_labels
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_an_entry_of_a_marked_runtime_can_be_renamed(story: RealStory) -> None:
    """Group labels survive an unchanged apply; a renamed entry is labelled again, its TrainJob is a gang."""
    story.add_nodes(1)
    policy = "workload: {}"
    runtime = _applied(story, _runtime(story, "node", policy))
    story.wait_for(
        runtime, "it is labelled", lambda now: template_labels(now) == {"muster.dev/group": "trainer"}
    )
    again = _applied(story, _runtime(story, "node", policy))
    assert template_labels(again) == {"muster.dev/group": "trainer"}

    renamed = _applied(story, _runtime(story, "worker", policy))
    assert _names(renamed) == {"worker"}
    story.wait_for(runtime, "it is labelled again", lambda now: template_labels(now) != {})
    story.create(a_trainjob("bert", "own", kind="TrainingRuntime", nodes=2))
    story.wait("two pods run", lambda now: now.running() == 2)
    (group,) = story.groups().values()
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}


def _runtime(story: RealStory, entry: str, policy: str = "") -> Object:
    """The shipped runtime torch-distributed as its owner applies it, its entry under that name."""
    shipped = copy.deepcopy(a_runtime(story.api, "own", policy))
    shipped["metadata"]["namespace"] = story.namespace
    shipped["spec"]["template"]["spec"]["replicatedJobs"][0]["name"] = entry
    return {key: shipped[key] for key in ("apiVersion", "kind", "metadata", "spec")}


def _applied(story: RealStory, body: Object, manager: str = "owner") -> Object:
    placed = {**body, "metadata": {**body["metadata"], "namespace": story.namespace}}
    query = {"fieldManager": manager}
    applied: Object = story.api.must("PATCH", manifests.path(placed), placed, APPLY, query)
    return applied


def _names(runtime: Object) -> set[str]:
    return {entry["name"] for entry in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
