"""Gangs of four pods on a real API server, each in the state in which an event reaches a step."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bench.control_plane import ControlPlane
from muster.cluster.versioned import Versioned
from muster.objects.meta import KubernetesObject
from muster.objects.resources import JOBS, POD_GROUPS, PODS, TRAINING_RUNTIMES, WORKLOADS, Resource
from muster.policy.group_labels import GROUP, UID_CHARACTERS
from muster.policy.owners.job import job_workload_name
from muster.policy.sources.source import ANNOTATION
from muster.runtime import steps
from muster.runtime.handle import run_step
from muster.simulator.clock import now
from muster.simulator.controllers import shipped_runtime
from muster.simulator.source import ChangeType, Mode, to_event
from tests.e2e.support.owners import a_job

Object = dict[str, Any]
PODS_OF_A_GANG = 4
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Event:
    """A CloudEvent as the adapter sends it to a function."""

    headers: Mapping[str, str]
    body: bytes

    @classmethod
    def about(cls, change: ChangeType, obj: Object) -> Event:
        """Return the event of a change of an object."""
        headers, body = to_event(change, obj, Mode.RESOURCE, "https://127.0.0.1")
        return cls({**headers, "Ce-Id": str(uuid.uuid4()), "Ce-Time": now()}, body)

    @property
    def id(self) -> str:
        """The `ce-id`."""
        return self.headers["Ce-Id"]


@dataclass(frozen=True)
class Gang:
    """A gang, in the state in which an event reaches a step.

    Attributes:
        objects: by kind, sorted by name.
    """

    objects: Mapping[str, Sequence[Object]]

    def happens(self, change: ChangeType, kind: Resource, edit: Callable[[Object], object] = bool) -> Event:
        """Return the event of a change of the gang's object of a kind, which is edited for it."""
        obj = copy.deepcopy(self.objects[kind.kind][0])
        edit(obj)
        return Event.about(change, obj)

    @property
    def identifiers(self) -> dict[str, str]:
        """The names, UIDs and versions of its objects, by role; those of another gang have the same roles."""
        known: dict[str, str] = {}
        for kind, objects in self.objects.items():
            for number, obj in enumerate(objects):
                metadata, role = obj["metadata"], f"{kind} {number}"
                known |= {f"{role} {key}": metadata[key] for key in ("name", "uid", "resourceVersion")}
                known["namespace"] = metadata["namespace"]
        if jobs := self.objects.get("Job"):
            ref = KubernetesObject.read(jobs[0]).ref
            known |= {"short uid": ref.uid[:UID_CHARACTERS], "workload": job_workload_name(ref)}
        return known


@dataclass(frozen=True)
class Stage:
    """How a gang gets into the state of an event.

    Attributes:
        before: what happens to the Job, in order.
        kind: of the object that the event is about.
        change: of that object.
        idle_kind: of the object of an event that shows by itself that there is nothing to do.
        idle_edit: what is different about that object.
    """

    before: tuple[Callable[[ControlPlane, Object], None], ...]
    kind: Resource
    change: ChangeType
    idle_kind: Resource
    idle_edit: Callable[[Object], object]

    def event(self, gang: Gang) -> Event:
        """Return the event on which the step acts."""
        return gang.happens(self.change, self.kind)

    def idle_event(self, gang: Gang) -> Event:
        """Return an event that shows by itself that there is nothing to do."""
        return gang.happens(self.change, self.idle_kind, self.idle_edit)


def prepare(plane: ControlPlane, stage: Stage, count: int) -> list[Gang]:
    """Bring gangs into a state, in a new namespace."""
    namespace = plane.new_namespace()
    names = [f"gang-{number:03d}" for number in range(count)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: _bring(plane, stage, namespace, name), names))
    kinds = (TRAINING_RUNTIMES,) if stage.kind == TRAINING_RUNTIMES else (JOBS, PODS, WORKLOADS, POD_GROUPS)
    found = {kind.kind: plane.all(kind, namespace) for kind in kinds}
    return [Gang({kind: _named(objects, name) for kind, objects in found.items()}) for name in names]


def _named(objects: Iterable[Object], name: str) -> list[Object]:
    return sorted((obj for obj in objects if _name(obj).startswith(name)), key=_name)


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _bring(plane: ControlPlane, stage: Stage, namespace: str, name: str) -> None:
    if stage.kind == TRAINING_RUNTIMES:
        plane.must("POST", TRAINING_RUNTIMES.path(namespace=namespace), _runtime(namespace, name))
        return
    job = plane.must("POST", JOBS.path(namespace=namespace), a_job(name, pods=PODS_OF_A_GANG))
    for happens in stage.before:
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


def _unmark(job: Object) -> None:
    job["spec"]["template"]["metadata"]["labels"].pop(GROUP)


def _ungate(pod: Object) -> None:
    pod["spec"].pop("schedulingGates")


def _as_created(job: Object) -> None:
    job["metadata"]["generation"] = 1


def _without_policy(runtime: Object) -> None:
    runtime["metadata"]["annotations"].pop(ANNOTATION)


_ADD, _UPDATE = ChangeType.ADD, ChangeType.UPDATE
STAGES: Mapping[str, Stage] = {
    "create_workload": Stage((), JOBS, _ADD, JOBS, _unmark),
    "create_pod_groups": Stage(_WORKLOAD, WORKLOADS, _ADD, JOBS, _unmark),
    "patch_pods": Stage(_GROUPS, POD_GROUPS, _ADD, PODS, _ungate),
    "emit_conditions": Stage(_PLACED, POD_GROUPS, _UPDATE, JOBS, _as_created),
    "resize_gang": Stage((*_PLACED, _shrink), JOBS, _UPDATE, JOBS, _as_created),
    "mark_runtime": Stage((), TRAINING_RUNTIMES, _ADD, TRAINING_RUNTIMES, _without_policy),
}
"""The event of each step in the life of a gang, in this order."""
