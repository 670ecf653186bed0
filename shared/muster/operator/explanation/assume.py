"""What a file of manifests would become in a cluster, as far as grouping depends on it."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from muster.cluster.snapshot import Snapshot
from muster.policy import marks
from muster.policy.model import Plan, Verb
from muster.replay.files import BadFileError
from muster.replay.snapshots import OWNERS, Object, Objects
from muster.simulator.admitted import admitted
from muster.simulator.apiserver.status import ApiError
from muster.simulator.controllers import shipped_runtime
from muster.simulator.controllers.jobset.jobs import with_defaults
from muster.simulator.controllers.trainer.jobset import UnknownNumNodes, build_jobset

UID = "xxxxxxxx-0000-4000-8000-000000000000"
"""Stands where the API server will put a UID; the names of groups end in its first 8 characters."""

DEFAULT_NAMESPACE = "default"


class Imagined(Snapshot):
    """A cluster of files in which plans may be carried out, as far as later steps look at what was made."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._given = objects

    def after(self, plan: Plan) -> Imagined:
        """The cluster once the plan's objects exist."""
        made = [
            {**action.body, "metadata": {**action.body["metadata"], "uid": UID, "resourceVersion": "1"}}
            for action in plan.actions
            if action.verb == Verb.CREATE and action.body is not None
        ]
        return Imagined([*self._given, *made])


@dataclass(frozen=True)
class Assumed:
    """A cluster made of a file.

    Attributes:
        objects: as the API server and the Trainer would have made them.
        owners: the TrainJobs, JobSets and Jobs among them that a person created.
        notes: what had to be assumed, in words.
    """

    objects: Objects
    owners: Objects
    notes: tuple[str, ...]


def cluster_of(objects: Objects) -> Assumed:
    """The objects of a file with what a cluster adds: namespaces, UIDs, the JobSets of TrainJobs, marks.

    Raises:
        BadFileError: there is no job in it, a TrainJob whose runtime is unknown, or a Job of wrong types.
    """
    there = [_stored(one) for one in copy.deepcopy(objects)]
    owners = [one for one in there if one["kind"] in OWNERS and not _controlled(one)]
    if not owners:
        raise BadFileError("file", "has no TrainJob, JobSet or Job in it")
    notes: list[str] = []
    namespaces = {one["metadata"]["name"]: one for one in there if one["kind"] == "Namespace"}
    for name in sorted({one["metadata"]["namespace"] for one in owners} - set(namespaces)):
        notes.append(
            f"namespace {name} is not in the file: taken as labelled {marks.NAMESPACE_SWITCH}=enabled"
        )
        namespaces[name] = _namespace(name)
        there.append(namespaces[name])
    has = {one["metadata"]["name"] for one in there if one["kind"] == "JobSet"}
    for owner in owners:
        if owner["kind"] == "TrainJob" and owner["metadata"]["name"] not in has:
            there += _made_by_trainer(owner, there, notes)
        if owner["kind"] == "Job":
            _marked_at_birth(owner, namespaces[owner["metadata"]["namespace"]])
    return Assumed(there, owners, tuple(notes))


def _stored(body: Object) -> Object:
    metadata = body["metadata"]
    metadata.setdefault("uid", UID)
    metadata.setdefault("resourceVersion", "1")
    if body["kind"] not in {"Namespace", "ClusterTrainingRuntime"}:
        metadata.setdefault("namespace", DEFAULT_NAMESPACE)
    return with_defaults(body) if body["kind"] == "JobSet" else body


def _controlled(body: Object) -> bool:
    return any(one.get("controller") for one in body["metadata"].get("ownerReferences") or [])


def _namespace(name: str) -> Object:
    labels = {marks.NAMESPACE_SWITCH: "enabled"}
    metadata = {"name": name, "uid": UID, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _marked_at_birth(job: Object, namespace: Object) -> None:
    """Put on a Job's template the mark that the admission policies put there at its creation."""
    try:
        born = admitted(job, namespace["metadata"].get("labels") or {})
    except ApiError as error:
        raise BadFileError(f"Job {job['metadata']['name']}", error.message) from None
    group = (born["spec"]["template"].get("metadata") or {}).get("labels", {}).get(marks.GROUP)
    if group is not None:
        template = job["spec"]["template"]
        metadata = template["metadata"] = template.get("metadata") or {}
        metadata["labels"] = {**(metadata.get("labels") or {}), marks.GROUP: group}


def _made_by_trainer(trainjob: Object, there: Objects, notes: list[str]) -> Objects:
    """The JobSet of a TrainJob, and its runtime where the file lacks it."""
    ref = trainjob["spec"]["runtimeRef"]
    kind, name = ref.get("kind", "ClusterTrainingRuntime"), ref["name"]
    found = [one for one in there if one["kind"] == kind and one["metadata"]["name"] == name]
    made: Objects = []
    if not found:
        try:
            found = made = [_stored(shipped_runtime(name))]
        except FileNotFoundError:
            place = f"TrainJob {trainjob['metadata']['name']}"
            raise BadFileError(
                place, f"{kind} {name} is neither in the file nor shipped by the Trainer"
            ) from None
        notes.append(f"runtime {name} is taken as Trainer 2.3.0 ships it")
    try:
        jobset = build_jobset(trainjob, copy.deepcopy(found[0]["spec"]))
    except UnknownNumNodes:
        raise BadFileError(
            f"TrainJob {trainjob['metadata']['name']}", "Flux needs spec.trainer.numNodes"
        ) from None
    return [*made, _stored(jobset)]
