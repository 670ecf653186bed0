"""Reading what a plan needs: the object an event was about, its owners, and what belongs to them.

Not found becomes None or an empty tuple here, and an object of another UID than the event's is not found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from muster.cluster import errors, homes
from muster.cluster.port import Cluster, Object, Objects
from muster.objects.jobs import Job, JobSet, Namespace, Pod, TrainJob
from muster.objects.meta import KubernetesObject, ObjectRef, OwnerReference
from muster.objects.resources import (
    COMPOSITE_POD_GROUPS,
    EVENTS,
    JOBS,
    JOBSETS,
    LABEL_VALUE,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    TRAINJOBS,
    WORKLOADS,
    Resource,
    by_kind,
)
from muster.objects.scheduling import CompositePodGroup, PodGroup, PriorityClass, Workload
from muster.policy import bodies
from muster.policy.homes import of_runtime
from muster.policy.kinds import pods_of
from muster.policy.marks import GATE, GROUP
from muster.policy.model import Nothing, Observed, Owner
from muster.policy.ownership import consider, left_alone, needs_priority_classes, workload_name
from muster.policy.pods import needs_owner
from muster.policy.waiting import placed_together
from muster.policy.workload import needs_groups

_GROUPED_KINDS = {(resource.group, resource.kind) for resource in (TRAINJOBS, JOBSETS, JOBS)}
"""By API group too: Volcano has a Job of its own."""

_View = TypeVar("_View", bound=KubernetesObject)


def for_workload(cluster: Cluster, subject: ObjectRef) -> Observed:
    """What create_workload decides on: the owner and the Workloads; to give up, its groups and pods."""
    observed = _with_workloads(cluster, _owner(cluster, subject))
    observed = _with_priority_classes(cluster, observed, to_make=True)
    if not needs_groups(observed):
        return observed
    return _with_groups(cluster, _with_pods(cluster, observed), above=False)


def for_pod_groups(cluster: Cluster, subject: ObjectRef) -> Observed:
    """What create_pod_groups decides on: the owner, its Jobs, its Workload and the groups there are."""
    return _with_groups(cluster, _with_owned_jobs(cluster, subject))


def for_resize(cluster: Cluster, subject: ObjectRef) -> Observed:
    """What resize_gang decides on: all of an owner, its pods included.

    Pods before groups: the scheduler places a group and then binds its pods, so a group is never said to
    be unschedulable beside bound pods of it.
    """
    return _with_groups(cluster, _with_pods(cluster, _with_owned_jobs(cluster, subject)))


def for_conditions(cluster: Cluster, subject: ObjectRef) -> Observed:
    """What emit_conditions decides on: all of an owner, and why a Job could not create pods."""
    observed = _with_priority_classes(cluster, _with_owned_jobs(cluster, subject))
    observed = _with_groups(cluster, _with_pods(cluster, observed))
    if observed.owner is None or len(observed.pods) >= sum(job.spec.parallelism for job in observed.jobs):
        return observed
    return replace(observed, failed_create=_failed_create(cluster, observed))


def for_pods(cluster: Cluster, subject: ObjectRef) -> Observed:
    """What patch_pods decides on: one PodGroup and its pods; for a gang placed before, its owner too.

    Of a group in a tree, or of a CompositePodGroup, it is all PodGroups that are placed together.
    """
    if subject.kind == COMPOSITE_POD_GROUPS.kind:
        whole = for_resize(cluster, subject)
        above = next((one for one in whole.composites if one.metadata.name == subject.name), None)
        return replace(whole, groups=placed_together(whole, above) if above else ())
    group_ref = subject
    pods: tuple[Pod, ...] = ()
    if subject.kind == PODS.kind:
        pod = _get(cluster, Pod, PODS, subject)
        pods = (pod,) if pod else ()
        name = pod.pod_group_name if pod and GATE in pod.gates else ""
        group_ref = ObjectRef(POD_GROUPS.api_version, POD_GROUPS.kind, subject.namespace, name)
    api = cluster.scheduling()
    group = _get(cluster, PodGroup, POD_GROUPS, group_ref) if api.served and group_ref.name else None
    if group is None:
        return Observed(subject, pods=pods, scheduling=api)
    observed = Observed(subject, groups=(group,), pods=_pods_of_group(cluster, group), scheduling=api)
    if not needs_owner(observed.groups, observed.pods):
        return observed
    whole = for_resize(cluster, group.ref)
    if whole.owner is None:
        return observed
    return replace(whole, subject=subject, groups=placed_together(whole, group))


def for_runtime(cluster: Cluster, subject: ObjectRef) -> Observed:
    """What mark_runtime decides on: the whole runtime, and which Events there are about it."""
    body = cluster.get(by_kind(subject.api_version, subject.kind), subject.name, subject.namespace)
    if body is None or (subject.uid and body["metadata"]["uid"] != subject.uid):
        return Observed(subject)
    names: frozenset[str] = frozenset()
    if of_runtime(body):
        fields = f"involvedObject.uid={body['metadata']['uid']}"
        events = cluster.list(EVENTS, subject.namespace or bodies.CLUSTER_SCOPED_EVENTS, fields=fields)
        names = frozenset(event["metadata"]["name"] for event in events)
    return Observed(subject, runtime=body, event_names=names)


def _owner(cluster: Cluster, subject: ObjectRef) -> Observed:
    """The root owner of an object, the JobSet between, and their namespace."""
    owner, jobset = _climb(cluster, subject)
    if owner is None:
        return Observed(subject)
    namespace = cluster.get(NAMESPACES, owner.metadata.namespace)
    return Observed(
        subject,
        owner=owner,
        jobset=jobset,
        namespace=Namespace.read(namespace) if namespace else None,
        scheduling=cluster.scheduling(),
    )


def _climb(cluster: Cluster, ref: ObjectRef) -> tuple[Owner | None, JobSet | None]:
    if ref.kind == "TrainJob":
        trainjob = _get(cluster, TrainJob, TRAINJOBS, ref)
        return trainjob, _jobset_of(cluster, trainjob) if trainjob else None
    if ref.kind == "JobSet":
        jobset = _get(cluster, JobSet, JOBSETS, ref)
        parent = parent_of(jobset) if jobset else None
        return (_get(cluster, TrainJob, TRAINJOBS, parent) if parent else jobset), jobset
    if ref.kind == "Job":
        job = _get(cluster, Job, JOBS, ref)
        parent = parent_of(job) if job else None
        return (job, None) if parent is None else _climb(cluster, parent)
    above = _owner_ref(cluster.get(by_kind(ref.api_version, ref.kind), ref.name, ref.namespace), ref)
    return (None, None) if above is None else _climb(cluster, above)


def _owner_ref(body: Object | None, ref: ObjectRef) -> ObjectRef | None:
    """The owner of a Pod, PodGroup or Workload; a user's Workload may name it by controllerRef alone."""
    if body is None or (ref.uid and body["metadata"]["uid"] != ref.uid):
        return None
    if ref.kind == "Workload":
        named = Workload.read(body).spec.controller_ref
        if (named.api_group, named.kind) in _GROUPED_KINDS:
            return ObjectRef(f"{named.api_group}/", named.kind, ref.namespace, named.name)
    controller = KubernetesObject.read(body).metadata.controller
    if controller is None or (controller.group, controller.kind) not in _GROUPED_KINDS:
        return None
    return _as_ref(controller, ref.namespace)


def _jobset_of(cluster: Cluster, trainjob: TrainJob) -> JobSet | None:
    """The JobSet of a TrainJob has its name; one of an earlier TrainJob of that name is not it."""
    meta = trainjob.metadata
    body = cluster.get(JOBSETS, meta.name, meta.namespace)
    jobset = JobSet.read(body) if body else None
    controller = jobset.metadata.controller if jobset else None
    return jobset if controller and controller.uid == meta.uid else None


def _with_owned_jobs(cluster: Cluster, subject: ObjectRef) -> Observed:
    return _with_jobs(cluster, _with_workloads(cluster, _owner(cluster, subject)))


def _with_jobs(cluster: Cluster, observed: Observed) -> Observed:
    if isinstance(observed.owner, Job):
        return replace(observed, jobs=(observed.owner,))
    if observed.jobset is None:
        return observed
    found = cluster.list(JOBS, observed.jobset.metadata.namespace, labels=pods_of(observed.jobset.ref))
    jobs = (Job.read(body) for body in found)
    uid = observed.jobset.metadata.uid
    mine = tuple(job for job in jobs if job.metadata.controller and job.metadata.controller.uid == uid)
    return replace(observed, jobs=mine)


def _with_workloads(cluster: Cluster, observed: Observed) -> Observed:
    owner = observed.owner
    if owner is None or not observed.scheduling.served or left_alone(observed) is not None:
        return observed
    namespace = owner.metadata.namespace
    workload = _get(
        cluster,
        Workload,
        WORKLOADS,
        ObjectRef(WORKLOADS.api_version, WORKLOADS.kind, namespace, workload_name(owner.ref)),
    )
    others = cluster.list(WORKLOADS, namespace, labels=f"{bodies.MANAGED_BY}!={bodies.MUSTER}")
    with_workload = replace(
        observed,
        workload=workload,
        other_workloads=tuple(Workload.read(body) for body in others),
        leftover_owner_lives=workload is not None and _controller_lives(cluster, workload, owner),
    )
    return replace(with_workload, homes=homes.of(cluster, with_workload))


def _with_priority_classes(cluster: Cluster, observed: Observed, *, to_make: bool = False) -> Observed:
    """The scheduler compares what classes come to, not their names; with one name there is nothing to ask."""
    if not needs_priority_classes(observed, to_make=to_make):
        return observed
    classes = cluster.list(PRIORITY_CLASSES)
    return replace(observed, priority_classes=tuple(PriorityClass.read(body) for body in classes))


def _controller_lives(cluster: Cluster, workload: Workload, owner: Owner) -> bool:
    """Whether a Workload under our name, made by Muster for another UID, still has its owner."""
    uid = workload.metadata.labels.get(bodies.OWNER_UID, "")
    named = workload.spec.controller_ref
    if uid == owner.metadata.uid or (named.api_group, named.kind) not in _GROUPED_KINDS:
        return False
    body = cluster.get(by_kind(f"{named.api_group}/", named.kind), named.name, workload.metadata.namespace)
    return body is not None and body["metadata"]["uid"] == uid


def _with_groups(cluster: Cluster, observed: Observed, *, above: bool = True) -> Observed:
    """The PodGroups the owner should have and those its pods are stamped with, whoever made them.

    Args:
        cluster: where to look.
        observed: the owner, and its pods where they count.
        above: whether the groups of those groups count.
    """
    if observed.owner is None or not observed.scheduling.served:
        return observed
    considered = consider(observed)
    namespace = observed.owner.metadata.namespace
    names = {pod.pod_group_name for pod in observed.pods if pod.pod_group_name}
    if not isinstance(considered, Nothing):
        names |= {name for _, name in considered.places()}
        parents = considered.composite_names() if above and observed.scheduling.composites else ()
        found = (cluster.get(COMPOSITE_POD_GROUPS, name, namespace) for name in parents)
        composites = tuple(CompositePodGroup.read(body) for body in found if body)
        observed = replace(observed, composites=composites)
    if len(names) <= cluster.single_reads:
        found = (cluster.get(POD_GROUPS, name, namespace) for name in sorted(names))
        return replace(observed, groups=tuple(PodGroup.read(body) for body in found if body))
    listed = (PodGroup.read(body) for body in cluster.list(POD_GROUPS, namespace))
    return replace(observed, groups=tuple(group for group in listed if group.metadata.name in names))


def _with_pods(cluster: Cluster, observed: Observed) -> Observed:
    named_by = observed.jobset or observed.owner
    if named_by is None:
        return observed
    found = cluster.list(PODS, named_by.metadata.namespace, labels=pods_of(named_by.ref))
    return replace(observed, pods=tuple(Pod.read(body) for body in found))


def _pods_of_group(cluster: Cluster, group: PodGroup) -> tuple[Pod, ...]:
    """The pods stamped with a group's name: those of its owner, or marked ones where it has none."""
    controller, namespace = group.metadata.controller, group.metadata.namespace
    labels = GROUP
    if controller is not None and (controller.group, controller.kind) in _GROUPED_KINDS:
        if not LABEL_VALUE.fullmatch(controller.name):
            return ()  # whoever made the group may have written anything there
        kind = "Job" if controller.kind == "Job" else "JobSet"
        labels = pods_of(ObjectRef("", kind, namespace, controller.name))
    pods = (Pod.read(body) for body in cluster.list(PODS, namespace, labels=labels))
    return tuple(pod for pod in pods if pod.pod_group_name == group.metadata.name)


def _failed_create(cluster: Cluster, observed: Observed) -> str:
    """The latest FailedCreate of the owner's Jobs: a full quota is told nowhere else."""
    uids = [job.metadata.uid for job in observed.jobs]
    namespace = observed.jobs[0].metadata.namespace
    # For each of these the API server reads all Events of the namespace.
    selectors = [f"involvedObject.uid={uid},reason=FailedCreate" for uid in uids]
    if len(selectors) > cluster.single_reads:
        selectors = ["reason=FailedCreate"]
    events = (event for fields in selectors for event in cluster.list(EVENTS, namespace, fields=fields))
    told = (
        (event.get("lastTimestamp") or event.get("eventTime") or "", event.get("message") or "")
        for event in events
        if event["involvedObject"].get("uid") in uids
    )
    return max(told, default=("", ""))[1]


def parent_of(child: KubernetesObject) -> ObjectRef | None:
    """The TrainJob of a JobSet, which has its name (Trainer v2.3), or the JobSet of a Job; None of a root."""
    controller = child.metadata.controller
    if controller is None:
        return None
    match child.kind, controller.group, controller.kind:
        case "JobSet", "trainer.kubeflow.org", "TrainJob" if controller.name == child.metadata.name:
            return _as_ref(controller, child.metadata.namespace)
        case "Job", "jobset.x-k8s.io", "JobSet":
            return _as_ref(controller, child.metadata.namespace)
    return None


def list_if_served(cluster: Cluster, resource: Resource, namespace: str = "", *, labels: str = "") -> Objects:
    """All objects of a kind; none where the cluster does not serve it, for example without the Trainer."""
    try:
        return cluster.list(resource, namespace, labels=labels)
    except errors.ApiGone:
        return []


def _get(cluster: Cluster, view: type[_View], resource: Resource, ref: ObjectRef) -> _View | None:
    body = cluster.get(resource, ref.name, ref.namespace)
    if body is None or (ref.uid and body["metadata"]["uid"] != ref.uid):
        return None
    return view.read(body)


def _as_ref(owner: OwnerReference, namespace: str) -> ObjectRef:
    return ObjectRef(owner.api_version, owner.kind, namespace, owner.name, owner.uid)
