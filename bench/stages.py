"""Two real control planes side by side, and what owners that are created on them take and cost.

On one Muster is installed. The other is the reference without Muster: with the gate WorkloadWithJob, so that
the Job controller makes gangs itself. Both have the same controllers and nodes. All times are those of the
API server's audit log.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from bench.figures import ROOT, in_turns, progress
from bench.processes import FailedError, cpu_of, memory_of
from tests.cluster import audit, controllers, kubectl, manifests
from tests.cluster import cluster as clusters
from tests.cluster.cluster import ClusterOptions, RealCluster
from tests.cluster.control_plane import DEFAULT_GATES, Release
from tests.cluster.processes import until
from tests.e2e.support import admission
from tests.e2e.support import muster as installation
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import a_job, a_trainjob

Object = dict[str, Any]

PLAIN, IN_TREE, MUSTER = "plain", "in-tree", "Muster"
NAMESPACE = "bench"
LIMITS = ("--kube-api-qps=500", "--kube-api-burst=1000")
"""Of the clients of controller manager and scheduler. With their defaults (20 and 50 requests/s) a burst
measures the limits."""
FLAGS = (
    ("kube-apiserver", (f"--audit-policy-file={ROOT / 'bench' / 'audit-policy.yaml'}",)),
    ("kube-controller-manager", LIMITS),
    ("kube-scheduler", LIMITS),
)
NODE_CPUS, NODE_PODS = 110, 110
SETTLED_SECONDS, PATIENCE = 0.5, 300.0
ADMINISTRATOR, ACCOUNTS = "kubernetes-admin", "system:serviceaccount:muster-system:"
BINDING = "create pods/binding"
_LEFT = {"jobs": "batch/v1", "pods": "v1", "podgroups": "scheduling.k8s.io/v1beta1"}
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Request:
    """A request in the audit log that the API server has answered; watches are left out.

    Attributes:
        user: who sent it, such as `system:kube-scheduler`.
        name: such as `get podgroups` or `create pods/binding`; with ` (404)` for a refusal or a miss.
        of: the name of the object.
        began: when it came, in seconds since the epoch.
        ended: when it was answered.
    """

    user: str
    name: str
    of: str
    began: float
    ended: float

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> Request:
        """Return the request of an audit event (audit.k8s.io/v1) with an objectRef."""
        reference, status = event["objectRef"], event.get("responseStatus", {}).get("code", 0)
        resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
        times = (event["requestReceivedTimestamp"], event["stageTimestamp"])
        return cls(
            event["user"]["username"],
            f"{event['verb']} {resource}" + (f" ({status})" if status >= 400 else ""),
            reference.get("name", ""),
            *(datetime.fromisoformat(text).timestamp() for text in times),
        )


@dataclass(frozen=True)
class Round:
    """What one subject did in one round.

    Attributes:
        delays: of each owner, from its request to its last bound pod, in seconds.
        wall: from the first request to the last bound pod of all.
        requests: answered by the API server, without those of the benchmark itself.
        cpu: CPU seconds by process; those of the broker include the benchmark's own few.
        deliveries: events that all functions answered, repeated ones included.
        memory: most resident memory of the largest function so far, in MiB; 0 without Muster.
    """

    delays: Sequence[float]
    wall: float
    requests: Sequence[Request]
    cpu: Mapping[str, float]
    deliveries: float
    memory: float

    def of_muster(self) -> list[Request]:
        """Return the requests of Muster's functions."""
        return [request for request in self.requests if request.user.startswith(ACCOUNTS)]


Rounds = Mapping[str, Sequence[Round]]
"""The rounds of each subject, in turns."""


@dataclass
class Stage:
    """A control plane with nodes and one namespace for the benchmark.

    Attributes:
        cluster: the control plane.
        owner: reference to a ConfigMap as controller; the Job controller makes no gang of a Job that has one.
        muster: Muster, if it is installed.
    """

    cluster: RealCluster
    owner: Object
    muster: Muster | None = None

    def run(self, owners: Sequence[Object], pods: int, *, at_once: bool, gangs: bool) -> Round:
        """Create owners at once or one after another, wait until all their pods are bound, delete them.

        Raises:
            FailedError: pods were not bound in time, or there are other gangs than there should be.
        """
        offset, before, delivered = audit.size(self.cluster.audit_log), self._cpu(), self._deliveries()
        for batch in [owners] if at_once else [[owner] for owner in owners]:
            self._create(batch, pods)
        events = audit.events_since(self.cluster.audit_log, offset)
        named = [event for event in events if "objectRef" in event and event["verb"] != "watch"]
        requests = [Request.read(event) for event in named]
        cpu = {name: seconds - before[name] for name, seconds in self._cpu().items()}
        functions = self.muster.functions.values() if self.muster else ()
        created, bound = _times(requests, {owner["metadata"]["name"] for owner in owners})
        taken = Round(
            [bound[name] - created[name] for name in created],
            max(bound.values()) - min(created.values()),
            [request for request in requests if request.user != ADMINISTRATOR],
            cpu,
            self._deliveries() - delivered,
            max((memory_of(process.pid) for process in functions), default=0.0),
        )
        found, expected = self.gangs(), Counter({pods: len(owners)} if gangs else {})
        if found != expected:
            raise FailedError(f"gangs by minCount are {dict(found)}, not {dict(expected)}")
        self._clear(owners)
        return taken

    def gangs(self) -> Counter[int]:
        """Return how many PodGroups with a gang there are, by minCount."""
        policies = [group["spec"]["schedulingPolicy"] for group in self._list("podgroups")]
        return Counter(policy["gang"]["minCount"] for policy in policies if "gang" in policy)

    def settle(self) -> None:
        """Wait until the broker is idle and nobody asks the API server for anything but leases."""
        size, since = -1, time.monotonic()
        deadline = since + PATIENCE
        while time.monotonic() - since < SETTLED_SECONDS:
            if time.monotonic() > deadline or (self.muster and not self.muster.idle(PATIENCE)):
                raise FailedError("events or requests did not end")
            if (now := audit.size(self.cluster.audit_log)) != size:
                size, since = now, time.monotonic()
            time.sleep(0.05)

    def _create(self, owners: Sequence[Object], pods: int) -> None:
        """Create owners with kubectl, so with a process of its own, and wait for the bindings."""
        offset = audit.size(self.cluster.audit_log)
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*map(_placed, owners)]})
        command = ("create", "--validate=false", "-f", "-")
        kubectl.run(*command, kubeconfig=self.cluster.kubeconfig, given=text)
        expected, needle = pods * len(owners), b'"subresource":"binding"'
        log = self.cluster.audit_log
        if not until(lambda: log.read_bytes()[offset:].count(needle) >= expected, PATIENCE):
            raise FailedError(f"not all of {expected} pods were bound after {PATIENCE:g} s")
        self.settle()

    def _clear(self, owners: Sequence[Object]) -> None:
        """Delete all owners of these kinds, and wait until nothing is left of them."""
        for path in {manifests.collection(_placed(owner)) for owner in owners}:
            self.cluster.api.must("DELETE", path, query={"propagationPolicy": "Background"})
        if not until(lambda: not any(self._list(plural) for plural in _LEFT), PATIENCE):
            raise FailedError("objects of deleted owners are left over")
        self.settle()

    def _list(self, plural: str) -> list[Object]:
        version = _LEFT[plural]
        path = f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{NAMESPACE}/{plural}"
        items: list[Object] = self.cluster.api.must("GET", path)["items"]
        return items

    def _cpu(self) -> dict[str, float]:
        pids = {process.name: process.pid for process in self.cluster.processes}
        if self.muster:
            pids["broker"] = os.getpid()
        return {name: cpu_of(pid) for name, pid in pids.items()}

    def _deliveries(self) -> float:
        if self.muster is None:
            return 0.0
        texts = [self.muster.metrics(name) for name in self.muster.functions]
        families = [family for text in texts for family in text_string_to_metric_families(text)]
        found = [sample for family in families for sample in family.samples]
        return sum(float(sample.value) for sample in found if sample.name == "muster_events_total")


def _placed(owner: Object) -> Object:
    return {**owner, "metadata": {**owner["metadata"], "namespace": NAMESPACE}}


def _times(requests: Sequence[Request], owners: set[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return by owner when it was asked for, and when its last pod was bound."""
    created: dict[str, float] = {}
    bound: dict[str, float] = defaultdict(float)
    for request in requests:
        owner = re.match(r"[a-z]+-\d+", request.of)
        if owner is None or owner[0] not in owners:
            continue
        if request.user == ADMINISTRATOR and request.name in {"create jobs", "create trainjobs"}:
            created[owner[0]] = request.began
        elif request.name == BINDING:
            bound[owner[0]] = max(bound[owner[0]], request.ended)
    if not owners == set(created) == set(bound):
        raise FailedError(f"the audit log has {len(created)} of {len(owners)} owners, {len(bound)} bound")
    return created, bound


@dataclass(frozen=True)
class Subject:
    """One of those compared.

    Attributes:
        name: in the results.
        stage: where it runs.
        write: makes an owner of a name.
        gangs: whether each owner becomes a gang of all its pods.
    """

    name: str
    stage: Stage
    write: Callable[[str], Object]
    gangs: bool = True


def jobs(stages: tuple[Stage, Stage], pods: int) -> list[Subject]:
    """Return the three subjects, with Jobs of so many pods."""
    reference, muster = stages

    def plain(name: str) -> Object:
        job = a_job(name, pods=pods)
        job["metadata"]["ownerReferences"] = [reference.owner]
        return job

    def in_tree(name: str) -> Object:
        job = a_job(name, pods=pods)
        job["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {}}}
        return job

    return [
        Subject(PLAIN, reference, plain, gangs=False),
        Subject(IN_TREE, reference, in_tree),
        Subject(MUSTER, muster, lambda name: a_job(name, pods=pods)),
    ]


def trainjobs(stages: tuple[Stage, Stage], pods: int) -> list[Subject]:
    """Return the two subjects, with TrainJobs of so many pods."""

    def trainjob(name: str) -> Object:
        return a_trainjob(name, "torch-distributed", nodes=pods)

    return [Subject(PLAIN, stages[0], trainjob, gangs=False), Subject(MUSTER, stages[1], trainjob)]


def rounds_of(
    subjects: Sequence[Subject], pods: int, owners: int, rounds: int, *, at_once: bool = False
) -> Rounds:
    """Let subjects create so many owners in each round, in turns."""

    def one(subject: Subject) -> Round:
        word = subject.name.lower().replace("-", "")
        bodies = [subject.write(f"{word}-{next(_NUMBERS)}") for _ in range(owners)]
        return subject.stage.run(bodies, pods, at_once=at_once, gangs=subject.gangs)

    progress(f"{owners} owners of {pods} pods, {'at once' if at_once else 'one at a time'}")
    return in_turns({subject.name: lambda subject=subject: one(subject) for subject in subjects}, rounds)  # type: ignore[misc]


@contextlib.contextmanager
def both(nodes: int) -> Iterator[tuple[Stage, Stage]]:
    """Run the reference and the cluster with Muster for the length of a block, each with so many nodes."""
    # Without a handler SIGTERM would leave all processes behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with contextlib.ExitStack() as stops:
        progress("starting two control planes, about a minute")
        gates = (*DEFAULT_GATES["1.37"], "WorkloadWithJob")
        reference = stops.enter_context(_stage(Release(gates=gates, flags=FLAGS), nodes, {}))
        with_muster = stops.enter_context(
            _stage(Release(flags=FLAGS), nodes, {"muster.dev/gang-jobs": "enabled"})
        )
        muster = stops.enter_context(installation.installed(with_muster.cluster, "cluster"))
        stops.enter_context(muster.without_sweeps())
        with_muster.muster = muster
        if not admission.policies_at_work(with_muster.cluster.api, NAMESPACE):
            raise FailedError("the admission policies do not take effect")
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
        owner = {name: stored["metadata"][name] for name in ("name", "uid")}
        yield Stage(cluster, {"apiVersion": "v1", "kind": "ConfigMap", **owner, "controller": True})
