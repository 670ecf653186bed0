"""A real kube-apiserver on which nothing reacts, and gangs in the state in which an event reaches a step."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.cluster.versioned import Versioned
from muster.objects.meta import KubernetesObject
from muster.objects.resources import JOBS, POD_GROUPS, PODS, TRAINING_RUNTIMES, WORKLOADS, Resource
from muster.policy.sources.source import ANNOTATION
from muster.runtime import steps
from muster.runtime.handle import run_step
from muster.simulator.clock import now
from muster.simulator.controllers import shipped_runtime
from muster.simulator.overlays import CLUSTER, load
from muster.simulator.source import ChangeType, Mode, to_event
from tests.cluster import controllers, manifests
from tests.cluster.cluster import ClusterOptions, RealCluster, running
from tests.e2e.support import admission
from tests.e2e.support.muster import NAMESPACE
from tests.e2e.support.owners import a_job

Object = dict[str, Any]
PODS_OF_A_GANG = 4
MERGE = "application/merge-patch+json"
_KNATIVE = ("eventing.knative.dev/", "serving.knative.dev/", "sources.knative.dev/")


@dataclass
class ControlPlane:
    """A running API server.

    Attributes:
        cluster: its processes and credentials.
        client: a client as administrator, safe to share between threads.
    """

    cluster: RealCluster
    client: Client = field(init=False)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.client = client_of(str(self.cluster.kubeconfig))

    def must(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Object:
        """Send a request as administrator and return the body of its answer, which must be 2xx."""
        status, answer = self.client.raw(method, path, body=body, content_type=content_type)
        if status // 100 != 2:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return dict(answer)

    def all(self, resource: Resource, namespace: str) -> list[Object]:
        """Return the objects of a kind in a namespace, each with its apiVersion and kind."""
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [kind | item for item in self.must("GET", resource.path(namespace=namespace))["items"]]

    def new_namespace(self) -> str:
        """Create a namespace in which Jobs are marked, and return its name."""
        name = f"bench-{next(self._numbers):03d}"
        labels = {"muster.dev/gang-jobs": "enabled"}
        self.must("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        if not admission.policies_at_work(self.cluster.api, name):
            raise RuntimeError(f"Jobs in {name} are not marked")
        return name

    def new_file(self, name: str) -> Path:
        """Return the path of a new file in the folder of logs, with this end of its name."""
        return self.cluster.folder / f"{next(self._numbers):03d}-{name}"

    def kubeconfig(self, step: str) -> Path:
        """Write a kubeconfig of a step's service account."""
        return self.cluster.credentials.kubeconfig(step, self.cluster.api.server, self.token(step))

    def token(self, step: str) -> str:
        """Return a token of a step's service account."""
        account = step.replace("_", "-")
        return controllers.service_account_token(self.cluster.api, NAMESPACE, account)


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    """Build what is missing, and run a control plane for the length of a block."""
    with running(ClusterOptions(controllers=(), types=("jobset", "trainer"))) as cluster:
        plain = [manifest for manifest in load(CLUSTER) if not manifest["apiVersion"].startswith(_KNATIVE)]
        manifests.apply(cluster.api, plain)
        yield ControlPlane(cluster)


@dataclass(frozen=True)
class Event:
    """A CloudEvent as the adapter sends it to a function."""

    headers: Mapping[str, str]
    body: bytes


Gang = Mapping[str, Object]
"""The first object of each kind of a gang."""


@dataclass(frozen=True)
class State:
    """The state of a gang in which an event reaches a step.

    Attributes:
        before: what happens to the Job, in order.
        kind: of the object that the event is about.
        change: of that object.
    """

    before: tuple[Callable[[ControlPlane, Object], None], ...]
    kind: Resource
    change: ChangeType

    def event(self, gang: Gang) -> Event:
        """Return the event on which the step acts."""
        headers, body = to_event(self.change, gang[self.kind.kind], Mode.RESOURCE, "https://127.0.0.1")
        return Event({**headers, "Ce-Id": str(uuid.uuid4()), "Ce-Time": now()}, body)


def prepare(plane: ControlPlane, step: str, count: int) -> list[Gang]:
    """Bring gangs into the state of a step's event, in a new namespace."""
    state, namespace = STATES[step], plane.new_namespace()
    names = [f"gang-{number:03d}" for number in range(count)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: _bring(plane, state, namespace, name), names))
    found = sorted(plane.all(state.kind, namespace), key=_name)
    return [{state.kind.kind: next(obj for obj in found if _name(obj).startswith(name))} for name in names]


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _bring(plane: ControlPlane, state: State, namespace: str, name: str) -> None:
    if state.kind == TRAINING_RUNTIMES:
        plane.must("POST", TRAINING_RUNTIMES.path(namespace=namespace), _runtime(namespace, name))
        return
    job = plane.must("POST", JOBS.path(namespace=namespace), a_job(name, pods=PODS_OF_A_GANG))
    for happens in state.before:
        happens(plane, job)


def _runtime(namespace: str, name: str) -> Object:
    """A TrainingRuntime with a policy, whose templates are not marked yet."""
    shipped = shipped_runtime("torch-distributed")
    metadata = {"name": name, "namespace": namespace, "annotations": {ANNOTATION: "workload: {}"}}
    return {**shipped, "kind": TRAINING_RUNTIMES.kind, "metadata": {**shipped["metadata"], **metadata}}


def _pods(plane: ControlPlane, job: Object) -> None:
    """Create the pods, as the Job controller does."""
    metadata, template = job["metadata"], job["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
    index = "batch.kubernetes.io/job-completion-index"
    for number in range(PODS_OF_A_GANG):
        pod = {
            "metadata": {
                "name": f"{metadata['name']}-{number}",
                "labels": {**template["metadata"]["labels"], index: str(number)},
                "annotations": {index: str(number)},
                "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
            },
            "spec": template["spec"],
        }
        plane.must("POST", PODS.path(namespace=metadata["namespace"]), pod)


def _run(step: str) -> Callable[[ControlPlane, Object], None]:
    """Let a step of Muster's act on the Job, in this process."""

    def run(plane: ControlPlane, job: Object) -> None:
        subject = _group(plane, job) if step == "patch_pods" else job
        ref = KubernetesObject.read(subject).ref
        outcome = run_step(
            steps.step_named(step),
            Versioned(plane.client),
            ref,
            lambda: datetime.now(UTC),  # noqa: TID251
        )
        if outcome.actions == 0:
            raise RuntimeError(f"{step} did nothing for {ref}: {outcome.reason} {outcome.message}")

    return run


def _group(plane: ControlPlane, job: Object) -> Object:
    """The only PodGroup of a Job."""
    uid = job["metadata"]["uid"]
    groups = plane.all(POD_GROUPS, job["metadata"]["namespace"])
    (group,) = (one for one in groups if one["metadata"]["ownerReferences"][0]["uid"] == uid)
    return group


def _place(plane: ControlPlane, job: Object) -> None:
    """Bind the pods and report the group as placed, as kube-scheduler does."""
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    for number in range(PODS_OF_A_GANG):
        binding = {"metadata": {"name": f"{name}-{number}"}, "target": {"kind": "Node", "name": "node-0"}}
        plane.must("POST", PODS.path(f"{name}-{number}", namespace, "binding"), binding)
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "lastTransitionTime": now()[:19] + "Z",
    }
    path = POD_GROUPS.path(_group(plane, job)["metadata"]["name"], namespace, "status")
    plane.must("PATCH", path, {"status": {"conditions": [condition]}}, MERGE)


def _shrink(plane: ControlPlane, job: Object) -> None:
    """Take one pod off the Job, as a user does."""
    fewer = {"spec": {"parallelism": PODS_OF_A_GANG - 1, "completions": PODS_OF_A_GANG - 1}}
    plane.must("PATCH", JOBS.path(job["metadata"]["name"], job["metadata"]["namespace"]), fewer, MERGE)


_WORKLOAD = (_pods, _run("create_workload"))
_GROUPS = (*_WORKLOAD, _run("create_pod_groups"))
_PLACED = (*_GROUPS, _run("patch_pods"), _place)


_ADD, _UPDATE = ChangeType.ADD, ChangeType.UPDATE
STATES: Mapping[str, State] = {
    "create_workload": State((), JOBS, _ADD),
    "create_pod_groups": State(_WORKLOAD, WORKLOADS, _ADD),
    "patch_pods": State(_GROUPS, POD_GROUPS, _ADD),
    "emit_conditions": State(_PLACED, POD_GROUPS, _UPDATE),
    "resize_gang": State((*_PLACED, _shrink), JOBS, _UPDATE),
    "mark_runtime": State((), TRAINING_RUNTIMES, _ADD),
}
"""The event of each step in the life of a gang, in this order."""
