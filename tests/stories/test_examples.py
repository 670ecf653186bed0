"""Every example runs on the local stack: its groups are created and placed as its comments say."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.data import EVENTING
from muster.local.stack import Stack, StackOptions
from muster.local.stories.watching import TimelineRecorder
from muster.objects.resources import JOBS, JOBSETS, NODES, TRAINJOBS, by_kind
from muster.policy.group_labels import GATE, stamped_name
from muster.replay.snapshots import Object, Objects, first, read_snapshots
from muster.simulator.controllers import node

EXAMPLES = EVENTING / "examples"
SECONDS = 40.0
ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"


class RackStage:
    """The local stack with two zones of two racks, and actions and queries on it."""

    def __init__(self, stack: Stack, recorder: TimelineRecorder) -> None:
        self.stack = stack
        self.recorder = recorder

    def create(self, obj: Object) -> None:
        """Create one object."""
        self.stack.client.create(by_kind(obj["apiVersion"], obj["kind"]), obj, manager="kubectl")

    def until(self, what: str, holds: Callable[[], Any]) -> None:
        """Wait until a condition holds."""
        assert self.recorder.until(holds, SECONDS), what

    def all(self, namespace: str, kind: str) -> Objects:
        """Return the existing objects of a kind."""
        return [obj for obj in self.recorder.objects(namespace) if obj["kind"] == kind]

    def bound(self, namespace: str) -> dict[str, list[str]]:
        """Return the nodes of the bound pods by group."""
        nodes: dict[str, list[str]] = {}
        for pod in self.all(namespace, "Pod"):
            if pod["spec"].get("nodeName"):
                group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
                nodes.setdefault(group, []).append(pod["spec"]["nodeName"])
        return nodes

    def places(self, key: str, nodes: list[str]) -> set[str]:
        """Return the values of a label on these nodes."""
        node_objects = (self.stack.client.get(NODES, name) or {} for name in nodes)
        return {obj["metadata"]["labels"][key] for obj in node_objects}


@pytest.fixture(scope="module")
def stage() -> Iterator[RackStage]:
    """Eight more nodes of four CPUs: two zones of two racks of two."""
    with Stack(StackOptions()) as stack, TimelineRecorder(stack.client) as recorder:
        for number in range(8):
            labels = {ZONE: f"zone-{number // 4}", RACK: f"rack-{number // 2}"}
            body = node(f"rack-node-{number}", cpu="4", labels=labels)
            stack.client.create(NODES, body, manager="test")
        yield RackStage(stack, recorder)


@pytest.fixture(autouse=True)
def room(stage: RackStage) -> Iterator[None]:
    """Delete all Jobs and pods, so that each example begins with empty nodes."""
    yield
    for resource in (TRAINJOBS, JOBSETS, JOBS):
        for obj in stage.stack.client.list(resource):
            metadata = obj["metadata"]
            stage.stack.client.delete(resource, metadata["name"], metadata["namespace"])
    stage.until("all pods are gone", lambda: not stage.all("", "Pod"))


def objects_of(name: str) -> Objects:
    """Return the objects of an example."""
    return copy.deepcopy(first(read_snapshots([EXAMPLES / f"{name}.yaml"])).objects)


def namespace_of(objects: Objects) -> str:
    """Return the name of the namespace in an example."""
    (namespace,) = (obj["metadata"]["name"] for obj in objects if obj["kind"] == "Namespace")
    return str(namespace)


@pytest.mark.parametrize(
    ("example", "groups"),
    [
        pytest.param("all-or-nothing-disruption", {"main": 3}, id="all-or-nothing disruption"),
        pytest.param("leader-and-workers", {"leader": 1, "workers": 4}, id="a leader and its workers"),
        pytest.param(
            "jobset-leader-and-workers",
            {"leader": 2, "workers-0": 3, "workers-1": 3},
            id="leaders and workers as a JobSet",
        ),
        pytest.param("prefill-and-decode", {"prefill": 2, "decode": 4}, id="prefill and decode"),
        pytest.param("elastic-torch", {"trainer": 3}, id="elastic torch: three of four have room"),
        pytest.param("namespace-policy", {"main": 2}, id="a policy for a namespace"),
    ],
)
def test_an_example_runs(stage: RackStage, example: str, groups: dict[str, int]) -> None:
    """All pods are bound, in the expected groups, and none has Muster's gate."""
    objects = objects_of(example)
    namespace = namespace_of(objects)
    for obj in objects:
        stage.create(obj)

    def bound() -> dict[str, int]:
        return {_label(name): len(nodes) for name, nodes in stage.bound(namespace).items()}

    stage.until(f"bound: {groups}", lambda: bound() == groups)
    pods = stage.all(namespace, "Pod")
    assert all(
        pod["spec"]["schedulingGroup"]["podGroupName"] == stamped_name(pod["metadata"]["labels"])
        for pod in pods
    )
    stage.until("no gate is left", lambda: not _gated(stage.all(namespace, "Pod")))
    assert stage.stack.dead_letters == []


def test_blocks_are_each_in_a_rack_and_all_in_a_zone(stage: RackStage) -> None:
    """The groups fill two racks of one zone."""
    objects = objects_of("racks")
    for obj in objects:
        stage.create(obj)
    namespace = namespace_of(objects)

    def nodes() -> list[list[str]]:
        return list(stage.bound(namespace).values())

    stage.until("eight pods are bound", lambda: [len(pods) for pods in nodes()] == [4, 4])
    assert all(len(stage.places(RACK, where)) == 1 for where in nodes())
    assert len(stage.places(ZONE, [name for where in nodes() for name in where])) == 1


def test_each_replica_is_in_a_rack_and_its_workers_on_a_host(stage: RackStage) -> None:
    """Two racks of one zone, each with a leader and the host of its workers."""
    objects = objects_of("replicas-in-racks")
    for obj in objects:
        stage.create(obj)
    namespace = namespace_of(objects)

    def nodes() -> dict[str, list[str]]:
        return {_label(name): found for name, found in stage.bound(namespace).items()}

    sizes = {"leader-0": 1, "leader-1": 1, "workers-0": 4, "workers-1": 4}
    stage.until("ten pods are bound", lambda: {name: len(on) for name, on in nodes().items()} == sizes)
    assert len(stage.places(ZONE, [name for on in nodes().values() for name in on])) == 1
    racks = [
        stage.places(RACK, nodes()[f"leader-{replica}"] + nodes()[f"workers-{replica}"])
        for replica in range(2)
    ]
    assert [len(of_replica) for of_replica in racks] == [1, 1]
    assert racks[0] != racks[1]
    assert all(len(set(nodes()[f"workers-{replica}"])) == 1 for replica in range(2))


def test_stages_run_one_after_the_other(stage: RackStage) -> None:
    """Initializers run, then both trainers at once, then the evaluator; all groups exist from the start."""
    objects = objects_of("stages")
    namespace = namespace_of(objects)
    _finish_quickly(next(obj for obj in objects if obj["kind"] == "TrainingRuntime"))
    for found in objects:
        stage.create(found)
    stage.until("five groups", lambda: len(stage.all(namespace, "PodGroup")) == 4)
    stage.until("the TrainJob is complete", lambda: _is_complete(stage.all(namespace, "TrainJob")))
    order = [
        seen.object["metadata"]["labels"]["muster.dev/group"]
        for seen in stage.recorder.history(namespace)
        if seen.kind == "Pod" and seen.change == "ADDED"
    ]
    assert sorted(order[:2]) == ["dataset-initializer", "model-initializer"]
    assert order[2:] == ["trainer", "trainer", "evaluator"]


def test_launcher_and_nodes_of_an_mpi_trainjob_are_one_gang(stage: RackStage) -> None:
    """No pod is created after another one is ready, so all three are placed together."""
    objects = objects_of("mpi-one-gang")
    namespace = namespace_of(objects)
    for obj in objects:
        stage.create(obj)
    stage.until("three pods are bound", lambda: sum(map(len, stage.bound(namespace).values())) == 3)
    (group,) = stage.all(namespace, "PodGroup")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert list(stage.bound(namespace)) == [group["metadata"]["name"]]


def test_a_kai_queue_reaches_the_pods_and_no_group_is_made(stage: RackStage) -> None:
    """The TrainJob is created after the runtime is labelled, as the example's comment says."""
    objects = objects_of("kai-queue")
    namespace = namespace_of(objects)
    *before, trainjob = objects
    for obj in before:
        stage.create(obj)
    runtimes = by_kind("trainer.kubeflow.org/v1alpha1", "TrainingRuntime")

    def labelled() -> bool:
        runtime = stage.stack.client.get(runtimes, "torch-kai", namespace) or {}
        metadata = runtime["spec"]["template"].get("metadata") or {}
        return (metadata.get("labels") or {}).get("kai.scheduler/queue") == "team-a"

    stage.until("the runtime is labelled", labelled)
    stage.create(trainjob)
    stage.until("two pods", lambda: len(stage.all(namespace, "Pod")) == 2)
    for pod in stage.all(namespace, "Pod"):
        assert pod["spec"]["schedulerName"] == "kai-scheduler"
        assert pod["metadata"]["labels"]["kai.scheduler/queue"] == "team-a"
        assert not pod["spec"].get("schedulingGroup")
        assert not pod["spec"].get("schedulingGates")
    (jobset,) = stage.all(namespace, "JobSet")
    assert jobset["metadata"]["labels"]["kai.scheduler/queue"] == "team-a"
    assert stage.all(namespace, "Workload") == stage.all(namespace, "PodGroup") == []


def test_every_example_is_run() -> None:
    """Every file in eventing/examples is run by a test here."""
    names = {path.stem for path in Path(EXAMPLES).glob("*.yaml")}
    text = Path(__file__).read_text()
    assert {name for name in names if f'"{name}"' in text} == names


def _label(group: str) -> str:
    """Return `rack-0` for `mesh-rack-1a2b3c4d-0`, because the UID differs in each run."""
    parts = group.split("-")
    tail = [parts.pop()] if parts[-1].isdigit() and len(parts[-1]) < 8 else []
    return "-".join([*parts[1:-1], *tail])


def _gated(pods: Objects) -> bool:
    gates = [gate["name"] for pod in pods for gate in pod["spec"].get("schedulingGates") or []]
    return GATE in gates


def _finish_quickly(runtime: Object) -> None:
    for entry in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        template = entry["template"]["spec"]["template"]
        delay = {"pod-complete.stage.kwok.x-k8s.io/delay": "200ms"}
        template["metadata"] = {"annotations": delay}


def _is_complete(trainjobs: Objects) -> bool:
    conditions = [
        condition["type"]
        for job in trainjobs
        for condition in (job.get("status") or {}).get("conditions") or []
    ]
    return "Complete" in conditions
