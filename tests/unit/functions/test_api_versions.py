"""The steps on each version of the scheduling API, on none, and on one that is switched while they run.

On the embedded API server, whose gates are switched under the steps' hands; the stories in tests/e2e tell the
same on the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from muster import kustomize as manifests
from muster.cluster.client import Client
from muster.cluster.errors import Forbidden
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.objects.resources import EVENTS, JOBS, JOBSETS, NAMESPACES, POD_GROUPS, PODS, WORKLOADS, Resource
from muster.policy import group_labels
from muster.runtime.handle import run_step
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.simulator.apiserver import ApiServer, Gates, resource_definitions
from muster.steps import step_named
from tests.conftest import Wording
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


class World:
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
        job = a_job(STARTABLE, mark=None)
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

    def told(self, resource: Resource, kind: str) -> tuple[str, str]:
        """Status and reason of a condition of the owner `llama`."""
        live = self.raw.get(resource, "llama", "team-a") or {}
        (found,) = [one for one in live["status"]["conditions"] if one["type"] == kind]
        return found["status"], found["reason"]

    def events(self) -> set[str]:
        """The reasons of all Events."""
        return {one["reason"] for one in self.raw.list(EVENTS, "team-a")}

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
def world() -> Iterator[Callable[..., World]]:
    """Begins worlds: release and gates."""
    servers: list[ApiServer] = []

    def begin(release: str = "1.37", gates: Gates | None = None) -> World:
        server = ApiServer(release=release, gates=gates).start()
        servers.append(server)
        policies = [one for one in manifests.load() if one["kind"].startswith("MutatingAdmissionPolicy")]
        server.load([*resource_definitions(), *policies])
        made = World(server)
        made.create(NAMESPACES, a_namespace())
        return made

    yield begin
    for server in servers:
        server.stop()


def test_1_36_gets_groups_of_its_own_version(world: Callable[..., World]) -> None:
    """Both are v1alpha2, the PodGroup names its template the old way, and the gates are lifted."""
    told = world("1.36")
    job, pods = told.job()
    assert told.gates() == [[group_labels.GATE]] * 2
    assert told.run("create_workload", job, JOBS).reason == "WorkloadCreated"
    assert told.run("create_pod_groups", job, JOBS).reason == "PodGroupsCreated"
    assert told.run("patch_pods", pods[0], PODS).reason == "GatesLifted"

    (workload,) = told.grouped("v1alpha2", WORKLOADS)
    (group,) = told.grouped("v1alpha2", POD_GROUPS)
    name = workload["metadata"]["name"]
    reference = {"workload": {"workloadName": name, "podGroupTemplateName": "main"}}
    assert group["spec"]["podGroupTemplateRef"] == reference
    assert {owner["apiVersion"] for owner in group["metadata"]["ownerReferences"]} == {
        "batch/v1",
        "scheduling.k8s.io/v1alpha2",
    }
    assert told.gates() == [[], []]


def test_1_36_refuses_a_resize(world: Callable[..., World], wording: Wording) -> None:
    """A JobSet's Job is scaled; its gang has a fixed size, which the step says instead of writing."""
    told = world("1.36")
    jobset = told.create(JOBSETS, a_jobset(a_replicated_job("workers", STARTABLE, pods=2)))
    child = told.create(JOBS, a_child_job(jobset, "workers", 0))
    told.run("create_workload", jobset, JOBSETS)
    told.run("create_pod_groups", jobset, JOBSETS)
    (before,) = told.grouped("v1alpha2", POD_GROUPS)

    more = {"spec": {"parallelism": 3, "completions": 3}}
    told.raw.patch(JOBS, child["metadata"]["name"], "team-a", more, patch=PatchType.MERGE, manager="test")
    outcome = told.run("resize_gang", child, JOBS)
    assert outcome.reason == "GangSizeFixed"
    assert "v1alpha2" in outcome.message
    assert "minCount" in outcome.message
    group = before["metadata"]["name"]
    assert group in outcome.message
    wording(outcome.message.replace(group, "GROUP"))
    assert told.grouped("v1alpha2", POD_GROUPS) == [before]
    told.run("emit_conditions", child, JOBS)
    assert told.told(JOBSETS, "PodGroupsReady") == ("True", "GangSizeFixed")
    assert "GangSizeFixed" in told.events()


def test_1_36_refuses_to_scale_a_job_of_a_gang(world: Callable[..., World]) -> None:
    """Its own admission does: the gang is as large as the Job for ever."""
    told = world("1.36")
    job, _ = told.job()
    for name in ("create_workload", "create_pod_groups"):
        told.run(name, job, JOBS)
    more = {"spec": {"parallelism": 3, "completions": 3}}
    with pytest.raises(Forbidden, match="cannot change parallelism for a Job referencing gang-scheduled"):
        told.raw.patch(JOBS, "llama", "team-a", more, patch=PatchType.MERGE, manager="test")


@pytest.mark.parametrize(
    ("release", "gates", "version"),
    [
        pytest.param("1.36", None, "v1alpha2", id="1.36 has none"),
        pytest.param("1.37", Gates(composite_pod_group=False), "v1beta1", id="the gate is off"),
    ],
)
def test_groups_of_groups_are_refused(
    world: Callable[..., World], release: str, gates: Gates | None, version: str, wording: Wording
) -> None:
    """The owner's condition and an Event name what is missing, and a basic stand-in lets the pods run."""
    told = world(release, gates)
    job, pods = told.job(policy=COMPOSITE)
    outcome = told.run("create_workload", job, JOBS)
    assert outcome.reason == "InvalidPolicy"

    live = told.raw.get(JOBS, "llama", "team-a") or {}
    (condition,) = [one for one in live["status"]["conditions"] if one["type"] == "muster.dev/PodGroupsReady"]
    assert (condition["status"], condition["reason"]) == ("False", "InvalidPolicy")
    for fact in ("workload.groups", "CompositePodGroup", "v1alpha3"):
        assert fact in condition["message"]
    wording(condition["message"])
    assert told.grouped(version, WORKLOADS) == []
    (stand_in,) = told.grouped(version, POD_GROUPS)
    assert stand_in["spec"]["schedulingPolicy"] == {"basic": {}}
    assert told.run("patch_pods", pods[0], PODS).reason == "GatesLifted"


def test_groups_of_groups_whose_kind_is_switched_off_later_are_given_up_visibly(
    world: Callable[..., World],
) -> None:
    """What exists stays, the owner says what is missing, and pods of a restart do not wait for a parent."""
    told = world()
    job, pods = told.job(policy=COMPOSITE)
    for name, body, kind in (("create_workload", job, JOBS), ("create_pod_groups", job, JOBS)):
        told.run(name, body, kind)
    assert told.run("patch_pods", pods[0], PODS).reason == "GatesLifted"
    (group,) = told.grouped("v1beta1", POD_GROUPS)
    assert group["spec"]["parentCompositePodGroupName"]
    status = {"status": {"conditions": [PLACED]}}
    group = told.raw.patch(
        POD_GROUPS,
        group["metadata"]["name"],
        "team-a",
        status,
        patch=PatchType.MERGE,
        manager="test",
        subresource="status",
    )

    told.server.gates = Gates(composite_pod_group=False)
    told.refresh()  # as every sweep does
    assert told.run("create_workload", job, JOBS).reason == "InvalidPolicy"
    live = told.raw.get(JOBS, "llama", "team-a") or {}
    (condition,) = [one for one in live["status"]["conditions"] if one["type"] == "muster.dev/PodGroupsReady"]
    assert (condition["status"], condition["reason"]) == ("False", "InvalidPolicy")
    assert "CompositePodGroup" in condition["message"]
    assert told.grouped("v1beta1", POD_GROUPS) == [group]
    for name in ("create_pod_groups", "resize_gang"):
        assert told.run(name, job, JOBS).kind is OutcomeKind.NOTHING
    reborn = told.create(PODS, _unstamped({**pods_of(job)[0], "metadata": _renamed(pods_of(job)[0])}))
    assert told.run("patch_pods", reborn, PODS).reason == "GatesLifted"


def test_where_the_api_is_off_marked_jobs_run_as_plain_jobs(world: Callable[..., World]) -> None:
    """The API server drops the group's name and not the gate: it is lifted, and the owner is told why."""
    told = world(gates=OFF)
    job, pods = told.job()
    assert ["schedulingGroup" in pod["spec"] for pod in pods] == [False, False]
    assert told.gates() == [[group_labels.GATE]] * 2

    reasons = [told.run(name, job, JOBS).reason for name in ("create_workload", "create_pod_groups")]
    assert reasons == ["ApiNotServed"] * 2
    for pod in pods:
        assert told.run("patch_pods", pod, PODS).reason == "ApiNotServed"
    assert told.gates() == [[], []]
    assert told.told(JOBS, "muster.dev/PodGroupsReady") == ("False", "ApiNotServed")
    assert told.events() == {"ApiNotServed"}
    assert told.run("emit_conditions", job, JOBS).reason == "ConditionsUpdated"
    assert told.told(JOBS, "muster.dev/PodGroupsScheduled") == ("False", "ApiNotServed")
    for name in ("create_workload", "emit_conditions"):
        assert told.run(name, job, JOBS).reason in {"ApiNotServed", "UpToDate"}
    assert len(told.raw.list(EVENTS, "team-a")) == 1


def test_an_api_switched_on_later_is_used_without_a_restart_or_a_sweep(world: Callable[..., World]) -> None:
    """The next pod keeps its gate until its group exists, at functions that have learnt there are none."""
    told = world(gates=OFF)
    plain, (pod, _) = told.job()
    for name in ("create_workload", "create_pod_groups", "patch_pods"):
        told.run(name, pod if name == "patch_pods" else plain, PODS if name == "patch_pods" else JOBS)
    for body in told.raw.list(PODS, "team-a"):
        told.raw.delete(PODS, body["metadata"]["name"], "team-a")
    told.raw.delete(JOBS, "llama", "team-a")

    told.server.gates = Gates()
    job, pods = told.job()
    assert told.run("patch_pods", pods[0], PODS).reason == "AwaitingPodGroup"
    assert told.gates() == [[group_labels.GATE]] * 2
    assert told.run("create_workload", job, JOBS).reason == "WorkloadCreated"
    assert told.run("create_pod_groups", job, JOBS).reason == "PodGroupsCreated"
    assert told.run("patch_pods", pods[0], PODS).reason == "GatesLifted"
    assert told.gates() == [[], []]


def test_an_api_switched_off_is_noticed_at_the_next_event(world: Callable[..., World]) -> None:
    """Nothing fails for ever: the step ends with ApiNotServed, and pods born since then are let go."""
    told = world()
    job, pods = told.job()
    told.run("create_workload", job, JOBS)
    told.run("create_pod_groups", job, JOBS)
    told.run("patch_pods", pods[0], PODS)

    told.server.gates = OFF
    reborn = told.create(PODS, _unstamped({**pods_of(job)[0], "metadata": _renamed(pods_of(job)[0])}))
    assert told.run("create_workload", job, JOBS).reason == "ApiNotServed"
    assert told.run("patch_pods", reborn, PODS).reason == "ApiNotServed"
    assert told.gates() == [[]] * 3


def test_with_workload_with_job_a_plain_job_is_left_to_the_job_controller(
    world: Callable[..., World],
) -> None:
    """The API server keeps what schedule-jobs asked for, and by that field the steps keep their hands off."""
    told = world(gates=Gates(workload_with_job=True))
    job = told.create(JOBS, a_job(STARTABLE, mark=None))
    assert job["spec"]["scheduling"] == {"schedulingPolicy": {"gang": {}}}
    for name in ("create_workload", "create_pod_groups", "resize_gang"):
        assert told.run(name, job, JOBS).reason == "UpstreamGroups"
    assert told.grouped("v1beta1", WORKLOADS) == told.grouped("v1beta1", POD_GROUPS) == []


def test_without_it_the_same_job_is_musters(world: Callable[..., World]) -> None:
    """The API server drops the field without a word, so the mark alone counts."""
    told = world()
    job = told.create(JOBS, a_job(STARTABLE, mark=None))
    assert "scheduling" not in job["spec"]
    assert told.run("create_workload", job, JOBS).reason == "WorkloadCreated"


def _renamed(pod: Object) -> Object:
    return {**pod["metadata"], "name": "llama-0-again"}
