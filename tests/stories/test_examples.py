"""Every example runs on the local stack: its groups are created and placed as its comments say."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from muster.data import EVENTING
from muster.objects.resources import JOBS, JOBSETS, TRAINJOBS, by_kind
from muster.policy.group_labels import GATE, stamped_name
from muster.replay.snapshots import Object, Objects, read_snapshots
from muster.simulator.controllers import node
from muster.testing import RunningStack

pytestmark = pytest.mark.usefixtures("in_process")

EXAMPLES = EVENTING / "examples"
ZONE, RACK = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack"


class RackStage(RunningStack):
    """The local stack with two zones of two racks of two nodes of four CPUs, and what runs on them."""

    def __enter__(self) -> Self:
        super().__enter__()
        for number in range(8):
            labels = {ZONE: f"zone-{number // 4}", RACK: f"rack-{number // 2}"}
            self.create(node(f"rack-node-{number}", cpu="4", labels=labels))
        return self

    def run(self, name: str) -> str:
        """Create the objects of an example; return its namespace."""
        for obj in objects_of(name):
            self.create(obj)
        return namespace_of(objects_of(name))

    def bound(self, namespace: str) -> dict[str, list[str]]:
        """Return the nodes of the bound pods by group."""
        nodes: dict[str, list[str]] = {}
        for pod in self.all("Pod", namespace):
            if pod["spec"].get("nodeName"):
                group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
                nodes.setdefault(_label(group), []).append(pod["spec"]["nodeName"])
        return nodes

    def places(self, key: str, nodes: list[str]) -> set[str]:
        """Return the values of a label on these nodes."""
        return {body["metadata"]["labels"][key] for body in self.all("Node") if _name(body) in nodes}


@pytest.fixture(scope="module")
def stage() -> Iterator[RackStage]:
    """One for all examples."""
    with RackStage() as stage:
        yield stage


@pytest.fixture(autouse=True)
def room(stage: RackStage) -> Iterator[None]:
    """Delete all Jobs and pods, so that each example begins with empty nodes."""
    yield
    for resource in (TRAINJOBS, JOBSETS, JOBS):
        for obj in stage.client.list(resource):
            stage.client.delete(resource, _name(obj), obj["metadata"]["namespace"])
    stage.until("all pods are gone", lambda: not stage.all("Pod"))


def objects_of(name: str) -> Objects:
    """Return the objects of an example."""
    return copy.deepcopy(read_snapshots([EXAMPLES / f"{name}.yaml"])[0].objects)


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
    namespace = stage.run(example)
    stage.until(f"bound: {groups}", lambda: _sizes(stage.bound(namespace)) == groups)
    for pod in stage.all("Pod", namespace):
        assert pod["spec"]["schedulingGroup"]["podGroupName"] == stamped_name(pod["metadata"]["labels"])
    stage.until("no gate is left", lambda: GATE not in str(stage.all("Pod", namespace)))
    assert stage.dead_letters() == []


def test_blocks_are_each_in_a_rack_and_all_in_a_zone(stage: RackStage) -> None:
    """The groups fill two racks of one zone."""
    namespace = stage.run("racks")
    stage.until("eight pods are bound", lambda: [*_sizes(stage.bound(namespace)).values()] == [4, 4])
    nodes = stage.bound(namespace).values()
    assert all(len(stage.places(RACK, where)) == 1 for where in nodes)
    assert len(stage.places(ZONE, [name for where in nodes for name in where])) == 1


def test_each_replica_is_in_a_rack_and_its_workers_on_a_host(stage: RackStage) -> None:
    """Two racks of one zone, each with a leader and the host of its workers."""
    namespace = stage.run("replicas-in-racks")
    sizes = {"leader-0": 1, "leader-1": 1, "workers-0": 4, "workers-1": 4}
    stage.until("ten pods are bound", lambda: _sizes(stage.bound(namespace)) == sizes)
    nodes = stage.bound(namespace)
    assert len(stage.places(ZONE, [name for on in nodes.values() for name in on])) == 1
    racks = [stage.places(RACK, nodes[f"leader-{one}"] + nodes[f"workers-{one}"]) for one in range(2)]
    assert [len(of_replica) for of_replica in racks] == [1, 1]
    assert racks[0] != racks[1]
    assert all(len(set(nodes[f"workers-{one}"])) == 1 for one in range(2))


def test_stages_run_one_after_the_other(stage: RackStage) -> None:
    """Initializers run, then both trainers at once, then the evaluator; all groups exist from the start."""
    objects = objects_of("stages")
    namespace = namespace_of(objects)
    for obj in objects:
        if obj["kind"] == "TrainingRuntime":
            _finish_quickly(obj)
        stage.create(obj)
    stage.until("four groups", lambda: len(stage.all("PodGroup", namespace)) == 4)
    stage.until("the TrainJob is complete", lambda: _is_complete(stage.all("TrainJob", namespace)))
    order = [
        seen.object["metadata"]["labels"]["muster.dev/group"]
        for seen in stage.recorder.history(namespace)
        if seen.kind == "Pod" and seen.change == "ADDED"
    ]
    assert sorted(order[:2]) == ["dataset-initializer", "model-initializer"]
    assert order[2:] == ["trainer", "trainer", "evaluator"]


def test_launcher_and_nodes_of_an_mpi_trainjob_are_one_gang(stage: RackStage) -> None:
    """No pod is created after another one is ready, so all three are placed together."""
    namespace = stage.run("mpi-one-gang")
    stage.until("three pods are bound", lambda: [*_sizes(stage.bound(namespace)).values()] == [3])
    (group,) = stage.all("PodGroup", namespace)
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}


def test_a_kai_queue_reaches_the_pods_and_no_group_is_made(stage: RackStage) -> None:
    """The TrainJob is created after the runtime is labelled, as the example's comment says."""
    objects = objects_of("kai-queue")
    namespace = namespace_of(objects)
    *before, trainjob = objects
    for obj in before:
        stage.create(obj)
    runtimes = by_kind("trainer.kubeflow.org/v1alpha1", "TrainingRuntime")

    def labelled() -> bool:
        runtime = stage.client.get(runtimes, "torch-kai", namespace) or {}
        metadata = runtime["spec"]["template"].get("metadata") or {}
        return (metadata.get("labels") or {}).get("kai.scheduler/queue") == "team-a"

    stage.until("the runtime is labelled", labelled)
    stage.create(trainjob)
    stage.until("two pods", lambda: len(stage.all("Pod", namespace)) == 2)
    for pod in stage.all("Pod", namespace):
        assert pod["spec"]["schedulerName"] == "kai-scheduler"
        assert pod["metadata"]["labels"]["kai.scheduler/queue"] == "team-a"
        assert not pod["spec"].get("schedulingGroup")
        assert not pod["spec"].get("schedulingGates")
    (jobset,) = stage.all("JobSet", namespace)
    assert jobset["metadata"]["labels"]["kai.scheduler/queue"] == "team-a"
    assert stage.all("Workload", namespace) == stage.all("PodGroup", namespace) == []


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


def _sizes(bound: dict[str, list[str]]) -> dict[str, int]:
    return {group: len(nodes) for group, nodes in bound.items()}


def _name(body: Object) -> str:
    return str(body["metadata"]["name"])


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
