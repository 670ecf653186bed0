"""Complete the objects of a file to what they would be in a cluster, as far as grouping depends on it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import UTC, datetime

from muster.cluster.snapshot import Snapshot
from muster.objects.meta import KubernetesObject
from muster.objects.resources import Resource
from muster.policy.group_labels import GROUP, NAMESPACE_SWITCH
from muster.policy.model import Plan, Verb
from muster.policy.owners import kind_names
from muster.policy.plans.mark_runtime import RuntimeInputs, plan_runtime
from muster.replay.files import BadFileError
from muster.replay.snapshots import Object, Objects
from muster.simulator.admitted import admitted
from muster.simulator.apiserver.status import ApiError
from muster.simulator.controllers import shipped_runtime
from muster.simulator.controllers.jobset.jobs import with_defaults
from muster.simulator.controllers.trainer.controller import typed_runtime
from muster.simulator.controllers.trainer.jobset import UnknownNumNodes, build_jobset

UID = "xxxxxxxx-0000-4000-8000-000000000000"
"""Placeholder for the UIDs that the API server will assign; names of groups end in its first 8 characters."""

DEFAULT_NAMESPACE = "default"
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""The time in an Event that is not shown."""


class DryRunCluster(Snapshot):
    """A cluster of objects from files to which the creations of a plan can be applied."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._created: Objects = []
        self._later = Snapshot([])

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the object of that name, or None."""
        return self._later.get(resource, name, namespace) or super().get(resource, name, namespace)

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind that match the selectors."""
        initial = super().list(resource, namespace, labels=labels, fields=fields, as_of=as_of)
        return initial + self._later.list(resource, namespace, labels=labels, fields=fields, as_of=as_of)

    def after(self, plan: Plan) -> DryRunCluster:
        """Return the cluster with the objects that a plan creates; both share the objects of the files."""
        created = [
            {**action.body, "metadata": {**action.body["metadata"], "uid": UID, "resourceVersion": "1"}}
            for action in plan.actions
            if action.verb == Verb.CREATE and action.body is not None
        ]
        after = copy.copy(self)
        after._created = [*self._created, *created]  # noqa: SLF001 - of its own class
        after._later = Snapshot(after._created)  # noqa: SLF001 - likewise
        return after


@dataclass(frozen=True)
class AssumedObjects:
    """The objects of a file as they would be in a cluster.

    Attributes:
        objects: with what the API server and the Trainer add.
        owners: the TrainJobs, JobSets and Jobs among them that no other object controls.
        notes: what had to be assumed, as text.
    """

    objects: Objects
    owners: Objects
    notes: tuple[str, ...]


def assume_cluster(objects: Objects) -> AssumedObjects:
    """Add what a cluster adds to applied objects: namespaces, UIDs, the JobSets of TrainJobs, group labels.

    Raises:
        BadFileError: the file has no job, or a TrainJob of an unknown runtime.
    """
    assumed = [_stored(body) for body in copy.deepcopy(objects)]
    owners = [body for body in assumed if body["kind"] in kind_names() and not _controlled(body)]
    if not owners:
        raise BadFileError("file", "has no TrainJob, JobSet or Job")
    notes: list[str] = []
    namespaces = {body["metadata"]["name"]: body for body in assumed if body["kind"] == "Namespace"}
    for name in sorted({owner["metadata"]["namespace"] for owner in owners} - set(namespaces)):
        notes.append(f"namespace {name} is not in the file: assumed to have {NAMESPACE_SWITCH}=enabled")
        namespaces[name] = _namespace(name)
        assumed.append(namespaces[name])
    jobsets = {body["metadata"]["name"] for body in assumed if body["kind"] == "JobSet"}
    for owner in owners:
        if owner["kind"] == "TrainJob" and owner["metadata"]["name"] not in jobsets:
            assumed += _made_by_trainer(owner, assumed, notes)
        if owner["kind"] == "Job":
            _label_pod_template(owner, namespaces[owner["metadata"]["namespace"]])
    return AssumedObjects(assumed, owners, tuple(notes))


def _stored(body: Object) -> Object:
    metadata = body["metadata"]
    metadata.setdefault("uid", UID)
    metadata.setdefault("resourceVersion", "1")
    if body["kind"] not in {"Namespace", "ClusterTrainingRuntime"}:
        metadata.setdefault("namespace", DEFAULT_NAMESPACE)
    return with_defaults(body) if body["kind"] == "JobSet" else body


def _controlled(body: Object) -> bool:
    return any(owner.get("controller") for owner in body["metadata"].get("ownerReferences") or [])


def _namespace(name: str) -> Object:
    labels = {NAMESPACE_SWITCH: "enabled"}
    metadata = {"name": name, "uid": UID, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _label_pod_template(job: Object, namespace: Object) -> None:
    """Add the group label to a Job's pod template, as the admission policy mark-jobs does."""
    try:
        stored = admitted(job, namespace["metadata"].get("labels") or {})
    except ApiError as error:
        raise BadFileError(f"Job {job['metadata']['name']}", error.message) from None
    group = (stored["spec"]["template"].get("metadata") or {}).get("labels", {}).get(GROUP)
    if group is not None:
        template = job["spec"]["template"]
        metadata = template["metadata"] = template.get("metadata") or {}
        metadata["labels"] = {**(metadata.get("labels") or {}), GROUP: group}


def _made_by_trainer(trainjob: Object, objects: Objects, notes: list[str]) -> Objects:
    """Return the JobSet of a TrainJob, and its runtime if the file has none."""
    ref = trainjob["spec"]["runtimeRef"]
    kind, name = ref.get("kind", "ClusterTrainingRuntime"), ref["name"]
    runtimes = [body for body in objects if body["kind"] == kind and body["metadata"]["name"] == name]
    added: Objects = []
    if not runtimes:
        try:
            runtimes = added = [_stored(shipped_runtime(name))]
        except FileNotFoundError:
            raise BadFileError(
                f"TrainJob {trainjob['metadata']['name']}",
                f"{kind} {name} is neither in the file nor shipped by the Trainer",
            ) from None
        notes.append(f"runtime {name} is assumed as shipped by Trainer 2.3.0")
    runtime = typed_runtime(_marked(runtimes[0], notes))
    try:
        jobset = build_jobset(trainjob, copy.deepcopy(runtime["spec"]))
    except UnknownNumNodes:
        raise BadFileError(
            f"TrainJob {trainjob['metadata']['name']}", "Flux needs spec.trainer.numNodes"
        ) from None
    return [*added, _stored(jobset)]


def _marked(runtime: Object, notes: list[str]) -> Object:
    """Return a runtime with the group labels that mark_runtime writes before a TrainJob uses it."""
    named = f"{runtime['kind']} {runtime['metadata']['name']}"
    policy = runtime["spec"].get("podGroupPolicy") or {}
    patched = sorted({"workload", "kaiScheduler"} & set(policy))
    if patched:
        field = f"spec.podGroupPolicy.{patched[0]}"
        notes.append(f"{named}: {field} is assumed to be kept, by CRDs patched with runtime-policy-crd")
    view = KubernetesObject.read(runtime)
    decision = plan_runtime(RuntimeInputs(view.ref, runtime), _ANY_TIME)
    updates = (action.body for action in decision.actions) if isinstance(decision, Plan) else ()
    marked = next((dict(body) for body in updates if body and body["kind"] == runtime["kind"]), None)
    if marked is None:
        return runtime
    notes.append(f"{named} is assumed to have the group labels of its policy before the TrainJob is created")
    return marked
