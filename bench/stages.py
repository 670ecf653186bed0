"""The real control planes of the benchmarks, and what work on them costs.

Two run side by side, so that their subjects take turns. On one Muster is installed. The other is the
reference without Muster: with the gate WorkloadWithJob, so that the Job controller makes gangs itself. Both
have the same controllers and nodes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from bench import audit, procfs
from bench.audit import Request
from bench.driver import Driver, NotBound, Timing
from bench.figures import ROOT, progress
from bench.procfs import Machine
from bench.subjects import FailedError
from tests.cluster import audit as audit_log
from tests.cluster import cluster as clusters
from tests.cluster import controllers, manifests
from tests.cluster.cluster import ClusterOptions, RealCluster
from tests.cluster.control_plane import DEFAULT_GATES, Release
from tests.cluster.processes import until
from tests.e2e.support import admission
from tests.e2e.support import muster as installation
from tests.e2e.support.muster import Muster

Object = dict[str, Any]

ADMINISTRATOR = "kubernetes-admin"
DRIVER = "driver"
NAMESPACE = "bench"
OVERLAYS = {"processes": "cluster", "one": "one-service"}
"""By `--functions`: how Muster's functions are served."""

LIMITS = ("--kube-api-qps=500", "--kube-api-burst=1000")
"""Of the clients of controller manager and scheduler. With their defaults (20 and 50 requests/s) a burst
measures the limits."""
FLAGS = (
    ("kube-apiserver", (f"--audit-policy-file={ROOT / 'bench' / 'audit-policy.yaml'}",)),
    ("kube-controller-manager", LIMITS),
    ("kube-scheduler", LIMITS),
)
NODE_CPUS, NODE_PODS = 110, 110
SETTLED_SECONDS = 0.5
PATIENCE = 120.0


class NotAsWritten(FailedError):
    """A cluster did something else than the subject stands for, so its times mean nothing."""


@dataclass(frozen=True)
class Cost:
    """What the processes of a cluster did for some work.

    Attributes:
        requests: answered by the API server, except those of the benchmark itself.
        cpu: CPU seconds by process; those of the broker include the benchmark's own few.
        deliveries: events that each function answered, repeated ones included.
        memory: most resident memory of each process that serves functions so far, in MiB.
        others: share of the machine's CPU time that other programs took meanwhile, 0 to 1.
    """

    requests: Sequence[Request]
    cpu: Mapping[str, float]
    deliveries: Mapping[str, float]
    memory: Mapping[str, float]
    others: float


@dataclass
class Stage:
    """A control plane with nodes and one namespace for the benchmark.

    Attributes:
        cluster: the control plane.
        driver: creates owners in the namespace.
        owner: reference to a ConfigMap as controller; the Job controller makes no gang of a Job that has one.
        muster: Muster, if it is installed.
    """

    cluster: RealCluster
    driver: Driver
    owner: Object
    muster: Muster | None = None

    def create(self, owners: Sequence[Object], pods: int, *, seconds: float = PATIENCE) -> Timing:
        """Create owners at once and wait until all their pods are bound.

        Raises:
            NotAsWritten: an owner was refused, or pods were not bound in time.
        """
        try:
            return self.driver.run([_placed(owner) for owner in owners], pods, seconds=seconds)
        except NotBound as error:
            raise NotAsWritten(str(error)) from error

    def cost_of(self, act: Callable[[], object]) -> Cost:
        """Return what it costs to do something, until everything is settled."""
        before = self._meters()
        act()
        self.settle()
        after = self._meters()
        events = audit_log.events_since(self.cluster.audit_log, before.logged)
        cpu = procfs.since(before.cpu, after.cpu)
        return Cost(
            requests=audit.requests(events, without=[ADMINISTRATOR]),
            cpu={name: seconds for name, seconds in cpu.items() if name != DRIVER},
            deliveries=procfs.since(before.deliveries, after.deliveries),
            memory=procfs.memory_of(self._functions()),
            others=after.machine.others(before.machine, sum(cpu.values())),
        )

    def clear(self, owners: Sequence[Object]) -> None:
        """Delete all owners of these kinds, and wait until nothing is left of them."""
        api = self.cluster.api
        for path in {manifests.collection(_placed(owner)) for owner in owners}:
            api.must("DELETE", path, query={"propagationPolicy": "Background"})
        left = ("Job", "Pod", "Workload", "PodGroup")
        if not until(lambda: not any(self.names(kind) for kind in left), PATIENCE):
            raise NotAsWritten(f"left over: { {kind: self.names(kind)[:5] for kind in left} }")
        self.settle()

    def names(self, kind: str) -> list[str]:
        """Return the names of at most 10 objects of a kind in the namespace."""
        return [body["metadata"]["name"] for body in self._list(kind, limit=10)]

    def gangs(self) -> Counter[int]:
        """Return how many PodGroups with a gang there are, by minCount."""
        policies = [group["spec"]["schedulingPolicy"] for group in self._list("PodGroup")]
        return Counter(policy["gang"]["minCount"] for policy in policies if "gang" in policy)

    def settle(self) -> None:
        """Wait until the broker is idle and nobody asks the API server for anything but leases."""
        size, since = -1, time.monotonic()
        deadline = since + PATIENCE
        while time.monotonic() - since < SETTLED_SECONDS:
            if self.muster and not self.muster.idle(PATIENCE):
                raise NotAsWritten("the broker still has events")
            now = audit_log.size(self.cluster.audit_log)
            if now != size:
                size, since = now, time.monotonic()
            if time.monotonic() > deadline:
                raise NotAsWritten("requests did not end")
            time.sleep(0.05)

    def _list(self, kind: str, limit: int = 0) -> list[Object]:
        path = manifests.collection(
            _placed({"apiVersion": _API_VERSIONS[kind], "kind": kind, "metadata": {}})
        )
        items: list[Object] = self.cluster.api.must("GET", path, query={"limit": str(limit)})["items"]
        return items

    def _meters(self) -> _Meters:
        return _Meters(
            logged=audit_log.size(self.cluster.audit_log),
            cpu=procfs.cpu_of(self._pids()),
            deliveries=self._deliveries(),
            machine=Machine.now(),
        )

    def _pids(self) -> dict[str, int]:
        pids = {process.name: process.pid for process in self.cluster.processes} | {DRIVER: self.driver.pid}
        return {**pids, "broker": os.getpid()} if self.muster else pids

    def _functions(self) -> dict[str, int]:
        return {name: process.pid for name, process in self.muster.functions.items()} if self.muster else {}

    def _deliveries(self) -> dict[str, float]:
        if not self.muster:
            return {}
        texts = [self.muster.metrics(name) for name in self.muster.functions]
        return dict(sum((deliveries(text) for text in texts), Counter()))


@dataclass(frozen=True)
class _Meters:
    logged: int
    cpu: Mapping[str, float]
    deliveries: Mapping[str, float]
    machine: Machine


_API_VERSIONS = {
    "Job": "batch/v1",
    "Pod": "v1",
    "Workload": "scheduling.k8s.io/v1beta1",
    "PodGroup": "scheduling.k8s.io/v1beta1",
}


def deliveries(exposition: str) -> Counter[str]:
    """Return the answered events by function, from the metrics of a function."""
    counts: Counter[str] = Counter()
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if sample.name == "muster_events_total":
                counts[sample.labels["function"]] += int(sample.value)
    return counts


@contextlib.contextmanager
def both(functions: str, nodes: int) -> Iterator[tuple[Stage, Stage]]:
    """Run the reference and the cluster with Muster for the length of a block.

    Args:
        functions: `processes`, or `one` for one process that serves them all.
        nodes: of each cluster, with room for 110 pods each.
    """
    # Without a handler SIGTERM would leave all processes behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stops:
        progress("starting two control planes, about a minute")
        gates = (*DEFAULT_GATES["1.37"], "WorkloadWithJob")
        reference = stops.enter_context(_stage(Release(gates=gates, flags=FLAGS), nodes, {}))
        with_muster = stops.enter_context(
            _stage(Release(flags=FLAGS), nodes, {"muster.dev/gang-jobs": "enabled"})
        )
        muster = stops.enter_context(installation.installed(with_muster.cluster, OVERLAYS[functions]))
        stops.enter_context(muster.without_sweeps())
        with_muster.muster = muster
        if not admission.policies_at_work(with_muster.cluster.api, NAMESPACE):
            raise NotAsWritten("the admission policies do not take effect")
        for stage in (reference, with_muster):
            stage.settle()
        yield reference, with_muster


@contextlib.contextmanager
def _stage(release: Release, nodes: int, labels: Mapping[str, str]) -> Iterator[Stage]:
    with clusters.running(ClusterOptions(release=release)) as cluster:
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
        experiment = _placed({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "experiment"}})
        _, stored = manifests.apply(cluster.api, [home, experiment])
        for number in range(nodes):
            controllers.add_node(cluster.api, f"node-{number}", cpu=NODE_CPUS)
        driver = Driver(cluster.kubeconfig, NAMESPACE)
        try:
            yield Stage(cluster, driver, _controller(stored))
        finally:
            driver.stop()


def _placed(owner: Object) -> Object:
    return {**owner, "metadata": {**owner["metadata"], "namespace": NAMESPACE}}


def _controller(obj: Object) -> Object:
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
