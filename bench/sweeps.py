"""A sweep of each function over thousands of Jobs, on an embedded API server.

Each Job has four pods, a Workload and a PodGroup, and there is nothing to do. Each function sweeps in a
process of its own until it has looked at everything. Beside it another process reads the same lists without
any of Muster's code around the client: `lists alone`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bench.figures import Figure, Goal, Measure, progress, samples
from bench.sweeping import Cost
from muster.cluster import execute
from muster.cluster.http.client import Client
from muster.cluster.versioned import Versioned
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.resources import JOBS, POD_GROUPS, PODS, WORKLOADS
from muster.policy.group_labels import UID_CHARACTERS
from muster.policy.owners.job import job_workload_name
from muster.runtime import steps
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.controllers import shipped_runtimes
from tests.support.builders import a_job, a_namespace, named, of_uid, pods_of

Object = dict[str, Any]

SIZES = (1_000, 10_000)
"""The numbers of Jobs."""
MOST_MIB = 128.0
QUANTITIES: tuple[tuple[str, str, Callable[[Cost], float]], ...] = (
    ("calls", "", lambda cost: cost.calls),
    ("received", "MB", lambda cost: cost.megabytes),
    ("time", "s", lambda cost: cost.seconds),
    ("CPU time", "s", lambda cost: cost.cpu),
    ("memory at most", "MiB", lambda cost: cost.peak),
)
NAMESPACES = 50
FIRST_NAME, FIRST_UID = "gang-000000", "00000000-5d0b-4a52-9a3e-0c6a1f0f2b11"
MANAGED_FIELDS_BYTES = 2000
"""Bytes of managedFields in real objects: Jobs and pods have two entries of 1 KB."""


def measure() -> Figure:
    """Return calls, time and memory of a sweep of each function."""
    return Figure("sweeps", "Sweeps", [measure for owners in SIZES for measure in _measured(owners)])


def _measured(owners: int) -> Iterator[Measure]:
    """Measure all functions at one size."""
    costs: dict[str, dict[str, list[Cost]]] = {"sweep": {}, "lists": {}}
    with ApiServer() as server:
        server.load([*resource_definitions(), *shipped_runtimes()])
        gang = a_running_gang(Versioned(Client.for_server(server.url)), server.load)
        for number in range(1, owners):
            server.load(gang.of(number))
        for name in steps.step_names():
            progress(f"{owners:,} Jobs: {name}")
            for what, of_step in costs.items():
                of_step[name] = [_in_a_process(what, server.url, name)]
    group = f"{owners:,} Jobs"
    for quantity, unit, value in QUANTITIES:
        goals = [Goal(name, MOST_MIB) for name in costs["sweep"]] if unit == "MiB" else ()
        yield Measure(quantity, unit, samples(costs["sweep"], value), group, goals)
        yield Measure(f"{quantity}, lists alone", unit, samples(costs["lists"], value), group)


def _in_a_process(what: str, url: str, name: str) -> Cost:
    command = [sys.executable, "-m", "bench.sweeping", what, url, name]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Cost(**json.loads(output.splitlines()[-1]))


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
        entry = {"manager": "kube", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}
        body["metadata"]["managedFields"] = [entry]
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
