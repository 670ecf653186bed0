"""An embedded cluster with thousands of running gangs, in which objects can be lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from muster.cluster import execute
from muster.cluster.http.client import Client
from muster.cluster.versioned import Versioned
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.resources import JOBS, POD_GROUPS, PODS, WORKLOADS
from muster.policy.group_labels import UID_CHARACTERS
from muster.policy.owners.job import job_workload_name
from muster.policy.sources.source import ANNOTATION
from muster.runtime import steps
from muster.simulator.apiserver import ApiServer
from muster.simulator.controllers import shipped_runtimes
from tests.support.builders import a_job, a_namespace, named, of_uid, pods_of

Object = dict[str, Any]

STEPS = (
    "create_workload",
    "create_pod_groups",
    "patch_pods",
    "resize_gang",
    "emit_conditions",
    "mark_runtime",
)
LOST_ONE_IN = 100

NAMESPACES = 50
FIRST_NAME, FIRST_UID = "gang-000000", "00000000-5d0b-4a52-9a3e-0c6a1f0f2b11"
MANAGED_FIELDS_BYTES = 2000
"""Bytes of managedFields in real objects: Jobs and pods have two entries of 1 KB."""


@dataclass(frozen=True)
class GangOfJob:
    """A Job, its pods, and the objects that Muster created for it, all in their final state."""

    objects: tuple[Object, ...]

    def of(self, number: int) -> Iterator[Object]:
        """Yield a copy of the gang under another name, in one of 50 namespaces."""
        name, uid = f"gang-{number:06d}", f"{number:08x}{FIRST_UID[8:]}"
        text = json.dumps(self.objects)
        for old, new in (
            (_workload_name(FIRST_NAME, FIRST_UID), _workload_name(name, uid)),
            (FIRST_UID, uid),
            (f"-{FIRST_UID[:UID_CHARACTERS]}", f"-{uid[:UID_CHARACTERS]}"),
            (FIRST_NAME, name),
            ('"team-a"', f'"team-{number % NAMESPACES}"'),
        ):
            text = text.replace(old, new)
        yield from json.loads(text)


def a_running_gang(cluster: Versioned, load: Callable[[list[Object]], None]) -> GangOfJob:
    """Create a gang by Muster's own steps, so that they plan nothing for it."""
    job = a_job(named(FIRST_NAME), of_uid(FIRST_UID), pods=4)
    # Without it the API server refuses every change of a pod.
    job["spec"]["template"]["spec"]["containers"] = [{"name": "node", "image": "example.com/train"}]
    pods = pods_of(job)
    for pod in pods:
        pod["metadata"]["uid"] = f"{FIRST_UID}-{pod['metadata']['name'][-1]}"
        pod["spec"] |= {"nodeName": "node", "schedulingGates": []}
        pod["status"] = {"phase": "Running"}
    for body in (job, *pods):
        fields: Object = {"f:spec": {f"f:field-{number}": {} for number in range(MANAGED_FIELDS_BYTES // 17)}}
        body["metadata"]["managedFields"] = [{"manager": "kube-controller-manager", "fieldsV1": fields}]
    load([a_namespace(), job, *pods])
    for name in ("create_workload", "create_pod_groups"):
        _run(name, cluster, job)
    (group,) = cluster.list(POD_GROUPS, "team-a")
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "lastTransitionTime": "2026-11-21T08:00:00Z",
    }
    load([group | {"status": {"conditions": [condition]}}])
    _run("emit_conditions", cluster, job)
    made = [obj for kind in (JOBS, PODS, WORKLOADS, POD_GROUPS) for obj in cluster.list(kind, "team-a")]
    for body in made:
        body["metadata"].pop("resourceVersion")
    return GangOfJob(tuple(made))


def _workload_name(name: str, uid: str) -> str:
    """The name of the Workload of a Job."""
    return job_workload_name(ObjectRef(JOBS.api_version, JOBS.kind, "team-a", name, uid))


def _run(name: str, cluster: Versioned, owner: Object) -> None:
    step = steps.step_named(name)
    inputs = step.observe(cluster, KubernetesObject.read(owner).ref)
    plan = step.plan(inputs, datetime.now(UTC))  # noqa: TID251 - the benchmark has no other clock
    execute.in_order(cluster, plan, step.manager)  # type: ignore[arg-type]


class BenchmarkCluster:
    """An embedded cluster with many gangs, of which some can be damaged.

    Args:
        server: an empty one.
        owners: how many gangs run in it.
    """

    def __init__(self, server: ApiServer, owners: int) -> None:
        self._server = server
        self._owners = owners
        cluster = Versioned(Client.for_server(server.url))
        self._gang = a_running_gang(cluster, self._server.load)
        self._runtimes = [
            runtime | {"metadata": {**runtime["metadata"], "name": f"{runtime['metadata']['name']}-{number}"}}
            for number in range(2)
            for runtime in shipped_runtimes()
        ]
        self._lost: range = range(0)

    def fill(self) -> None:
        """Load the number of gangs, and the shipped runtimes."""
        for number in range(1, self._owners):
            self._server.load(self._gang.of(number))
        self._server.load(self._runtimes)

    def lose(self, name: str) -> None:
        """Add one damaged gang for every hundred, as if the step had missed its event."""
        if name == "mark_runtime":
            runtime = self._runtimes[0]
            annotations = {ANNOTATION: "workload: {}"}
            self._server.load([runtime | {"metadata": runtime["metadata"] | {"annotations": annotations}}])
            return
        begin = max(self._owners, self._lost.stop)
        self._lost = range(begin, begin + self._owners // LOST_ONE_IN)
        for number in self._lost:
            self._server.load(body for body in self._gang.of(number) if _LOSSES[name](body))

    def repair(self) -> None:
        """Load the damaged gangs in their final state."""
        for number in self._lost:
            self._server.load(self._gang.of(number))


def _gated(body: Object) -> bool:
    if body["kind"] == "Pod":
        body["spec"] |= {"nodeName": "", "schedulingGates": [{"name": "muster.dev/pod-group"}]}
        body["status"] = {"phase": "Pending"}
    return True


def _too_small(body: Object) -> bool:
    if body["kind"] == "PodGroup":
        body["spec"]["schedulingPolicy"]["gang"]["minCount"] = 2
    return True


def _untold(body: Object) -> bool:
    if body["kind"] == "Job":
        body["status"]["conditions"] = []
    return True


_LOSSES: dict[str, Callable[[Object], bool]] = {
    "create_workload": lambda body: body["kind"] != "Workload",
    "create_pod_groups": lambda body: body["kind"] != "PodGroup",
    "patch_pods": _gated,
    "resize_gang": _too_small,
    "emit_conditions": _untold,
}
"""Damage by step: changes an object in place, and returns whether it is kept at all."""
