"""The steps on each version of the scheduling API, on none, and on one that is switched while they run.

On the embedded API server, whose gates are switched while the steps run; the stories in tests/e2e tell the
same on the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from muster.cluster.errors import Forbidden
from muster.cluster.http.client import Client
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.objects.resources import EVENTS, JOBS, JOBSETS, NAMESPACES, POD_GROUPS, PODS, WORKLOADS, Resource
from muster.policy import group_labels
from muster.runtime.handle import run_step
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.runtime.steps import step_named
from muster.simulator import overlays as manifests
from muster.simulator.apiserver import ApiServer, Gates, resource_definitions
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_job,
    a_jobset,
    a_namespace,
    a_replicated_job,
    pods_of,
    template_spec,
)

POLICY = "muster.dev/pod-group-policy"
COMPOSITE = """
workload:
  groups:
  - name: all
    schedulingPolicy: {gang: {minGroupCount: 1}}
    groups:
    - {name: main, schedulingPolicy: {gang: {minCount: 2}}}
"""
OFF = Gates(generic_workload=False, composite_pod_group=False, served=frozenset())
STARTABLE = template_spec(restartPolicy="Never", containers=[{"name": "node", "image": "example.com/train"}])
_FUNCTIONS = ("create_workload", "create_pod_groups", "patch_pods", "resize_gang", "emit_conditions")
PLACED = {
    "type": "PodGroupInitiallyScheduled",
    "status": "True",
    "reason": "Scheduled",
    "lastTransitionTime": "2026-11-21T08:00:00Z",
}
UNBORN = ("uid", "resourceVersion", "creationTimestamp")


class GatedCluster:
    """An API server with Muster's policies, and functions that were started once."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.raw = Client.for_server(server.url)
        self._functions = {name: Versioned(Client.for_server(server.url)) for name in _FUNCTIONS}

    def create(self, resource: Resource, body: Object) -> Object:
        """As a user or controller does; the pods of a Job come with a label of its live UID."""
        metadata = {key: value for key, value in body["metadata"].items() if key not in UNBORN}
        return self.raw.create(resource, {**body, "metadata": metadata}, manager="test")

    def job(self, *, policy: str = "") -> tuple[Object, list[Object]]:
        """A Job and its two pods, born in that order."""
        job = a_job(STARTABLE, label=None)
        job["metadata"]["annotations"] = {POLICY: policy} if policy else {}
        made = self.create(JOBS, job)
        return made, [self.create(PODS, _unstamped(pod)) for pod in pods_of(made)]

    def run(self, function: str, body: Object, resource: Resource) -> Outcome:
        """One event about an object, at a function that knows what it learnt before."""
        metadata = body["metadata"]
        ref = ObjectRef(
            resource.api_version, resource.kind, metadata["namespace"], metadata["name"], metadata["uid"]
        )
        return run_step(step_named(function), self._functions[function], ref, lambda: NOW)

    def reported_condition(self, resource: Resource, kind: str) -> tuple[str, str]:
        """Status and reason of a condition of the owner `llama`."""
        live = self.raw.get(resource, "llama", "team-a") or {}
        (conditions,) = [condition for condition in live["status"]["conditions"] if condition["type"] == kind]
        return conditions["status"], conditions["reason"]

    def events(self) -> set[str]:
        """The reasons of all Events."""
        return {event["reason"] for event in self.raw.list(EVENTS, "team-a")}

    def refresh(self) -> None:
        """Let every function ask again what is served."""
        for cluster in self._functions.values():
            cluster.refresh()

    def grouped(self, version: str, resource: Resource) -> list[Object]:
        """The Workloads or PodGroups as the API server has them."""
        return self.raw.list(replace(resource, version=version), "team-a")

    def gates(self) -> list[list[str]]:
        """The scheduling gates of every pod."""
        return [
            [gate["name"] for gate in pod["spec"].get("schedulingGates") or []]
            for pod in self.raw.list(PODS, "team-a")
        ]


def _unstamped(pod: Object) -> Object:
    """A pod as its controller sends it: the policy stamps it."""
    spec = {key: value for key, value in pod["spec"].items() if not key.startswith("scheduling")}
    return {**pod, "spec": spec}


@pytest.fixture
def world() -> Iterator[Callable[..., GatedCluster]]:
    """Begin worlds: release and gates."""
    servers: list[ApiServer] = []

    def begin(release: str = "1.37", gates: Gates | None = None) -> GatedCluster:
        server = ApiServer(release=release, gates=gates).start()
        servers.append(server)
        policies = [
            manifest
            for manifest in manifests.load()
            if manifest["kind"].startswith("MutatingAdmissionPolicy")
        ]
        server.load([*resource_definitions(), *policies])
        made = GatedCluster(server)
        made.create(NAMESPACES, a_namespace())
        return made

    yield begin
    for server in servers:
        server.stop()


def test_1_36_gets_groups_of_its_own_version(world: Callable[..., GatedCluster]) -> None:
    """Both are v1alpha2, the PodGroup names its template the old way, and the gates are lifted."""
    cluster = world("1.36")
    job, pods = cluster.job()
    assert cluster.gates() == [[group_labels.GATE]] * 2
    assert cluster.run("create_workload", job, JOBS).reason == "WorkloadCreated"
    assert cluster.run("create_pod_groups", job, JOBS).reason == "PodGroupsCreated"
    assert [cluster.run("patch_pods", pod, PODS).reason for pod in pods] == ["GatesLifted"] * 2

    (workload,) = cluster.grouped("v1alpha2", WORKLOADS)
    (group,) = cluster.grouped("v1alpha2", POD_GROUPS)
    name = workload["metadata"]["name"]
    reference = {"workload": {"workloadName": name, "podGroupTemplateName": "main"}}
    assert group["spec"]["podGroupTemplateRef"] == reference
    assert {owner["apiVersion"] for owner in group["metadata"]["ownerReferences"]} == {
        "batch/v1",
        "scheduling.k8s.io/v1alpha2",
    }
    assert cluster.gates() == [[], []]


def test_1_36_refuses_a_resize(world: Callable[..., GatedCluster]) -> None:
    """A JobSet's Job is scaled; its gang has a fixed size, which the step says instead of writing."""
    cluster = world("1.36")
    jobset = cluster.create(JOBSETS, a_jobset(a_replicated_job("workers", STARTABLE, pods=2)))
    child = cluster.create(JOBS, a_child_job(jobset, "workers", 0))
    cluster.run("create_workload", jobset, JOBSETS)
    cluster.run("create_pod_groups", jobset, JOBSETS)
    (before,) = cluster.grouped("v1alpha2", POD_GROUPS)

    more = {"spec": {"parallelism": 3, "completions": 3}}
    cluster.raw.patch(JOBS, child["metadata"]["name"], "team-a", more, patch=PatchType.MERGE, manager="test")
    outcome = cluster.run("resize_gang", child, JOBS)
    assert outcome.reason == "GangSizeFixed"
    assert "v1alpha2" in outcome.message
    assert "minCount" in outcome.message
    group = before["metadata"]["name"]
    assert group in outcome.message
    assert cluster.grouped("v1alpha2", POD_GROUPS) == [before]
    cluster.run("emit_conditions", child, JOBS)
    assert cluster.reported_condition(JOBSETS, "PodGroupsReady") == ("True", "GangSizeFixed")
    assert "GangSizeFixed" in cluster.events()


def test_1_36_refuses_to_scale_a_job_of_a_gang(world: Callable[..., GatedCluster]) -> None:
    """Its own admission does: the gang is as large as the Job for ever."""
    cluster = world("1.36")
    job, _ = cluster.job()
    for name in ("create_workload", "create_pod_groups"):
        cluster.run(name, job, JOBS)
    more = {"spec": {"parallelism": 3, "completions": 3}}
    with pytest.raises(Forbidden, match="cannot change parallelism for a Job referencing gang-scheduled"):
        cluster.raw.patch(JOBS, "llama", "team-a", more, patch=PatchType.MERGE, manager="test")


@pytest.mark.parametrize(
    ("release", "gates", "version"),
    [
        pytest.param("1.36", None, "v1alpha2", id="1.36 has none"),
        pytest.param("1.37", Gates(composite_pod_group=False), "v1beta1", id="the gate is off"),
    ],
)
def test_groups_of_groups_are_refused(
    world: Callable[..., GatedCluster], release: str, gates: Gates | None, version: str
) -> None:
    """The owner's condition and an Event name the missing API; a fallback group lets the pods run."""
    cluster = world(release, gates)
    job, pods = cluster.job(policy=COMPOSITE)
    outcome = cluster.run("create_workload", job, JOBS)
    assert outcome.reason == "InvalidPolicy"

    live = cluster.raw.get(JOBS, "llama", "team-a") or {}
    (condition,) = [
        condition
        for condition in live["status"]["conditions"]
        if condition["type"] == "muster.dev/PodGroupsReady"
    ]
    assert (condition["status"], condition["reason"]) == ("False", "InvalidPolicy")
    for fact in ("workload.groups", "CompositePodGroup", "v1alpha3"):
        assert fact in condition["message"]
    assert cluster.grouped(version, WORKLOADS) == []
    (fallback_group,) = cluster.grouped(version, POD_GROUPS)
    assert fallback_group["spec"]["schedulingPolicy"] == {"basic": {}}
    assert [cluster.run("patch_pods", pod, PODS).reason for pod in pods] == ["GatesLifted"] * 2


@pytest.mark.thorough
def test_groups_of_groups_whose_kind_is_switched_off_later_are_reported(
    world: Callable[..., GatedCluster],
) -> None:
    """What exists stays, the owner says what is missing, and pods of a restart do not wait for a parent."""
    cluster = world()
    job, pods = cluster.job(policy=COMPOSITE)
    for name, body, kind in (("create_workload", job, JOBS), ("create_pod_groups", job, JOBS)):
        cluster.run(name, body, kind)
    assert cluster.run("patch_pods", pods[0], PODS).reason == "GatesLifted"
    (group,) = cluster.grouped("v1beta1", POD_GROUPS)
    assert group["spec"]["parentCompositePodGroupName"]
    status = {"status": {"conditions": [PLACED]}}
    group = cluster.raw.patch(
        POD_GROUPS,
        group["metadata"]["name"],
        "team-a",
        status,
        patch=PatchType.MERGE,
        manager="test",
        subresource="status",
    )

    cluster.server.gates = Gates(composite_pod_group=False)
    cluster.refresh()  # as every sweep does
    assert cluster.run("create_workload", job, JOBS).reason == "InvalidPolicy"
    live = cluster.raw.get(JOBS, "llama", "team-a") or {}
    (condition,) = [
        condition
        for condition in live["status"]["conditions"]
        if condition["type"] == "muster.dev/PodGroupsReady"
    ]
    assert (condition["status"], condition["reason"]) == ("False", "InvalidPolicy")
    assert "CompositePodGroup" in condition["message"]
    assert cluster.grouped("v1beta1", POD_GROUPS) == [group]
    for name in ("create_pod_groups", "resize_gang"):
        assert cluster.run(name, job, JOBS).kind is OutcomeKind.NOTHING
    reborn = cluster.create(PODS, _unstamped({**pods_of(job)[0], "metadata": _renamed(pods_of(job)[0])}))
    assert cluster.run("patch_pods", reborn, PODS).reason == "GatesLifted"


def test_labelled_jobs_run_as_plain_jobs_where_the_api_is_off(world: Callable[..., GatedCluster]) -> None:
    """The API server drops the group's name, not the gate: it is removed, and a condition says why."""
    cluster = world(gates=OFF)
    job, pods = cluster.job()
    assert ["schedulingGroup" in pod["spec"] for pod in pods] == [False, False]
    assert cluster.gates() == [[group_labels.GATE]] * 2

    reasons = [cluster.run(name, job, JOBS).reason for name in ("create_workload", "create_pod_groups")]
    assert reasons == ["ApiNotServed"] * 2
    for pod in pods:
        assert cluster.run("patch_pods", pod, PODS).reason == "ApiNotServed"
    assert cluster.gates() == [[], []]
    assert cluster.reported_condition(JOBS, "muster.dev/PodGroupsReady") == ("False", "ApiNotServed")
    assert cluster.events() == {"ApiNotServed"}
    assert cluster.run("emit_conditions", job, JOBS).reason == "ConditionsUpdated"
    assert cluster.reported_condition(JOBS, "muster.dev/PodGroupsScheduled") == ("False", "ApiNotServed")
    for name in ("create_workload", "emit_conditions"):
        assert cluster.run(name, job, JOBS).reason in {"ApiNotServed", "UpToDate"}
    assert len(cluster.raw.list(EVENTS, "team-a")) == 1


def test_an_api_switched_on_later_is_used_without_a_restart_or_a_sweep(
    world: Callable[..., GatedCluster],
) -> None:
    """The next pod keeps its gate until its group exists, at functions that have learnt there are none."""
    cluster = world(gates=OFF)
    plain, (pod, _) = cluster.job()
    for name in ("create_workload", "create_pod_groups", "patch_pods"):
        cluster.run(name, pod if name == "patch_pods" else plain, PODS if name == "patch_pods" else JOBS)
    for body in cluster.raw.list(PODS, "team-a"):
        cluster.raw.delete(PODS, body["metadata"]["name"], "team-a")
    cluster.raw.delete(JOBS, "llama", "team-a")

    cluster.server.gates = Gates()
    job, pods = cluster.job()
    assert cluster.run("patch_pods", pods[0], PODS).reason == "AwaitingPodGroup"
    assert cluster.gates() == [[group_labels.GATE]] * 2
    assert cluster.run("create_workload", job, JOBS).reason == "WorkloadCreated"
    assert cluster.run("create_pod_groups", job, JOBS).reason == "PodGroupsCreated"
    assert [cluster.run("patch_pods", pod, PODS).reason for pod in pods] == ["GatesLifted"] * 2
    assert cluster.gates() == [[], []]


def test_an_api_switched_off_is_noticed_at_the_next_event(world: Callable[..., GatedCluster]) -> None:
    """Nothing fails for ever: the step ends with ApiNotServed, and pods born since then are let go."""
    cluster = world()
    job, pods = cluster.job()
    cluster.run("create_workload", job, JOBS)
    cluster.run("create_pod_groups", job, JOBS)
    for pod in pods:
        cluster.run("patch_pods", pod, PODS)

    cluster.server.gates = OFF
    reborn = cluster.create(PODS, _unstamped({**pods_of(job)[0], "metadata": _renamed(pods_of(job)[0])}))
    assert cluster.run("create_workload", job, JOBS).reason == "ApiNotServed"
    assert cluster.run("patch_pods", reborn, PODS).reason == "ApiNotServed"
    assert cluster.gates() == [[]] * 3


def test_with_workload_with_job_a_plain_job_is_left_to_the_job_controller(
    world: Callable[..., GatedCluster],
) -> None:
    """The API server keeps what schedule-jobs asked for, and the steps leave a Job with that field alone."""
    cluster = world(gates=Gates(workload_with_job=True))
    job = cluster.create(JOBS, a_job(STARTABLE, label=None))
    assert job["spec"]["scheduling"] == {"schedulingPolicy": {"gang": {}}}
    for name in ("create_workload", "create_pod_groups", "resize_gang"):
        assert cluster.run(name, job, JOBS).reason == "UpstreamGroups"
    assert cluster.grouped("v1beta1", WORKLOADS) == cluster.grouped("v1beta1", POD_GROUPS) == []


def test_without_it_the_same_job_is_musters(world: Callable[..., GatedCluster]) -> None:
    """The API server drops the field silently, so the group label alone counts."""
    cluster = world()
    job = cluster.create(JOBS, a_job(STARTABLE, label=None))
    assert "scheduling" not in job["spec"]
    assert cluster.run("create_workload", job, JOBS).reason == "WorkloadCreated"


def _renamed(pod: Object) -> Object:
    return {**pod["metadata"], "name": "llama-0-again"}
