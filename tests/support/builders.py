"""Builders of Kubernetes objects as an API server stores them, and of `Observed`, the input of every plan.

Every builder takes modifiers: functions that change the object in place, such as `named("x")` or `bound`. By
default the owner is `llama`, labelled, in the enabled namespace `team-a`; a test states only what differs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.pods import Namespace, Pod
from muster.objects.scheduling import PodGroup, Workload
from muster.policy import group_labels
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.policy.owners.trainjob import TrainJob
from muster.simulator.admitted import marked
from tests.support.births import ENABLED, pod_at_birth
from tests.support.planning import Observed

Object = dict[str, Any]
Modifier = Callable[[Object], None]
V = TypeVar("V", bound=KubernetesObject)

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
NAMESPACE = "team-a"
TRAINJOB_UID = "11111111-5d0b-4a52-9a3e-0c6a1f0f2b11"
JOBSET_UID = "22222222-5d0b-4a52-9a3e-0c6a1f0f2b11"
JOB_UID = "33333333-5d0b-4a52-9a3e-0c6a1f0f2b11"
WORKLOAD_UID = "44444444-5d0b-4a52-9a3e-0c6a1f0f2b11"


def an_object(api_version: str, kind: str, name: str, uid: str, *modifiers: Modifier) -> Object:
    """Return an object in namespace `team-a` with resourceVersion 7."""
    body: Object = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": uid, "resourceVersion": "7"},
    }
    return _modified(body, modifiers)


def a_namespace(*modifiers: Modifier, enabled: bool = True) -> Object:
    """Return the namespace `team-a`; `enabled` sets the label by which a namespace opts in."""
    body = an_object("v1", "Namespace", NAMESPACE, "namespace-uid")
    del body["metadata"]["namespace"]
    if enabled:
        body["metadata"]["labels"] = {group_labels.NAMESPACE_SWITCH: "enabled"}
    return _modified(body, modifiers)


def a_job(*modifiers: Modifier, pods: int = 2, label: str | None = "main") -> Object:
    """Return the Indexed Job `llama` of two pods, labelled `main` as the policy mark-jobs labels it."""
    return an_object("batch/v1", "Job", "llama", JOB_UID, with_spec(**_indexed(pods, label)), *modifiers)


def _indexed(pods: int, label: str | None) -> Object:
    labels = {group_labels.GROUP: label} if label else {}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "node"}]}}
    return {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template}


def a_replicated_job(
    name: str = "workers",
    *modifiers: Modifier,
    pods: int = 2,
    replicas: int = 1,
    label: str | None = None,
    step: str = "",
    after: tuple[str, ...] = (),
) -> Object:
    """Return a replicatedJob; `step` is its Trainer step, those in `after` must be Complete first."""
    template: Object = {
        "metadata": {"labels": {group_labels.ANCESTOR: step} if step else {}},
        "spec": _indexed(pods, label),
    }
    entry: Object = {"name": name, "replicas": replicas, "groupName": "default"}
    entry["template"] = _modified(template, modifiers)
    if after:
        entry["dependsOn"] = [{"name": other, "status": "Complete"} for other in after]
    return entry


def a_jobset(*entries: Object, modifiers: Iterable[Modifier] = (), enabled: bool = True) -> Object:
    """Return the JobSet `llama` of these replicatedJobs, by default two workers, as created if enabled."""
    spec = {"replicatedJobs": list(entries or [a_replicated_job()]), "network": {"enableDNSHostnames": True}}
    made = an_object("jobset.x-k8s.io/v1alpha2", "JobSet", "llama", JOBSET_UID, with_spec(**spec), *modifiers)
    return marked(made, ENABLED) if enabled else made


def a_trainjob(*modifiers: Modifier) -> Object:
    """Return the TrainJob `llama`, which uses the runtime torch-distributed."""
    spec = with_spec(runtimeRef={"name": "torch-distributed", "kind": "ClusterTrainingRuntime"})
    return an_object("trainer.kubeflow.org/v1alpha1", "TrainJob", "llama", TRAINJOB_UID, spec, *modifiers)


def a_jobset_of_trainjob(
    *entries: Object, modifiers: Iterable[Modifier] = (), enabled: bool = True
) -> Object:
    """Return the JobSet that the Trainer creates for `a_trainjob()`; by default one `node` of two pods."""
    replicated_jobs = entries or (a_replicated_job("node", step="trainer"),)
    return a_jobset(*replicated_jobs, modifiers=(owned_by(a_trainjob()), *modifiers), enabled=enabled)


def a_child_job(jobset: Object, entry: str, index: int, *modifiers: Modifier) -> Object:
    """Return the Job that JobSet creates from an entry."""
    replicated_job = next(job for job in jobset["spec"]["replicatedJobs"] if job["name"] == entry)
    template = copy.deepcopy(replicated_job["template"])
    keys = {
        group_labels.JOBSET_NAME: jobset["metadata"]["name"],
        group_labels.JOBSET_UID: jobset["metadata"]["uid"],
        group_labels.REPLICATED_JOB: entry,
        group_labels.JOB_INDEX: str(index),
    }
    template["spec"]["template"]["metadata"].setdefault("labels", {}).update(keys)
    name = f"{jobset['metadata']['name']}-{entry}-{index}"
    job = an_object("batch/v1", "Job", name, f"{name}-uid", owned_by(jobset), with_spec(**template["spec"]))
    metadata = template["metadata"]
    job["metadata"]["labels"] = {**(metadata.get("labels") or {}), **keys}
    job["metadata"]["annotations"] = dict(metadata.get("annotations") or {})
    return _modified(job, modifiers)


def pods_of(job: Object, *modifiers: Modifier) -> list[Object]:
    """Return the pods that the Job controller creates at once, stamped and gated as stamp-pods does."""
    counts = [job["spec"].get(field) for field in ("parallelism", "completions")]
    count = min((number for number in counts if number is not None), default=1)
    return [a_pod(job, index, *modifiers) for index in range(count)]


def a_pod(job: Object | None = None, index: int = 0, *modifiers: Modifier) -> Object:
    """Return a pending pod of a Job, by default of `a_job()`, stamped and gated as stamp-pods does."""
    job = job or a_job()
    template = copy.deepcopy(job["spec"]["template"])
    name = f"{job['metadata']['name']}-{index}"
    pod = an_object("v1", "Pod", name, f"{name}-uid", owned_by(job), with_spec(**template["spec"]))
    labels = {
        **(template["metadata"].get("labels") or {}),
        group_labels.JOB_NAME: job["metadata"]["name"],
        group_labels.JOB_UID: job["metadata"]["uid"],
    }
    if job["spec"].get("completionMode") == "Indexed":
        labels[group_labels.COMPLETION_INDEX] = str(index)
    pod["metadata"] |= {"labels": labels, "annotations": template["metadata"].get("annotations") or {}}
    pod["status"] = {"phase": "Pending"}
    return _modified(pod_at_birth(pod), modifiers)


def a_workload(*templates: Object, root: Object | None = None, modifiers: Iterable[Modifier] = ()) -> Object:
    """Return the Workload that Muster creates for an owner; by default a gang `main` of two for `a_job()`."""
    root = root or a_job()
    metadata = root["metadata"]
    name = "llama-86f65b7bb7" if root["kind"] == "Job" else metadata["name"]
    group = root["apiVersion"].rpartition("/")[0]
    spec = {
        "controllerRef": {"apiGroup": group, "kind": root["kind"], "name": metadata["name"]},
        "podGroupTemplates": list(templates or [a_gang("main", 2)]),
    }
    ours = (labelled(OURS | {"muster.dev/owner-uid": metadata["uid"]}), owned_by(root))
    return an_object(
        "scheduling.k8s.io/v1beta1", "Workload", name, WORKLOAD_UID, with_spec(**spec), *ours, *modifiers
    )


OURS = {"app.kubernetes.io/managed-by": "muster"}


def a_users_workload(*templates: Object, root: Object | None = None, name: str = "mine") -> Object:
    """Return a Workload that a user created for an owner: no labels, no owner reference."""
    body = a_workload(*templates, root=root, modifiers=(named(name),))
    del body["metadata"]["labels"], body["metadata"]["ownerReferences"]
    return body


def a_gang(name: str, min_count: int, **fields: Any) -> Object:
    """Return a PodGroupTemplate with the gang policy."""
    return {"name": name, "schedulingPolicy": {"gang": {"minCount": min_count}}, **fields}


def a_basic(name: str, **fields: Any) -> Object:
    """Return a PodGroupTemplate with the basic policy."""
    return {"name": name, "schedulingPolicy": {"basic": {}}, **fields}


def a_pod_group(
    name: str = "llama-main-33333333",
    *modifiers: Modifier,
    root: Object | None = None,
    min_count: int | None = 2,
) -> Object:
    """Return a PodGroup that Muster created for `root` (default `a_job()`); min_count None: a basic one."""
    root = root or a_job()
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    ours = (labelled(OURS | {"muster.dev/owner-uid": root["metadata"]["uid"]}), owned_by(root))
    spec = with_spec(schedulingPolicy=policy)
    return an_object("scheduling.k8s.io/v1beta1", "PodGroup", name, f"{name}-uid", spec, *ours, *modifiers)


def named(name: str) -> Modifier:
    """Set metadata.name."""
    return lambda body: body["metadata"].update(name=name)


def of_uid(uid: str) -> Modifier:
    """Set metadata.uid."""
    return lambda body: body["metadata"].update(uid=uid)


def labelled(labels: Mapping[str, str | None]) -> Modifier:
    """Add labels."""
    return lambda body: body["metadata"].setdefault("labels", {}).update(labels)


def annotated(annotations: Mapping[str, str]) -> Modifier:
    """Add annotations."""
    return lambda body: body["metadata"].setdefault("annotations", {}).update(annotations)


def template_labelled(labels: Mapping[str, str]) -> Modifier:
    """Add labels to a Job's pod template."""
    return lambda job: job["spec"]["template"]["metadata"].setdefault("labels", {}).update(labels)


def template_annotated(annotations: Mapping[str, str]) -> Modifier:
    """Add annotations to a Job's pod template."""
    return lambda job: job["spec"]["template"]["metadata"].setdefault("annotations", {}).update(annotations)


def template_spec(**fields: Any) -> Modifier:
    """Set fields of the pod spec in a Job's template."""
    return lambda job: job["spec"]["template"]["spec"].update(fields)


def with_spec(**fields: Any) -> Modifier:
    """Set fields of the spec."""
    return lambda body: body.setdefault("spec", {}).update(copy.deepcopy(fields))


def with_status(**fields: Any) -> Modifier:
    """Set fields of the status."""
    return lambda body: body.setdefault("status", {}).update(copy.deepcopy(fields))


def with_condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> Modifier:
    """Add a condition."""
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    return lambda body: body.setdefault("status", {}).setdefault("conditions", []).append(condition)


def owned_by(owner: Object, *, controller: bool = True) -> Modifier:
    """Add an owner reference."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": controller,
    }
    return lambda body: body["metadata"].setdefault("ownerReferences", []).append(reference)


def being_deleted(body: Object) -> None:
    """Set deletionTimestamp, as if the API server waited for finalizers."""
    body["metadata"]["deletionTimestamp"] = "2026-11-21T07:59:00Z"


def stamped(group: str) -> Modifier:
    """Set the pod's schedulingGroup."""
    return with_spec(schedulingGroup={"podGroupName": group})


def unstamped(pod: Object) -> None:
    """Remove schedulingGroup and all gates, as if the admission policies were not installed."""
    pod["spec"].pop("schedulingGroup", None)
    _ungate(pod)


def _ungate(pod: Object) -> None:
    pod["spec"].pop("schedulingGates", None)
    pod["metadata"]["labels"].pop(group_labels.GATED, None)


def gated(*names: str) -> Modifier:
    """Set the pod's schedulingGates to exactly these."""
    return with_spec(schedulingGates=[{"name": name} for name in names])


def bound(pod: Object) -> None:
    """Bind the pod to a node and let it run, without gates."""
    _ungate(pod)
    pod["spec"]["nodeName"] = "node-1"
    pod["status"] = {"phase": "Running"}


def succeeded(pod: Object) -> None:
    """Bind the pod and set its phase to Succeeded."""
    bound(pod)
    pod["status"] = {"phase": "Succeeded"}


def placed(group: Object) -> None:
    """Set the group's condition PodGroupInitiallyScheduled to True."""
    with_condition("PodGroupInitiallyScheduled", reason="Scheduled")(group)


def ref(body: Object) -> ObjectRef:
    """Return a reference to an object."""
    metadata = body["metadata"]
    namespace, uid = metadata.get("namespace", ""), metadata.get("uid", "")
    return ObjectRef(body["apiVersion"], body["kind"], namespace, metadata["name"], uid)


def observed(
    owner: Object | None = None,
    *,
    jobset: Object | None = None,
    jobs: Iterable[Object] | None = None,
    namespace: Object | None = None,
    workload: Object | None = None,
    others: Iterable[Object] = (),
    groups: Iterable[Object] = (),
    pods: Iterable[Object] = (),
    **rest: Any,
) -> Observed:
    """Return the `Observed` of an owner, by default `a_job()`; a JobSet is its `jobset`, a Job its `jobs`."""
    body = a_job() if owner is None else owner
    if body["kind"] == "JobSet":
        jobset = body
    if jobs is None:
        jobs = [body] if body["kind"] == "Job" else []
    views: dict[str, type[TrainJob | JobSet | Job]] = {"TrainJob": TrainJob, "JobSet": JobSet, "Job": Job}
    return Observed(
        rest.pop("subject", ref(body)),
        owner=views[body["kind"]].read(body),
        jobset=_read(JobSet, jobset),
        jobs=tuple(map(Job.read, jobs)),
        namespace=Namespace.read(namespace or a_namespace()),
        workload=_read(Workload, workload),
        other_workloads=tuple(map(Workload.read, others)),
        groups=tuple(map(PodGroup.read, groups)),
        pods=tuple(map(Pod.read, pods)),
        **rest,
    )


def _read(view: type[V], body: Object | None) -> V | None:
    return view.read(body) if body else None


def _modified(body: Object, modifiers: Iterable[Modifier]) -> Object:
    for modify in modifiers:
        modify(body)
    return body


def submitted(owner: Object) -> Object:
    """Return the Job, JobSet or TrainJob `llama` as a user submits it, with an image of each container."""
    spec = owner["spec"]
    for job in [entry["template"] for entry in spec.get("replicatedJobs", ())] or [owner]:
        if "template" in job["spec"]:
            container = {"name": "main", "image": "pause"}
            job["spec"]["template"]["spec"] |= {"restartPolicy": "Never", "containers": [container]}
    return {key: owner[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "llama"}}


def holds(stored: object, sent: object) -> bool:
    """Return whether every field that was sent is stored unchanged; added fields are ignored."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return all(holds(stored.get(name), value) for name, value in sent.items())
    if isinstance(sent, list) and isinstance(stored, list):
        return len(sent) == len(stored) and all(map(holds, stored, sent))
    return stored == sent
