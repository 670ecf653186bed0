"""The recorded stories: the users' actions, the runs of functions, and the stored moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from muster.policy.sources.source import ANNOTATION
from tests.cluster.api import JSON_PATCH
from tests.cluster.manifests import path
from tests.replays.recording.play import Play
from tests.replays.recording.take import Object


@dataclass(frozen=True)
class Script:
    """One story.

    Attributes:
        namespace: where it takes place.
        play: the story.
        shipped: a runtime of the Trainer's, which the story gets as its own; "" for none.
        runtime: the name that this runtime has in the story.
    """

    namespace: str
    play: Callable[[Play, Object], None]
    shipped: str = ""
    runtime: str = ""


_BORN, _MADE, _GROUPED = "before create_workload", "before create_pod_groups", "before patch_pods"


def torch(play: Play, runtime: Object) -> None:
    """A TrainJob of three nodes, from its creation to its end."""
    play.create(runtime)
    play.still("before TrainJob")
    trainjob = play.create(_trainjob("llama", runtime, 3, resourcesPerNode={"requests": {"cpu": "2"}}))
    _group(play, _GROUPED)
    play.run("patch_pods")
    play.when("all bound", _all_bound)
    play.still("all running")
    play.finish("trainer")
    play.still("complete")
    play.delete(trainjob)
    play.still("deleted")


def torchtune(play: Play, runtime: Object) -> None:
    """A TrainJob whose trainer waits for two initializers."""
    play.add_volume("initializer-qwen")
    play.create(runtime)
    play.still("before TrainJob")
    trainjob = play.create(_trainjob("qwen", runtime, 2))
    _group(play, f"{_GROUPED} (initializers)")
    play.run("patch_pods")
    play.still("initializers running")
    # One after the other: the status of the JobSet may show two ends in one update or in two.
    play.finish("dataset-initializer")
    play.rest()
    play.finish("model-initializer")
    play.still(f"{_GROUPED} (trainer)")
    play.run("patch_pods")
    play.still("trainer running")
    play.finish("trainer")
    play.still("complete")
    play.delete(trainjob)
    play.still("deleted")


def job_scaled(play: Play, _runtime: Object) -> None:
    """An Indexed Job of four pods, then of six, then of two."""
    job = play.create(_job("sweep", pods=4))
    _group(play, _GROUPED)
    play.run("patch_pods")
    play.still("running")
    _scale(play, job, 6)
    play.still("before resize_gang to 6")
    _grow_by_hand(play, 6)
    play.still(f"{_GROUPED} (scaled to 6)")
    play.run("patch_pods")
    play.still("running with 6")
    _scale(play, job, 2)
    play.still("before resize_gang to 2")
    play.run("resize_gang")
    play.still("running with 2")
    play.delete(job)
    play.still("deleted")


def does_not_fit(play: Play, _runtime: Object) -> None:
    """A Job of four pods where there is room for three, until there is room for four."""
    job = play.create(_job("big", pods=4, cpu=6))
    _group(play, _GROUPED)
    play.run("patch_pods")
    play.still("unschedulable")
    play.add_node("node-4")
    play.when("node added, all bound", _all_bound)
    play.finish("main")
    play.still("complete")
    play.delete(job)
    play.still("deleted")


def runtime_annotated(play: Play, runtime: Object) -> None:
    """Policies on runtimes come, change and go while a TrainJob uses one of them."""
    torch_gang = play.create(runtime)
    play.still("before annotation")
    _annotate(play, torch_gang, "workload: {}\n")
    play.still("before mark_runtime")
    play.run("mark_runtime")
    play.still("marked")
    trainjob = play.create(_trainjob("bert", runtime, 2))
    play.still(_BORN)
    play.run("create_workload")
    play.run("create_pod_groups")
    play.still(_GROUPED)
    play.run("patch_pods")
    play.still("running")
    group = "{name: trainer, replicatedJobs: [node], disruptionMode: {all: {}}}"
    _annotate(play, torch_gang, f"workload: {{groups: [{group}]}}\n")
    play.still("annotation changed")
    metadata = {**runtime["metadata"], "name": "torch-local"}
    torch_local = play.create({**runtime, "kind": "TrainingRuntime", "metadata": metadata})
    _annotate(play, torch_local, "kaiScheduler: {queue: team-g}\n")
    play.still("namespaced runtime annotated")
    play.finish("trainer")
    play.still("complete")
    _annotate(play, torch_gang, None)
    for obj in (trainjob, torch_gang, torch_local):
        play.delete(obj)
    play.still("deleted")


SCRIPTS = {
    "1-torch": Script("team-a", torch, "torch-distributed", "torch-distributed"),
    "2-torchtune": Script("team-b", torchtune, "torchtune-qwen2.5-1.5b", "torchtune-qwen2.5-1.5b"),
    "4-job-scaled": Script("team-d", job_scaled),
    "5-does-not-fit": Script("team-e", does_not_fit),
    "7-runtime-annotated": Script("team-g", runtime_annotated, "torch-distributed", "torch-gang"),
}
"""The stories by name of their files."""


def _group(play: Play, then: str) -> None:
    """Run the steps from a new job to its PodGroups, with a moment before each."""
    play.still(_BORN)
    play.run("create_workload")
    play.still(_MADE)
    play.run("create_pod_groups")
    play.still(then)


def _all_bound(pods: list[Object]) -> bool:
    return bool(pods) and all(pod["spec"].get("nodeName") for pod in pods)


def _job(name: str, pods: int, cpu: int = 1) -> Object:
    resources = {"requests": {"cpu": str(cpu)}}
    container = {"name": "main", "image": "example.com/train:1", "resources": resources}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"completionMode": "Indexed", "parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _trainjob(name: str, runtime: Object, nodes: int, **trainer: Object) -> Object:
    return {
        "apiVersion": runtime["apiVersion"],
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime["metadata"]["name"]},
            "trainer": {"numNodes": nodes, **trainer},
        },
    }


def _scale(play: Play, job: Object, pods: int) -> None:
    play.patch(job, {"spec": {"parallelism": pods, "completions": pods}})


def _grow_by_hand(play: Play, pods: int) -> None:
    """The gang asks for its new pods before they are let go, as resize_gang would only once they are bound.

    So there is a recorded state in which placed members and held ones wait for each other.
    """
    (workload,) = play.recording.now("Workload").values()
    (group,) = play.recording.now("PodGroup").values()
    policy = "schedulingPolicy/gang/minCount"
    for one, field in ((workload, f"podGroupTemplates/0/{policy}"), (group, policy)):
        change = [{"op": "replace", "path": f"/spec/{field}", "value": pods}]
        play.api.must("PATCH", path(one), change, JSON_PATCH)


def _annotate(play: Play, runtime: Object, policy: str | None) -> None:
    play.patch(runtime, {"metadata": {"annotations": {ANNOTATION: policy}}})
