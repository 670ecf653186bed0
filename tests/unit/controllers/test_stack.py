"""The simulated controllers against the embedded API server: whole lives of jobs, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from eventing.local.apiserver import ApiServer, Gates, resource_definitions
from eventing.local.controllers import Controllers, KubeletOptions, node, shipped_runtime
from shared.cluster.client import Client
from shared.cluster.port import Object, PatchType
from shared.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    EVENTS,
    JOBS,
    JOBSETS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    TRAINJOBS,
    Resource,
)

NAMESPACE = "team-a"
PATIENCE = 10.0
FAST = KubeletOptions(run_delay=0.02, complete_after=0.1, delete_delay=0.02)
Found = TypeVar("Found")
FOR_EVER = KubeletOptions(run_delay=0.02, delete_delay=0.02)


@pytest.fixture
def server(caplog: pytest.LogCaptureFixture) -> Iterator[ApiServer]:
    """An API server with a namespace, three nodes and the kinds of JobSet and Trainer.

    No controller may have stumbled by the end of the test.
    """
    with ApiServer() as started:
        started.load(resource_definitions())
        client = Client.for_server(started.url)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        client.create(NAMESPACES, namespace, manager="test")
        for index in (1, 2, 3):
            client.create(NODES, node(f"node-{index}", gpu=4), manager="test")
        yield started
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.fixture
def client(server: ApiServer) -> Client:
    """A client of that server."""
    return Client.for_server(server.url)


def _until(look: Callable[[], Found]) -> Found:
    """What a look finds, as soon as it finds something."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)
    return found


def _settled(client: Client, look: Callable[[], object]) -> object:
    """What a look finds once the API server has seen no change for a while."""
    before = ""
    while (now := client.list_with_version(PODS)[1]) != before:
        before = now
        time.sleep(0.15)
    return look()


def _has(client: Client, resource: Resource, name: str, kind: str, status: str = "True") -> bool:
    found = client.get(resource, name, NAMESPACE) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return any((one["type"], one["status"]) == (kind, status) for one in conditions)


def _pods(client: Client, phase: str = "") -> list[Object]:
    return [pod for pod in client.list(PODS, NAMESPACE) if phase in ("", pod["status"]["phase"])]


def _bound(client: Client) -> list[str]:
    return [pod["metadata"]["name"] for pod in _pods(client) if pod["spec"].get("nodeName")]


def _trainjob(client: Client, runtime: str, num_nodes: int, **spec: Any) -> None:
    client.create(CLUSTER_TRAINING_RUNTIMES, shipped_runtime(runtime), manager="test")
    body = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "llama", "namespace": NAMESPACE},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": {"numNodes": num_nodes}, **spec},
    }
    client.create(TRAINJOBS, body, manager="test")


def _job(client: Client, count: int, *, name: str = "sweep", group: str = "", cpu: str = "1") -> None:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}
    grouped = {"schedulingGroup": {"podGroupName": group}} if group else {}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "completionMode": "Indexed",
            "parallelism": count,
            "completions": count,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container], **grouped}},
        },
    }
    client.create(JOBS, body, manager="test")


def _pod_group(client: Client, min_count: int, name: str = "gang") -> None:
    body = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }
    client.create(POD_GROUPS, body, manager="test")


def _change(client: Client, resource: Resource, name: str, spec: Object) -> None:
    client.patch(resource, name, NAMESPACE, {"spec": spec}, patch=PatchType.MERGE, manager="test")


@pytest.mark.parametrize(
    ("runtime", "jobs"),
    [
        pytest.param("torch-distributed", ["llama-node-0"], id="torch runs one Job"),
        pytest.param(
            "torchtune-qwen2.5-1.5b",
            ["llama-dataset-initializer-0", "llama-model-initializer-0", "llama-node-0"],
            id="torchtune initializes and then trains",
        ),
    ],
)
def test_trainjob_of_a_shipped_runtime_completes(
    server: ApiServer, client: Client, runtime: str, jobs: list[str]
) -> None:
    """From the TrainJob to Complete, with the runtime's snapshot and all Jobs kept."""
    _trainjob(client, runtime, 2)
    with Controllers(server.url, kubelet=FAST):
        _until(lambda: _has(client, TRAINJOBS, "llama", "Complete"))
    assert client.get(CONFIGMAPS, "llama-runtime-snapshot", NAMESPACE)
    assert sorted(job["metadata"]["name"] for job in client.list(JOBS, NAMESPACE)) == jobs


def test_mpi_trainjob_ends_with_its_launcher(server: ApiServer, client: Client) -> None:
    """The launcher starts when the nodes are ready and completes the TrainJob; the nodes are cleared away."""
    metadata = {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "50ms"}}
    launcher = {"name": "launcher", "template": {"spec": {"template": {"metadata": metadata}}}}
    patch = {"template": {"spec": {"replicatedJobs": [launcher]}}}
    patches = [{"manager": "acme.io/test", "trainingRuntimeSpec": patch}]
    _trainjob(client, "deepspeed-distributed", 3, runtimePatches=patches)
    with Controllers(server.url, kubelet=FOR_EVER):
        _until(lambda: _has(client, TRAINJOBS, "llama", "Complete"))
        _until(
            lambda: [job["metadata"]["name"] for job in client.list(JOBS, NAMESPACE)] == ["llama-launcher-0"]
        )
        _until(lambda: [pod["spec"]["hostname"] for pod in _pods(client)] == ["llama-launcher-0-0"])


def test_dependent_job_starts_after_those_it_depends_on(server: ApiServer, client: Client) -> None:
    """When the trainer's Job is asked for, both initializers are complete already."""
    complete: list[str] = []

    def note(request: Any) -> None:
        if request.method == "POST" and request.path.endswith("/jobs") and b'"llama-node-0"' in request.body:
            complete.extend(
                item["metadata"]["name"]
                for item in server.snapshot()
                if item["kind"] == "Job" and "completionTime" in (item.get("status") or {})
            )

    server.intercept = note
    _trainjob(client, "torchtune-qwen2.5-1.5b", 2)
    with Controllers(server.url, kubelet=FAST):
        _until(lambda: _has(client, TRAINJOBS, "llama", "Complete"))
    assert sorted(complete) == ["llama-dataset-initializer-0", "llama-model-initializer-0"]


def test_group_waits_for_its_pod_group_and_is_then_bound_together(server: ApiServer, client: Client) -> None:
    """Pods of a group that does not exist stay unbound without a word; the PodGroup's creation binds them."""
    _job(client, 3, group="gang")
    with Controllers(server.url, kubelet=FOR_EVER):
        _until(lambda: len(_pods(client)) == 3)
        assert _settled(client, lambda: _bound(client)) == []
        assert not any(
            one["type"] == "PodScheduled"
            for pod in _pods(client)
            for one in pod["status"].get("conditions") or []
        )
        _pod_group(client, 3)
        _until(lambda: len(_pods(client, "Running")) == 3)
        assert _has(client, POD_GROUPS, "gang", "PodGroupInitiallyScheduled")


def test_gang_without_room_is_bound_when_a_node_comes(server: ApiServer, client: Client) -> None:
    """Four pods for three nodes: nothing is bound and the group says why, until a fourth node is there."""
    _pod_group(client, 4)
    _job(client, 4, group="gang", cpu="6")
    with Controllers(server.url, kubelet=FOR_EVER):
        _until(lambda: _has(client, POD_GROUPS, "gang", "PodGroupInitiallyScheduled", "False"))
        assert _settled(client, lambda: _bound(client)) == []
        client.create(NODES, node("node-4"), manager="test")
        _until(lambda: len(_pods(client, "Running")) == 4)
        assert _has(client, POD_GROUPS, "gang", "PodGroupInitiallyScheduled")


def test_two_gangs_that_each_need_the_cluster_take_turns(server: ApiServer, client: Client) -> None:
    """Of two gangs that each fill all nodes one is bound whole, then the other; never both in part."""
    bound: list[str] = []

    def note(request: Any) -> None:
        if request.path.endswith("/binding"):
            bound.append(request.path.split("/")[-2].split("-")[0])

    server.intercept = note
    for name in ("left", "right"):
        _pod_group(client, 3, name)
        _job(client, 3, group=name, cpu="6", name=name)
    with Controllers(server.url, kubelet=FAST):
        _until(lambda: all(_has(client, JOBS, name, "Complete") for name in ("left", "right")))
    first = bound[0]
    second = {"left": "right", "right": "left"}[first]
    assert bound == [first] * 3 + [second] * 3


def test_deleted_jobset_is_rebuilt_from_the_snapshot(server: ApiServer, client: Client) -> None:
    """A TrainJob that lost its runtime and its JobSet gets the same JobSet again, with a new UID."""
    _trainjob(client, "torch-distributed", 2)
    with Controllers(server.url, kubelet=FOR_EVER):
        first = _until(lambda: client.get(JOBSETS, "llama", NAMESPACE))
        _until(lambda: len(_pods(client, "Running")) == 2)
        client.delete(CLUSTER_TRAINING_RUNTIMES, "torch-distributed")
        client.delete(JOBSETS, "llama", NAMESPACE)
        second = _until(lambda: _other_than(first, client.get(JOBSETS, "llama", NAMESPACE)))
        _until(lambda: len(_pods(client)) == len(_pods(client, "Running")) == 2)
    assert first is not None
    assert second is not None
    assert second["spec"] == first["spec"]


def _other_than(old: Object | None, found: Object | None) -> Object | None:
    """The object found, if it is not the old one."""
    return found if old and found and found["metadata"]["uid"] != old["metadata"]["uid"] else None


def test_job_is_scaled_up_and_down(server: ApiServer, client: Client) -> None:
    """A plain Job follows its parallelism: two more pods, then only the first two are left."""
    _job(client, 4)
    with Controllers(server.url, kubelet=FOR_EVER):
        _until(lambda: len(_pods(client, "Running")) == 4)
        _change(client, JOBS, "sweep", {"parallelism": 6, "completions": 6})
        _until(lambda: len(_pods(client, "Running")) == 6)
        _change(client, JOBS, "sweep", {"parallelism": 2, "completions": 2})
        _until(lambda: len(_pods(client)) == 2)
        assert sorted(pod["spec"]["hostname"] for pod in _pods(client)) == ["sweep-0", "sweep-1"]
        _until(lambda: (client.get(JOBS, "sweep", NAMESPACE) or {})["status"].get("active") == 2)
        assert "failed" not in (client.get(JOBS, "sweep", NAMESPACE) or {})["status"]


def test_suspended_and_resumed_trainjob_gets_new_pods(server: ApiServer, client: Client) -> None:
    """Suspending takes the pods and keeps JobSet and Job; resuming makes new pods."""
    _trainjob(client, "torch-distributed", 2)
    with Controllers(server.url, kubelet=FOR_EVER):
        first = _until(lambda: pods if len(pods := _pods(client, "Running")) == 2 else [])
        jobset = client.get(JOBSETS, "llama", NAMESPACE)
        _change(client, TRAINJOBS, "llama", {"suspend": True})
        _until(lambda: not _pods(client))
        _until(lambda: _has(client, JOBS, "llama-node-0", "Suspended"))
        assert _has(client, TRAINJOBS, "llama", "Suspended")
        _change(client, TRAINJOBS, "llama", {"suspend": False})
        second = _until(lambda: pods if len(pods := _pods(client, "Running")) == 2 else [])
        kept = client.get(JOBSETS, "llama", NAMESPACE)
    assert jobset is not None
    assert kept is not None
    assert kept["metadata"]["uid"] == jobset["metadata"]["uid"]
    assert not {pod["metadata"]["uid"] for pod in first} & {pod["metadata"]["uid"] for pod in second}


def test_jobset_restarts_after_a_failure(server: ApiServer, client: Client) -> None:
    """A failed Job restarts the whole JobSet: same names, new Jobs and pods of attempt 1."""
    container = {"name": "main", "image": "example"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"backoffLimit": 0, "parallelism": 2, "completions": 2, "template": template}
    body = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": NAMESPACE},
        "spec": {
            "failurePolicy": {"maxRestarts": 1},
            "replicatedJobs": [{"name": "node", "replicas": 2, "template": {"spec": job}}],
        },
    }
    client.create(JOBSETS, body, manager="test")
    with Controllers(server.url, kubelet=FOR_EVER):
        first = _until(lambda: pods if len(pods := _pods(client, "Running")) == 4 else [])
        broken = {"status": {"phase": "Failed"}}
        name = first[0]["metadata"]["name"]
        client.patch(
            PODS, name, NAMESPACE, broken, patch=PatchType.MERGE, manager="test", subresource="status"
        )
        _until(lambda: (client.get(JOBSETS, "train", NAMESPACE) or {})["status"].get("restarts") == 1)
        old = {pod["metadata"]["uid"] for pod in first}
        _until(lambda: len([p for p in _pods(client, "Running") if p["metadata"]["uid"] not in old]) == 4)
        _until(lambda: len(_pods(client)) == 4)
        _until(lambda: _has(client, JOBSETS, "train", "Restarting", "False"))
    attempts = {pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in _pods(client)}
    assert attempts == {"1"}


def test_deleted_job_takes_its_pods_along(server: ApiServer, client: Client) -> None:
    """Pods of a deleted Job lose the tracking finalizer and go."""
    _job(client, 3)
    with Controllers(server.url, kubelet=FOR_EVER):
        _until(lambda: len(_pods(client, "Running")) == 3)
        client.delete(JOBS, "sweep", NAMESPACE)
        _until(lambda: not _pods(client))


def test_orphaned_pods_lose_their_finalizer(server: ApiServer, client: Client) -> None:
    """Pods of a Job that was deleted without them run on and can be deleted by anybody."""
    _job(client, 2)
    with Controllers(server.url, kubelet=FOR_EVER):
        _until(lambda: len(_pods(client, "Running")) == 2)
        client.delete(JOBS, "sweep", NAMESPACE, propagation="Orphan")
        _until(lambda: not any(pod["metadata"].get("finalizers") for pod in _pods(client)))
        assert len(_pods(client, "Running")) == 2


def test_refused_pod_is_said_in_an_event_and_tried_again(server: ApiServer, client: Client) -> None:
    """A quota that refuses pods shows as FailedCreate on the Job, and the pods come when it lets them."""
    refusal = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "quota"}

    def refuse(request: Any) -> tuple[int, dict[str, str], Any] | None:
        refused = request.method == "POST" and request.path.endswith("/pods")
        return (403, {}, refusal) if refused else None

    server.intercept = refuse
    _job(client, 2)
    with Controllers(server.url, kubelet=FOR_EVER):
        event = _until(lambda: client.list(EVENTS, NAMESPACE))[0]
        assert (event["reason"], event["involvedObject"]["name"]) == ("FailedCreate", "sweep")
        assert "quota" in event["message"]
        server.intercept = None
        _until(lambda: len(_pods(client, "Running")) == 2)


def test_compacted_history_is_listed_again(server: ApiServer, client: Client) -> None:
    """Controllers that missed changes take them from a new list."""
    with Controllers(server.url, kubelet=FOR_EVER):
        _job(client, 2)
        _until(lambda: len(_pods(client, "Running")) == 2)
        server.forget_history()
        _change(client, JOBS, "sweep", {"parallelism": 3, "completions": 3})
        _until(lambda: len(_pods(client, "Running")) == 3)


def test_api_behind_a_gate_is_not_needed(server: ApiServer, client: Client) -> None:
    """Without the PodGroup API the pods of a Job run ungrouped."""
    server.gates = Gates(generic_workload=False, composite_pod_group=False)
    _job(client, 2, group="gang")
    with Controllers(server.url, kubelet=FAST):
        _until(lambda: _has(client, JOBS, "sweep", "Complete"))


def test_only_the_chosen_controllers_run(server: ApiServer, client: Client) -> None:
    """With the Job controller alone the pods are made and never bound."""
    _job(client, 2)
    with Controllers(server.url, only={"job"}):
        _until(lambda: len(_pods(client)) == 2)
        assert _settled(client, lambda: _bound(client)) == []


def test_unknown_controller_is_refused() -> None:
    """A name that is no controller is an error at once."""
    with pytest.raises(ValueError, match="quota"):
        Controllers("http://127.0.0.1:1", only={"quota"})
