"""The objects of a file as they would be in a cluster, as far as grouping depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from muster.cluster.observe.snapshot import Snapshot
from muster.objects.meta import ref_of
from muster.objects.resources import is_known
from muster.objects.text import counted
from muster.policy.group_labels import NAMESPACE_SWITCH
from muster.policy.model import Plan, Verb
from muster.policy.owners import owner_kind
from muster.policy.plans.mark_runtime import RuntimeInputs, plan_runtime
from muster.replay.files import BadFileError
from muster.replay.snapshots import Object, Objects
from muster.simulator.admitted import marked
from muster.simulator.controllers import shipped_runtime
from muster.simulator.controllers.jobset import with_defaults
from muster.simulator.controllers.trainer import UnknownNumNodes, build_jobset, typed_runtime
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
}
"""The path that an object of a kind must have; `[]` stands for each entry of a list."""


class UnknownRuntimeError(BadFileError):
    """A TrainJob names a runtime that is not known."""


class DryRunCluster(Snapshot):
    """A cluster of objects from files to which the creations of a plan can be applied."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._objects = objects

    def after(self, plan: Plan) -> DryRunCluster:
        """Return the cluster with the objects that a plan creates."""
        created = [
            {**action.body, "metadata": {**action.body["metadata"], "uid": UID, "resourceVersion": "1"}}
            for action in plan.actions
            if action.verb == Verb.CREATE and action.body is not None
        ]
        return DryRunCluster([*self._objects, *created])


@dataclass
class AssumedObjects:
    """The objects of a file as they would be in a cluster.

    Attributes:
        owners: TrainJobs, JobSets and Jobs without a controller, and a TrainJob for each unused runtime.
        examples: the runtime or CronJob of each assumed TrainJob or Job, by the `id` of the latter.
        notes: what had to be assumed, as text.
        faults: the objects that cannot be used, as they were given, and why; they are left out.
    """

    objects: Objects = field(default_factory=list)
    owners: Objects = field(default_factory=list)
    examples: dict[int, Object] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[tuple[Object, BadFileError]] = field(default_factory=list)


def assume_cluster(objects: Objects, namespace: str = DEFAULT_NAMESPACE) -> AssumedObjects:
    """Add what a cluster adds to objects: namespaces, UIDs, the JobSets of TrainJobs, group labels."""
    assumed = AssumedObjects()
    for given in objects:
        if is_known(given["apiVersion"], given["kind"]) or is_cron_job(given):
            body = _set_fields(given)
            try:
                if is_cron_job(given):
                    body = _job_of(body, namespace)
                    assumed.examples[id(body)] = given
                assumed.objects.append(_stored(body, namespace))
            except BadFileError as error:
                assumed.faults.append((body, error))
    assumed.owners = [body for body in assumed.objects if _is_root_owner(body)]
    for runtime in _unused_runtimes(assumed.objects):
        example = _example_of(runtime, namespace, assumed.notes)
        assumed.objects.append(example)
        assumed.owners.append(example)
        assumed.examples[id(example)] = runtime
    _add_what_owners_get(assumed, namespace)
    return assumed


def is_cron_job(body: Mapping[str, Any]) -> bool:
    """Whether an object is a CronJob, whose Jobs are examined in its place."""
    return bool(body["kind"] == "CronJob" and body["apiVersion"].startswith("batch/"))


def _job_of(cron_job: Object, namespace: str) -> Object:
    """Return the Job that a CronJob creates; mark-jobs leaves it alone, because it has a controller."""
    name = cron_job["metadata"]["name"]
    if path := _missing(cron_job, ["spec", "jobTemplate", "spec"]):
        raise BadFileError(f"CronJob {name}: {path}", "is missing")
    template = cron_job["spec"]["jobTemplate"]
    own = template.get("metadata")
    metadata = {**(own if isinstance(own, dict) else {}), "name": f"{name}-00000000"}
    metadata["namespace"] = cron_job["metadata"].get("namespace") or namespace
    controller = {"apiVersion": cron_job["apiVersion"], "kind": "CronJob", "name": name, "uid": UID}
    metadata["ownerReferences"] = [{**controller, "controller": True}]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}


def _set_fields(value: Any) -> Any:
    """Return a copy without the fields that are null, which count as unset."""
    if isinstance(value, dict):
        return {name: _set_fields(entry) for name, entry in value.items() if entry is not None}
    return [_set_fields(entry) for entry in value] if isinstance(value, list) else value


def _stored(body: Object, namespace: str) -> Object:
    """Return an applied object with what the API server adds.

    Raises:
        BadFileError: a field that grouping needs is missing or has another type, or a name is there twice.
    """
    path, message = type_fault(body) or (_missing(body, _REQUIRED.get(body["kind"], [])), "is missing")
    named = f"{body['kind']} {body['metadata']['name']}"
    if path:
        raise BadFileError(f"{named}: {path}", message)
    names = [job["name"] for job in body["spec"]["replicatedJobs"]] if body["kind"] == "JobSet" else []
    if len(names) > len(set(names)):
        raise BadFileError(f"{named}: spec.replicatedJobs", "two have the same name")
    added = {"uid": UID, "resourceVersion": "1"}
    if body["kind"] not in _CLUSTER_SCOPED:
        added["namespace"] = namespace
    body["metadata"] = added | body["metadata"]
    return with_defaults(body) if body["kind"] == "JobSet" else body


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


def _is_root_owner(body: Object) -> bool:
    controllers = [one for one in body["metadata"].get("ownerReferences") or [] if one.get("controller")]
    return _is_owner(body) and not any(map(_is_owner, controllers))


def _is_owner(named: Object) -> bool:
    """Whether the kind of an object, or in a reference, is that of an owner."""
    return owner_kind(str(named.get("apiVersion")).rpartition("/")[0], str(named.get("kind"))) is not None


def _unused_runtimes(objects: Objects) -> Objects:
    """Return the runtimes that no TrainJob uses."""
    refs = [body["spec"]["runtimeRef"] for body in objects if body["kind"] == "TrainJob"]
    used = {(ref.get("kind", RUNTIMES[0]), ref["name"]) for ref in refs}
    return [
        body
        for body in objects
        if body["kind"] in RUNTIMES and (body["kind"], body["metadata"]["name"]) not in used
    ]


def _example_of(runtime: Object, namespace: str, notes: list[str]) -> Object:
    """Return a TrainJob of a runtime, with the runtime's number of nodes."""
    kind, metadata = runtime["kind"], runtime["metadata"]
    nodes = (runtime["spec"].get("mlPolicy") or {}).get("numNodes") or _EXAMPLE_NODES
    notes.append(f"{kind} {metadata['name']}: a TrainJob {EXAMPLE} of {counted(nodes, 'node')} is assumed")
    trainjob = {
        "apiVersion": runtime["apiVersion"],
        "kind": "TrainJob",
        "metadata": {"name": EXAMPLE, "namespace": metadata.get("namespace", namespace)},
        "spec": {
            "runtimeRef": {"kind": kind, "name": metadata["name"]},
            "trainer": {"numNodes": nodes},
        },
    }
    return _stored(trainjob, namespace)


def _add_what_owners_get(assumed: AssumedObjects, namespace: str) -> None:
    """Add namespaces, the JobSets of TrainJobs, and the group labels of Jobs and JobSets."""
    namespaces = {body["metadata"]["name"]: body for body in assumed.objects if body["kind"] == "Namespace"}
    for name in sorted({owner["metadata"]["namespace"] for owner in assumed.owners} - set(namespaces)):
        assumed.notes.append(
            f"namespace {name} is not in the file: assumed to have {NAMESPACE_SWITCH}=enabled"
        )
        metadata = {"name": name, "uid": UID, "labels": {NAMESPACE_SWITCH: "enabled"}}
        namespaces[name] = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        assumed.objects.append(namespaces[name])
    jobsets = {_place(body) for body in assumed.objects if body["kind"] == "JobSet"}
    for owner in list(assumed.owners):
        try:
            made = owner
            if owner["kind"] == "TrainJob" and _place(owner) not in jobsets:
                made = _made_by_trainer(owner, assumed, namespace)
                assumed.objects.append(made)
            if made["kind"] != "TrainJob":
                of_namespace = namespaces[owner["metadata"]["namespace"]]["metadata"].get("labels") or {}
                made["spec"] = marked(made, of_namespace)["spec"]  # as the admission policies do
        except BadFileError as error:
            assumed.faults.append((owner, error))
            assumed.owners.remove(owner)


def _place(body: Object) -> tuple[str, str]:
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


def _made_by_trainer(trainjob: Object, assumed: AssumedObjects, namespace: str) -> Object:
    """Return the JobSet of a TrainJob; a runtime that is not in the file is added to the objects."""
    metadata, ref = trainjob["metadata"], trainjob["spec"]["runtimeRef"]
    kind, name = ref.get("kind", RUNTIMES[0]), ref["name"]
    place = metadata["namespace"] if kind == RUNTIMES[1] else ""
    found = [body for body in assumed.objects if body["kind"] == kind and _place(body) == (place, name)]
    if not found:
        found = [_shipped(f"TrainJob {metadata['name']}", kind, name, namespace)]
        assumed.objects += found
        assumed.notes.append(f"runtime {name} is assumed as shipped by Trainer 2.3.0")
    runtime = _marked(found[0], assumed.notes)
    try:
        return _stored(build_jobset(trainjob, typed_runtime(runtime)["spec"]), namespace)
    except UnknownNumNodes:
        raise BadFileError(f"TrainJob {metadata['name']}", "Flux needs spec.trainer.numNodes") from None


def _shipped(trainjob: str, kind: str, name: str, namespace: str) -> Object:
    try:
        return _stored(shipped_runtime(name), namespace)
    except LookupError:
        message = f"{kind} {name} is neither in the file nor shipped by the Trainer"
        raise UnknownRuntimeError(trainjob, message) from None


def _marked(runtime: Object, notes: list[str]) -> Object:
    """Return a runtime with the group labels that mark_runtime writes before a TrainJob uses it."""
    named = f"{runtime['kind']} {runtime['metadata']['name']}"
    policy = runtime["spec"].get("podGroupPolicy") or {}
    for patched in sorted({"workload", "kaiScheduler"} & set(policy))[:1]:
        field_path = f"spec.podGroupPolicy.{patched}"
        notes += [f"{named}: {field_path} is assumed to be kept, by CRDs patched with runtime-policy-crd"]
    decision = plan_runtime(RuntimeInputs(ref_of(runtime), runtime), _ANY_TIME)
    for action in decision.actions if isinstance(decision, Plan) else ():
        if action.body and action.body["kind"] == runtime["kind"]:
            notes.append(
                f"{named} is assumed to have the group labels of its policy before the TrainJob exists"
            )
            return dict(action.body)
    return runtime
