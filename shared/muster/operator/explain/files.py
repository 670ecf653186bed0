"""The objects of a file as they would be in a cluster, as far as grouping depends on it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from muster.cluster.errors import ApiGone
from muster.cluster.interface import Cluster
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.meta import KubernetesObject
from muster.objects.resources import NAMESPACES, Resource, SchedulingApi, by_kind, is_known
from muster.policy.group_labels import GROUP, NAMESPACE_SWITCH
from muster.policy.model import Plan, Verb
from muster.policy.owners import owner_kind
from muster.policy.plans.mark_runtime import RuntimeInputs, plan_runtime
from muster.policy.sources.source import CONFIG_MAP
from muster.replay.files import BadFileError
from muster.replay.snapshots import Object, Objects
from muster.runtime.http.responses import first_fault
from muster.simulator.admitted import admitted
from muster.simulator.apiserver.status import ApiError
from muster.simulator.controllers import shipped_runtime
from muster.simulator.controllers.jobset.jobs import with_defaults
from muster.simulator.controllers.trainer.controller import typed_runtime
from muster.simulator.controllers.trainer.jobset import UnknownNumNodes, build_jobset
from muster.simulator.typed import type_fault

UID = "xxxxxxxx-0000-4000-8000-000000000000"
"""Placeholder for the UIDs that the API server will assign; names of groups end in its first 8 characters."""

DEFAULT_NAMESPACE = "default"
EXAMPLE = "example"
"""The name of the TrainJob that is assumed of a runtime alone."""

RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
_EXAMPLE_NODES = 2
_CLUSTER_SCOPED = {"Namespace", "ClusterTrainingRuntime"}
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""The time in an Event that is not shown."""

_REPLICATED_JOBS = ["replicatedJobs[]", "template", "spec", "template", "spec"]
_REQUIRED = {
    "Job": ["spec", "template", "spec"],
    "JobSet": ["spec", *_REPLICATED_JOBS],
    "TrainJob": ["spec", "runtimeRef", "name"],
    "TrainingRuntime": ["spec", "template", "spec", *_REPLICATED_JOBS],
    "ClusterTrainingRuntime": ["spec", "template", "spec", *_REPLICATED_JOBS],
    "Pod": ["spec"],
    "PodGroup": ["spec", "schedulingPolicy"],
    "Workload": ["spec"],
}
"""The path that an object of a kind must have; `[]` stands for each entry of a list."""


class UnknownRuntimeError(BadFileError):
    """A TrainJob names a runtime that is not known."""


class DryRunCluster(Snapshot):
    """A cluster of objects from files to which the creations of a plan can be applied.

    Args:
        objects: of the files.
        below: the cluster into which they would be applied; its objects count where the files have none of
            their name. None for an empty one.
    """

    def __init__(self, objects: Objects, below: Cluster | None = None) -> None:
        super().__init__(objects)
        self._below = below
        self._later = Snapshot([])
        self._created: Objects = []

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the object of that name, or None."""
        stored = self._later.get(resource, name, namespace) or super().get(resource, name, namespace)
        return stored or _get(self._below, resource, name, namespace)

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind that match the selectors."""
        own = super().list(resource, namespace, labels=labels, fields=fields, as_of=as_of)
        own += self._later.list(resource, namespace, labels=labels, fields=fields, as_of=as_of)
        try:
            below = self._below.list(resource, namespace, labels=labels, fields=fields) if self._below else []
        except ApiGone:
            below = []
        return own + [body for body in below if not self._replaces(resource, body["metadata"])]

    def scheduling(self) -> SchedulingApi:
        """Return the versions that the cluster below serves; without one, those of Kubernetes 1.37."""
        return super().scheduling() if self._below is None else self._below.scheduling()

    def after(self, plan: Plan) -> DryRunCluster:
        """Return the cluster with the objects that a plan creates; both share the objects of the files."""
        after = copy.copy(self)
        after._created = [  # noqa: SLF001 - of its own class
            *self._created,
            *(
                {**action.body, "metadata": {**action.body["metadata"], "uid": UID, "resourceVersion": "1"}}
                for action in plan.actions
                if action.verb == Verb.CREATE and action.body is not None
            ),
        ]
        after._later = Snapshot(after._created)  # noqa: SLF001 - likewise
        return after

    def _replaces(self, resource: Resource, metadata: Object) -> bool:
        """Whether the files have an object of this name."""
        return super().get(resource, metadata["name"], metadata.get("namespace", "")) is not None


def _get(below: Cluster | None, resource: Resource, name: str, namespace: str = "") -> Object | None:
    """Return an object of a cluster; None if there is no cluster or it does not serve the kind."""
    try:
        return None if below is None else below.get(resource, name, namespace)
    except ApiGone:
        return None


@dataclass
class AssumedObjects:
    """The objects of a file as they would be in a cluster.

    Attributes:
        objects: with what the API server and the Trainer add.
        owners: the TrainJobs, JobSets and Jobs among them that no other object controls, and a TrainJob for
            each runtime that none of them uses.
        others: pods, groups, Workloads, policies and runtimes, each without an owner among the objects.
        examples: the runtime of each assumed TrainJob, by the `id` of the TrainJob.
        notes: what had to be assumed, as text.
        faults: the objects that cannot be explained, as they were given, and why; they are left out.
    """

    objects: Objects
    owners: Objects = field(default_factory=list)
    others: Objects = field(default_factory=list)
    examples: dict[int, Object] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[tuple[Object, BadFileError]] = field(default_factory=list)


def assume_cluster(
    objects: Objects, below: Cluster | None = None, namespace: str = DEFAULT_NAMESPACE
) -> AssumedObjects:
    """Add what a cluster adds to applied objects: namespaces, UIDs, the JobSets of TrainJobs, group labels.

    Args:
        objects: as they would be applied.
        below: the cluster into which they would be applied; None for an empty one.
        namespace: of objects without one.

    Raises:
        ClusterError: the cluster below does not answer.
    """
    assumer = _Assumer(below, namespace)
    assumed = assumer.assumed
    for given in objects:
        if is_known(given["apiVersion"], given["kind"]):
            body = {**copy.deepcopy(given), "spec": _set_fields(given["spec"])} if "spec" in given else given
            body = {**body, "metadata": copy.deepcopy(given["metadata"])}
            try:
                assumed.objects.append(assumer.stored(body))
            except BadFileError as error:
                assumed.faults.append((body, error))
    assumed.owners = [body for body in assumed.objects if _is_root_owner(body)]
    assumed.others = _explained_alone(assumed.objects, bool(assumed.owners))
    for runtime in [body for body in assumed.others if body["kind"] in RUNTIMES]:
        example = assumer.example_of(runtime)
        assumed.objects.append(example)
        assumed.owners.append(example)
        assumed.examples[id(example)] = runtime
    assumer.add_what_owners_get()
    return assumed


def _set_fields(value: Any) -> Any:
    """Return a copy without the fields that are null, which count as unset."""
    if isinstance(value, dict):
        return {name: _set_fields(entry) for name, entry in value.items() if entry is not None}
    return [_set_fields(entry) for entry in value] if isinstance(value, list) else value


def _check_shape(body: Object) -> None:
    """Check that an object has the fields that an explanation reads, each in its type.

    Raises:
        BadFileError: a field is missing or has another type; with the object and the path.
    """
    path, message = type_fault(body) or (_missing(body, _REQUIRED.get(body["kind"], [])), "is missing")
    if path:
        raise BadFileError(f"{body['kind']} {body['metadata']['name']}: {path}", message)


def _missing(value: Any, names: list[str]) -> str:
    """Return the path of the first field that is missing below a value; "" if there is none."""
    if not names:
        return ""
    key, is_list, _ = names[0].partition("[]")
    inner = value.get(key) if isinstance(value, dict) else None
    if inner is None:
        return key
    entries = {f"{key}[{number}]": entry for number, entry in enumerate(inner)} if is_list else {key: inner}
    for path, entry in entries.items():
        if below := _missing(entry, names[1:]):
            return f"{path}.{below}"
    return ""


def _place(body: Object) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]


def _is_root_owner(body: Object) -> bool:
    references = body["metadata"].get("ownerReferences") or []
    group = body["apiVersion"].rpartition("/")[0]
    return owner_kind(group, body["kind"]) is not None and not any(
        reference.get("controller") for reference in references
    )


def _explained_alone(objects: Objects, beside_owners: bool) -> Objects:
    """Return runtimes that no TrainJob uses, and without any owner also pods, groups and policies."""
    refs = [body["spec"]["runtimeRef"] for body in objects if body["kind"] == "TrainJob"]
    used = {(ref.get("kind", RUNTIMES[0]), ref["name"]) for ref in refs}
    kinds = set() if beside_owners else {"Pod", "PodGroup", "Workload"}
    return [
        body
        for body in objects
        if (body["kind"] in RUNTIMES and (body["kind"], body["metadata"]["name"]) not in used)
        or body["kind"] in kinds
        or (not beside_owners and body["kind"] == "ConfigMap" and body["metadata"]["name"] == CONFIG_MAP)
    ]


class _Assumer:
    """Knows the cluster into which the objects of a file would be applied."""

    def __init__(self, below: Cluster | None, namespace: str) -> None:
        self._below = below
        self._namespace = namespace
        self.assumed = AssumedObjects([])

    def stored(self, body: Object) -> Object:
        """Return an applied object with what the API server adds: of one that exists its own UID."""
        _check_shape(body)
        metadata = body["metadata"]
        if body["kind"] not in _CLUSTER_SCOPED:
            metadata.setdefault("namespace", self._namespace)
        live = self._live(body)
        metadata.setdefault("uid", (live or {}).get("metadata", {}).get("uid", UID))
        metadata.setdefault("resourceVersion", "1")
        return with_defaults(body) if body["kind"] == "JobSet" else body

    def example_of(self, runtime: Object) -> Object:
        """Return a TrainJob of a runtime, with the runtime's number of nodes."""
        metadata = runtime["metadata"]
        nodes = (runtime["spec"].get("mlPolicy") or {}).get("numNodes") or _EXAMPLE_NODES
        self.assumed.notes.append(
            f"{runtime['kind']} {metadata['name']}: "
            f"a TrainJob {EXAMPLE} of {nodes} node{'' if nodes == 1 else 's'} is assumed"
        )
        return self.stored(
            {
                "apiVersion": runtime["apiVersion"],
                "kind": "TrainJob",
                "metadata": {"name": EXAMPLE, "namespace": metadata.get("namespace", self._namespace)},
                "spec": {
                    "runtimeRef": {"kind": runtime["kind"], "name": metadata["name"]},
                    "trainer": {"numNodes": nodes},
                },
            }
        )

    def add_what_owners_get(self) -> None:
        """Add namespaces, the JobSets of TrainJobs, and the group labels of Jobs."""
        assumed = self.assumed
        namespaces = {
            body["metadata"]["name"]: body for body in assumed.objects if body["kind"] == "Namespace"
        }
        for name in sorted({owner["metadata"]["namespace"] for owner in assumed.owners} - set(namespaces)):
            namespaces[name] = self._assumed_namespace(name)
            assumed.objects.append(namespaces[name])
        jobsets = {_place(body) for body in assumed.objects if body["kind"] == "JobSet"}
        for owner in list(assumed.owners):
            try:
                if owner["kind"] == "TrainJob" and _place(owner) not in jobsets:
                    assumed.objects.append(self._made_by_trainer(owner))
                if owner["kind"] == "Job":
                    _label_pod_template(owner, namespaces[owner["metadata"]["namespace"]])
            except BadFileError as error:
                assumed.faults.append((owner, error))
                assumed.owners.remove(owner)

    def _live(self, body: Object) -> Object | None:
        """Return the object as it is in the cluster below, if it exists there."""
        metadata = body["metadata"]
        resource = by_kind(body["apiVersion"], body["kind"])
        return _get(self._below, resource, metadata["name"], metadata.get("namespace", ""))

    def _assumed_namespace(self, name: str) -> Object:
        live = _get(self._below, NAMESPACES, name)
        if live is not None:
            return live
        place = "the file" if self._below is None else "the cluster"
        self.assumed.notes.append(
            f"namespace {name} is not in {place}: assumed to have {NAMESPACE_SWITCH}=enabled"
        )
        metadata = {"name": name, "uid": UID, "labels": {NAMESPACE_SWITCH: "enabled"}}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    def _made_by_trainer(self, trainjob: Object) -> Object:
        """Return the JobSet of a TrainJob; a runtime that is not in the file is added to the objects."""
        metadata, ref = trainjob["metadata"], trainjob["spec"]["runtimeRef"]
        kind, name = ref.get("kind", RUNTIMES[0]), ref["name"]
        place = metadata["namespace"] if kind == RUNTIMES[1] else ""
        runtime = next(
            (
                body
                for body in self.assumed.objects
                if (body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"])
                == (kind, place, name)
            ),
            None,
        )
        if runtime is None:
            runtime = self._runtime(trainjob, kind, name)
            self.assumed.objects.append(runtime)
        try:
            return self.stored(build_jobset(trainjob, typed_runtime(self._marked(runtime))["spec"]))
        except UnknownNumNodes:
            raise BadFileError(f"TrainJob {metadata['name']}", "Flux needs spec.trainer.numNodes") from None

    def _runtime(self, trainjob: Object, kind: str, name: str) -> Object:
        """Return a runtime of the cluster below, else one that the Trainer ships."""
        metadata = {"name": name}
        if kind == RUNTIMES[1]:
            metadata["namespace"] = trainjob["metadata"]["namespace"]
        try:
            live = self._live({"apiVersion": trainjob["apiVersion"], "kind": kind, "metadata": metadata})
            shipped = live or self.stored(shipped_runtime(name))
        except LookupError:
            place = "in the file" if self._below is None else "in file or cluster"
            raise UnknownRuntimeError(
                f"TrainJob {trainjob['metadata']['name']}",
                f"{kind} {name} is neither {place} nor shipped by the Trainer",
            ) from None
        if live is None:
            self.assumed.notes.append(f"runtime {name} is assumed as shipped by Trainer 2.3.0")
        return shipped

    def _marked(self, runtime: Object) -> Object:
        """Return a runtime with the group labels that mark_runtime writes before a TrainJob uses it.

        Raises:
            BadFileError: a field of it has the wrong type.
        """
        named = f"{runtime['kind']} {runtime['metadata']['name']}"
        policy = runtime["spec"].get("podGroupPolicy") or {}
        for patched in sorted({"workload", "kaiScheduler"} & set(policy))[:1]:
            self.assumed.notes.append(
                f"{named}: spec.podGroupPolicy.{patched} is assumed to be kept, by CRDs patched with "
                "runtime-policy-crd"
            )
        try:
            view = KubernetesObject.read(runtime)
            decision = plan_runtime(RuntimeInputs(view.ref, runtime), _ANY_TIME)
        except ValidationError as error:
            path, message = first_fault(error)
            raise BadFileError(f"{named}: {path}", message) from None
        for action in decision.actions if isinstance(decision, Plan) else ():
            if action.body and action.body["kind"] == runtime["kind"]:
                self.assumed.notes.append(
                    f"{named} is assumed to have the group labels of its policy before the TrainJob exists"
                )
                return dict(action.body)
        return runtime


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
