"""Objects of a running job that a user deletes are created again, and the job runs on meanwhile."""

from __future__ import annotations

from functools import partial

import pytest

from tests.e2e.conftest import RealStage, Stages
from tests.e2e.support.owners import Object, a_runtime, a_trainjob
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

WORKLOAD: Object = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload"}
CONFIG_MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap"}


def test_deleted_workloads_are_created_again(story: RealStory, stage: RealStage, stages: Stages) -> None:
    """Meanwhile their gangs run on, and replacements join them.

    Without a Workload every function has to find the policy by itself, and without the Trainer's snapshot of
    the runtime, which those before 2.3 do not make, in the runtime: one of the namespace, one of the cluster.
    """
    stages.spoil()  # without its Trainer: it would make the snapshots anew at once
    story.add_nodes(1)
    story.create(a_runtime(story.api, "own"))
    story.create(a_trainjob("bert", "own", kind="TrainingRuntime", nodes=2))
    story.create(a_trainjob("llama", "torch-distributed", nodes=2))
    story.wait("four pods run", lambda now: now.running() == 4)
    for name in ("bert", "llama"):
        story.wait("it says so", partial(_is_scheduled, name=name))
    groups = {name: group["metadata"]["uid"] for name, group in story.groups().items()}

    stage.cluster.stop_process(stage.cluster.process("trainer"))
    stage.muster.stop_function("create-workload")
    for name in ("bert", "llama"):
        story.delete(_named(story, CONFIG_MAP, f"{name}-runtime-snapshot"))
        story.delete(_named(story, WORKLOAD, name))
    story.wait("the Workloads are gone", lambda now: not now.recording.now("Workload"))
    stage.muster.sweep()
    assert stage.muster.idle()
    before = uids(story.pods())
    for pod in story.pods():
        if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "0":
            story.delete({"apiVersion": "v1", "kind": "Pod", **pod})
    story.wait("replacements run", lambda now: now.running() == 4 and len(uids(now.pods()) - before) == 2)

    stage.muster.start_function("create-workload")
    assert stage.muster.idle()
    stage.muster.dead_letters.clear()  # what create-workload was sent while it was away
    stage.muster.sweep()
    story.wait("they are back", lambda now: set(now.recording.now("Workload")) == {"bert", "llama"})
    assert {name: group["metadata"]["uid"] for name, group in story.groups().items()} == groups


def _is_scheduled(story: RealStory, name: str) -> bool:
    return story.condition("TrainJob", name, "PodGroupsScheduled") == "True"


def _named(story: RealStory, kind: Object, name: str) -> Object:
    return {**kind, "metadata": {"name": name, "namespace": story.namespace}}
