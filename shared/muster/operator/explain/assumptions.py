"""Complete the objects of a file to what they would be in a cluster, as far as grouping depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from muster.cluster.errors import ApiGone
from muster.cluster.interface import Cluster
from muster.objects.meta import KubernetesObject
from muster.objects.resources import NAMESPACES, by_kind, is_known
from muster.operator.explain.dry_run import UID
from muster.operator.explain.shape import check_shape
from muster.policy.group_labels import GROUP, NAMESPACE_SWITCH
from muster.policy.model import Plan
from muster.policy.owners import owner_kind
from muster.policy.plans.mark_runtime import RuntimeInputs, plan_runtime
from muster.policy.sources.source import CONFIG_MAP
from muster.replay.files import BadFileError
from muster.replay.snapshots import Object, Objects
from muster.runtime.http.responses import first_fault
from muster.simulator.admitted import admitted
from muster.simulator.apiserver.objects import copied
from muster.simulator.apiserver.status import ApiError
from muster.simulator.controllers import shipped_runtime
from muster.simulator.controllers.jobset.jobs import with_defaults
from muster.simulator.controllers.trainer.controller import typed_runtime
from muster.simulator.controllers.trainer.jobset import UnknownNumNodes, build_jobset

DEFAULT_NAMESPACE = "default"
EXAMPLE = "example"
"""The name of the TrainJob that is assumed of a runtime alone."""

RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
_EXAMPLE_NODES = 2
_CLUSTER_SCOPED = {"Namespace", "ClusterTrainingRuntime"}
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""The time in an Event that is not shown."""


class UnknownRuntimeError(BadFileError):
    """A TrainJob names a runtime that is not known."""


_RuntimeKey = tuple[str, str, str]
"""Kind, namespace ("" for a ClusterTrainingRuntime) and name."""


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
    objects: Objects,
    below: Cluster | None = None,
    namespace: str = DEFAULT_NAMESPACE,
    progress: Callable[[str], object] = lambda _step: None,
) -> AssumedObjects:
    """Add what a cluster adds to applied objects: namespaces, UIDs, the JobSets of TrainJobs, group labels.

    Args:
        objects: as they would be applied.
        below: the cluster into which they would be applied; None for an empty one.
        namespace: of objects without one.
        progress: called with each step before it: `object 7 of 90`, `job 7 of 90`.

    Raises:
        ClusterError: the cluster below does not answer.
    """
    assumer = _Assumer(below, namespace)
    assumed = AssumedObjects([])
    known = [body for body in objects if is_known(body["apiVersion"], body["kind"])]
    for number, given in enumerate(known, start=1):
        progress(f"object {number} of {len(known)}")
        body = _copied_without_nulls(given)
        try:
            assumed.objects.append(assumer.stored(body))
        except BadFileError as error:
            assumed.faults.append((body, error))
    assumed.owners = [body for body in assumed.objects if _is_root_owner(body)]
    assumed.others = _explained_alone(assumed.objects, bool(assumed.owners))
    for runtime in [body for body in assumed.others if body["kind"] in RUNTIMES]:
        example = assumer.example_of(runtime, assumed.notes)
        assumed.objects.append(example)
        assumed.owners.append(example)
        assumed.examples[id(example)] = runtime
    assumer.add_what_owners_get(assumed, progress)
    return assumed


def _copied_without_nulls(body: Object) -> Object:
    """Return a copy of an object without the fields of its spec that are null, which count as unset."""
    if not isinstance(body.get("spec"), dict):
        return dict(copied(body))
    return {**copied({**body, "spec": None}), "spec": _set_fields(body["spec"])}


def _place(body: Object) -> tuple[str, str]:
    return body["metadata"]["namespace"], body["metadata"]["name"]


def _runtime_key(runtime: Object) -> _RuntimeKey:
    metadata = runtime["metadata"]
    return runtime["kind"], metadata.get("namespace", ""), metadata["name"]


def _set_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _set_fields(entry) for name, entry in value.items() if entry is not None}
    return [_set_fields(entry) for entry in value] if isinstance(value, list) else value


def _is_root_owner(body: Object) -> bool:
    references = body["metadata"].get("ownerReferences") or []
    group = body["apiVersion"].rpartition("/")[0]
    return owner_kind(group, body["kind"]) is not None and not any(
        reference.get("controller") for reference in references
    )


def _explained_alone(objects: Objects, beside_owners: bool) -> Objects:
    """Return the objects that are explained by themselves.

    These are the runtimes that no TrainJob uses, and without any owner also pods, groups and policies.
    """
    used = {
        (body["spec"]["runtimeRef"].get("kind", RUNTIMES[0]), body["spec"]["runtimeRef"]["name"])
        for body in objects
        if body["kind"] == "TrainJob"
    }
    alone = [
        body
        for body in objects
        if body["kind"] in RUNTIMES and (body["kind"], body["metadata"]["name"]) not in used
    ]
    if not beside_owners:
        alone += [body for body in objects if body["kind"] in {"Pod", "PodGroup", "Workload"}]
        alone += [
            body for body in objects if body["kind"] == "ConfigMap" and body["metadata"]["name"] == CONFIG_MAP
        ]
    return alone


class _Assumer:
    """Knows the cluster into which the objects of a file would be applied."""

    def __init__(self, below: Cluster | None, namespace: str) -> None:
        self._below = below
        self._namespace = namespace

    def stored(self, body: Object) -> Object:
        """Return an applied object with what the API server adds: of one that exists its own UID."""
        check_shape(body)
        metadata = body["metadata"]
        if body["kind"] not in _CLUSTER_SCOPED:
            metadata.setdefault("namespace", self._namespace)
        live = self._live(body)
        metadata.setdefault("uid", (live or {}).get("metadata", {}).get("uid", UID))
        metadata.setdefault("resourceVersion", "1")
        return with_defaults(body) if body["kind"] == "JobSet" else body

    def example_of(self, runtime: Object, notes: list[str]) -> Object:
        """Return a TrainJob of a runtime, with the runtime's number of nodes."""
        metadata = runtime["metadata"]
        nodes = (runtime["spec"].get("mlPolicy") or {}).get("numNodes") or _EXAMPLE_NODES
        spec = {
            "runtimeRef": {"kind": runtime["kind"], "name": metadata["name"]},
            "trainer": {"numNodes": nodes},
        }
        notes.append(
            f"{runtime['kind']} {metadata['name']}: "
            f"a TrainJob {EXAMPLE} of {nodes} node{'' if nodes == 1 else 's'} is assumed"
        )
        return self.stored(
            {
                "apiVersion": runtime["apiVersion"],
                "kind": "TrainJob",
                "metadata": {"name": EXAMPLE, "namespace": metadata.get("namespace", self._namespace)},
                "spec": spec,
            }
        )

    def add_what_owners_get(self, assumed: AssumedObjects, progress: Callable[[str], object]) -> None:
        """Add namespaces, the JobSets of TrainJobs, and the group labels of Jobs."""
        namespaces = {
            body["metadata"]["name"]: body for body in assumed.objects if body["kind"] == "Namespace"
        }
        for name in sorted({owner["metadata"]["namespace"] for owner in assumed.owners} - set(namespaces)):
            namespaces[name] = self._assumed_namespace(name, assumed.notes)
            assumed.objects.append(namespaces[name])
        jobsets = {_place(body) for body in assumed.objects if body["kind"] == "JobSet"}
        runtimes = {_runtime_key(body): body for body in assumed.objects if body["kind"] in RUNTIMES}
        for number, owner in enumerate(list(assumed.owners), start=1):
            progress(f"job {number} of {len(assumed.owners)}")
            try:
                if owner["kind"] == "TrainJob" and _place(owner) not in jobsets:
                    assumed.objects += self._made_by_trainer(owner, runtimes, assumed.notes)
                if owner["kind"] == "Job":
                    _label_pod_template(owner, namespaces[owner["metadata"]["namespace"]])
            except BadFileError as error:
                assumed.faults.append((owner, error))
        faulty = {id(owner) for owner, _ in assumed.faults}
        assumed.owners = [owner for owner in assumed.owners if id(owner) not in faulty]

    def _live(self, body: Object) -> Object | None:
        """Return the object as it is in the cluster below, if it exists there."""
        if self._below is None:
            return None
        metadata = body["metadata"]
        try:
            resource = by_kind(body["apiVersion"], body["kind"])
            return self._below.get(resource, metadata["name"], metadata.get("namespace", ""))
        except (LookupError, ApiGone):
            return None

    def _assumed_namespace(self, name: str, notes: list[str]) -> Object:
        live = None if self._below is None else self._below.get(NAMESPACES, name)
        if live is not None:
            return live
        place = "the file" if self._below is None else "the cluster"
        notes.append(f"namespace {name} is not in {place}: assumed to have {NAMESPACE_SWITCH}=enabled")
        metadata = {"name": name, "uid": UID, "labels": {NAMESPACE_SWITCH: "enabled"}}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    def _made_by_trainer(
        self, trainjob: Object, runtimes: dict[_RuntimeKey, Object], notes: list[str]
    ) -> Objects:
        """Return the JobSet of a TrainJob, and its runtime if `runtimes` had none, which gets it."""
        metadata, ref = trainjob["metadata"], trainjob["spec"]["runtimeRef"]
        kind, name = ref.get("kind", RUNTIMES[0]), ref["name"]
        key = (kind, metadata["namespace"] if kind == RUNTIMES[1] else "", name)
        added: Objects = []
        if key not in runtimes:
            runtimes[key] = self._runtime(trainjob, kind, name, notes)
            added = [runtimes[key]]
        runtime = typed_runtime(_marked(runtimes[key], notes))
        try:
            jobset = build_jobset(trainjob, runtime["spec"])
        except UnknownNumNodes:
            raise BadFileError(f"TrainJob {metadata['name']}", "Flux needs spec.trainer.numNodes") from None
        return [*added, self.stored(jobset)]

    def _runtime(self, trainjob: Object, kind: str, name: str, notes: list[str]) -> Object:
        """Return a runtime of the cluster below, else one that the Trainer ships."""
        metadata = {"name": name}
        if kind == RUNTIMES[1]:
            metadata["namespace"] = trainjob["metadata"]["namespace"]
        live = self._live({"apiVersion": trainjob["apiVersion"], "kind": kind, "metadata": metadata})
        if live is not None:
            return live
        place = "in the file" if self._below is None else "in file or cluster"
        try:
            shipped = shipped_runtime(name)
        except LookupError:
            raise UnknownRuntimeError(
                f"TrainJob {trainjob['metadata']['name']}",
                f"{kind} {name} is neither {place} nor shipped by the Trainer",
            ) from None
        notes.append(f"runtime {name} is assumed as shipped by Trainer 2.3.0")
        return self.stored(shipped)


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


def _marked(runtime: Object, notes: list[str]) -> Object:
    """Return a runtime with the group labels that mark_runtime writes before a TrainJob uses it.

    Raises:
        BadFileError: a field of it has the wrong type.
    """
    named = f"{runtime['kind']} {runtime['metadata']['name']}"
    policy = runtime["spec"].get("podGroupPolicy") or {}
    patched = sorted({"workload", "kaiScheduler"} & set(policy))
    if patched:
        field_path = f"spec.podGroupPolicy.{patched[0]}"
        notes.append(f"{named}: {field_path} is assumed to be kept, by CRDs patched with runtime-policy-crd")
    try:
        view = KubernetesObject.read(runtime)
        decision = plan_runtime(RuntimeInputs(view.ref, runtime), _ANY_TIME)
    except ValidationError as error:
        path, message = first_fault(error)
        raise BadFileError(f"{named}: {path}", message) from None
    updates: Iterator[Object] = (
        dict(action.body)
        for action in (decision.actions if isinstance(decision, Plan) else ())
        if action.body
    )
    marked = next((body for body in updates if body["kind"] == runtime["kind"]), None)
    if marked is None:
        return runtime
    notes.append(f"{named} is assumed to have the group labels of its policy before the TrainJob is created")
    return marked
